"""Bundles of what people already have: dump directories and TORCH_TRACE logs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from structdump.bundle.model import Run
from structdump.config import DumpConfig
from structdump.errors import SourceError, UsageError
from structdump.sources.compiles import CompileBook
from structdump.sources.depyf_dir import find_ranks, read_directory
from structdump.sources.kernel_events import with_kernels
from structdump.sources.log_files import find_logs
from structdump.sources.session import Session, Source
from structdump.sources.target import SUFFIXES, resolve
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

LOGS = (".log", ".log.gz", ".log.zst")


def pack(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    inductor_cache: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> list[Path]:
    """Turn dump directories of depyf and vLLM, and TORCH_TRACE logs, into bundles; return their paths.

    There is one bundle per rank. `output` is a directory, or a file name with optional placeholders;
    `inductor_cache` adds the best configs that lie in an Inductor cache directory; `settings` are
    those of `DumpConfig`. Nothing of the source is executed or unpickled.

    Raises `SourceError` if a source holds nothing to pack, `ConfigError` for a bad setting.

    Example::

        structdump.pack("depyf_dump/rank_0", level="medium")
    """
    given = {**settings, "output": None if output is None else os.fspath(output)}
    config = DumpConfig.resolve(given)
    if config.level == "off":
        raise UsageError("level off packs nothing; choose low, medium or full")
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    units = [unit for one in sources for unit in _units(Path(one))]
    wanted = [u for u in units if not config.ranks or u[1] is None or u[1] in config.ranks]
    several = len(wanted) > 1
    written = []
    for path, rank, kind in wanted:
        session = _session(config, path, rank, kind, several, overwrite)
        if kind == "directory":
            _read_directory(session, path, inductor_cache)
        else:
            _read_log(session, path)
        result = session.finish()
        if result is None:
            raise SourceError(f"{path} holds nothing that torch.compile made")
        written.append(result.path)
    return written


def _units(source: Path) -> list[tuple[Path, int | None, Source]]:
    """Return what is to become a bundle of its own: path, rank, kind."""
    if source.is_dir():
        ranks = find_ranks(source)
        if any(r.path != source for r in ranks) or not _has_logs(source):
            return [(r.path, r.rank, "directory") for r in ranks]
    elif not source.exists():
        raise SourceError(f"{source} does not exist")
    elif not source.is_file() or not source.name.endswith(LOGS):
        raise SourceError(
            f"{source} is neither a dump directory nor a TORCH_TRACE log (.log, .log.gz, .log.zst)"
        )
    from structdump.sources.log_files import rank_of

    return [(log, rank_of(log), "trace_log") for log in find_logs(source)]


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
    return {"versions": dict(sorted(book.versions.items())), "extra": dict(book.framework)}


def _read_directory(session: Session, path: Path, inductor_cache: str | os.PathLike[str] | None) -> None:
    report = read_directory(path, session.record, session.book, inductor_cache=inductor_cache)
    if report.dp_rank is not None:
        session.run.launcher["dp_rank"] = str(report.dp_rank)
    for problem, count in report.problems.items():
        session.notes.append(f"{count} files: {problem}")


def _read_log(session: Session, path: Path) -> None:
    mapper = TraceMapper(with_kernels(session.record), session.book)
    report = read_log(path, mapper)
    session.run.pid = report.pid
    session.run.rank = session.run.rank if report.rank is None else report.rank
    session.notes += report.problems()
    if report.cut:
        session.partial = True
