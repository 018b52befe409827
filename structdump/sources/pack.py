"""Bundles of what people already have: dump directories and TORCH_TRACE logs."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structdump.bundle.model import Run
from structdump.bundle.redact import Redactor
from structdump.config import DumpConfig
from structdump.errors import SourceError, UsageError
from structdump.sources.compiles import CompileBook
from structdump.sources.dump_files import MAX_DEPTH, find_ranks, list_files
from structdump.sources.event import Event
from structdump.sources.kernel_events import with_kernels
from structdump.sources.log_files import find_logs, rank_of
from structdump.sources.session import Session, Source
from structdump.sources.target import SUFFIXES, resolve
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

# What one kind of source needs alone is imported where it is used: imports are most of a short run's time.
if TYPE_CHECKING:
    from structdump.sources.depyf_dir import Report

LOGS = (".log", ".log.gz", ".log.zst")


def pack(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    trace: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    inductor_cache: str | os.PathLike[str] | None = None,
    merge: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> list[Path]:
    """Turn dump directories of depyf and vLLM, and TORCH_TRACE logs, into bundles; return their paths.

    There is one bundle per rank, or with `merge` one of all, see `structdump.merge`. `output` is a
    directory, or a file name with optional placeholders. `trace` are the TORCH_TRACE logs of the same run,
    whose compile ids and pieces the directories lack: the two are joined by content, rank by rank.
    `inductor_cache` adds the best configs that lie in an Inductor cache directory; `settings` are those of
    `DumpConfig`. Nothing of the source is executed or unpickled.

    Raises `SourceError` if a source holds nothing to pack, `ConfigError` for a bad setting.

    Example::

        structdump.pack("depyf_dump/rank_0", level="medium")
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if merge:
        from structdump.bundle.merge import merge as merge_bundles

        with tempfile.TemporaryDirectory(prefix="structdump-") as directory:
            parts = pack(sources, directory, trace=trace, inductor_cache=inductor_cache, **settings)
            target = _merged_name(sources, output)
            return [merge_bundles(parts, target, overwrite=overwrite).path]
    given = {**settings, "output": None if output is None else os.fspath(output)}
    config = DumpConfig.resolve(given)
    if config.level == "off":
        raise UsageError("level off packs nothing; choose low, medium or full")
    units = [unit for one in sources for unit in _units(Path(one))]
    wanted = [u for u in units if not config.ranks or u[1] is None or u[1] in config.ranks]
    several = len(wanted) > 1
    logs = _logs_of(
        wanted, [Path(trace)] if isinstance(trace, (str, os.PathLike)) else list(map(Path, trace))
    )
    written = []
    for path, rank, kind in wanted:
        session = _session(config, path, rank, kind, several, overwrite)
        if path in logs:
            _read_both(session, path, logs[path], inductor_cache)
        elif kind == "directory":
            _read_directory(session, path, inductor_cache)
        else:
            _read_log(session, path)
        result = session.finish()
        if result is None:
            raise SourceError(f"{path} holds nothing that torch.compile made")
        written.append(result.path)
    return written


def _merged_name(sources: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str] | None) -> Path:
    given = Path(output) if output is not None else Path()
    if given.name.endswith(SUFFIXES):
        return given
    name = Path(sources[0]).absolute().name if sources else "merged"
    return given / f"{Redactor().text(name)}.json.zst"


def _units(source: Path) -> list[tuple[Path, int | None, Source]]:
    """Return what is to become a bundle of its own: path, rank, kind."""
    if source.is_dir():
        source = _unwrapped(source)
        ranks = find_ranks(source)
        if any(r.path != source for r in ranks) or not _has_logs(source):
            return [(r.path, r.rank, "directory") for r in ranks]
    elif not source.exists():
        raise SourceError(f"{source} does not exist")
    elif not source.is_file() or not source.name.endswith(LOGS):
        raise SourceError(
            f"{source} is neither a dump directory nor a TORCH_TRACE log (.log, .log.gz, .log.zst)"
        )
    return [(log, rank_of(log), "trace_log") for log in find_logs(source)]


def _unwrapped(folder: Path) -> Path:
    """Return the folder that is all there is in `folder`, as an unpacked archive wraps what it holds."""
    for _ in range(MAX_DEPTH):
        try:
            children = list(itertools.islice(folder.iterdir(), 2))
        except OSError:
            return folder
        if len(children) != 1 or children[0].is_symlink() or not children[0].is_dir():
            return folder
        if any(file.parsed is not None for file in list_files(folder)):
            return folder  # the name of a graph had a slash in it
        folder = children[0]
    return folder


def _logs_of(units: list[tuple[Path, int | None, Source]], traces: list[Path]) -> dict[Path, Path]:
    """Return the log of each directory: that of its rank, or the only one."""
    logs = [log for trace in traces for log, _, kind in _units(trace) if kind == "trace_log"]
    if not traces:
        return {}
    directories = [(path, rank) for path, rank, kind in units if kind == "directory"]
    if not directories or not logs:
        raise UsageError("a trace is joined with a dump directory; give one of each, or pack the log alone")
    if len(directories) == len(logs) == 1:
        return {directories[0][0]: logs[0]}
    by_rank = {rank_of(log): log for log in logs}
    found = {path: by_rank[rank] for path, rank in directories if rank in by_rank}
    if not found or len(by_rank) < len(logs):
        ranks = ", ".join(str(rank_of(log)) for log in logs)
        raise UsageError(f"which log is of which directory? Their names tell of ranks {ranks}")
    return found


def _has_logs(source: Path) -> bool:
    try:
        return any(p.name.endswith(LOGS) for p in source.iterdir())
    except OSError as error:
        raise SourceError(f"{source} cannot be listed: {error.strerror or error}") from None


def _session(
    config: DumpConfig, path: Path, rank: int | None, kind: Source, several: bool, overwrite: bool
) -> Session:
    name = path.name.removeprefix("dedicated_log_torch_trace_")
    for suffix in LOGS:
        name = name.removesuffix(suffix)
    run = Run(program=name, rank=rank)

    def target() -> Path:
        redacted = session.privacy.program(name)
        if config.output is None or (not config.output.endswith(SUFFIXES) and "{" not in config.output):
            folder = config.output or "."
            return (
                Path(folder) / f"{resolve('{program}', program=redacted, level=config.level, rank=rank).name}"
            )
        place = resolve(config.output, program=redacted, level=config.level, rank=rank)
        if several and "{" not in config.output:
            raise UsageError(
                "there is more than one bundle to write; name a directory, or use {program} or {rank}"
            )
        return place

    session = Session(
        config,
        target,
        source=kind,
        run=run,
        environment=lambda: _environment(session.book),
        overwrite=overwrite,
    )
    return session


def _environment(book: CompileBook) -> dict[str, Any]:
    return {"versions": dict(sorted(book.versions.items()))}


def _read_both(
    session: Session, path: Path, log: Path, inductor_cache: str | os.PathLike[str] | None
) -> None:
    from structdump.sources.depyf_dir import read_directory
    from structdump.sources.join import Catalogue, with_files

    catalogue = Catalogue()
    read_log(log, TraceMapper(with_kernels(catalogue.record), CompileBook()))
    events: list[Event] = []
    report = read_directory(path, events.append, CompileBook(), inductor_cache=inductor_cache)
    joined = catalogue.join(events)
    _read_log(session, log, with_files(session.record, joined.files))
    for event in joined.rest:
        session.record(event)
    _note(session, report)
    session.notes.append(
        f"joined by content: {joined.found} of {len(events)} parts of the directory are in the log as well,"
        f" {joined.placed} more are of a compile or piece in it"
    )


def _read_directory(session: Session, path: Path, inductor_cache: str | os.PathLike[str] | None) -> None:
    from structdump.sources.depyf_dir import read_directory

    _note(session, read_directory(path, session.record, session.book, inductor_cache=inductor_cache))


def _note(session: Session, report: Report) -> None:
    if report.dp_rank is not None:
        session.run.launcher["dp_rank"] = str(report.dp_rank)
    for problem, count in report.problems.items():
        session.notes.append(f"{count} files: {problem}")


def _read_log(session: Session, path: Path, record: Callable[[Event], None] | None = None) -> None:
    mapper = TraceMapper(with_kernels(record or session.record), session.book)
    report = read_log(path, mapper)
    session.run.pid = report.pid
    session.run.rank = session.run.rank if report.rank is None else report.rank
    session.notes += report.problems()
    if report.cut:
        session.partial = True
