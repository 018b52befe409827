"""A directory that depyf or vLLM dumped into, as events. No file in it is executed or unpickled.

A directory has no compile ids: depyf's `__compiled_fn_N` stands for them, marked as inferred, as is
everything else that the names and texts had to give away: order, pairs, roles.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from structdump.bundle.model import Direction, Function, SourceFrame
from structdump.bundle.names import VLLM_FILES, parse_rank
from structdump.errors import SourceError
from structdump.sources.compiles import CompileBook
from structdump.sources.dump_configs import ConfigTable, open_cache
from structdump.sources.dump_files import DumpFile, Rank, find_ranks, list_files
from structdump.sources.dump_graphs import Graph, graph_events, read_graphs
from structdump.sources.dump_kernels import KernelEvents, module_events, perf_event, read_modules
from structdump.sources.dump_others import other_event
from structdump.sources.event import Event
from structdump.sources.provenance import known_ops, source_lines

__all__ = ["Rank", "Report", "find_ranks", "read_directory"]

_COMPILED = re.compile(r"__compiled_fn_-?\d+")
_DEF = re.compile(r"^def (\w+)\(", re.MULTILINE)
_BY_FUNCTION = ("graph", "kernel", "best_config", "kernel_perf")


@dataclass(slots=True)
class Report:
    """What was found: `files` in the directory, `parts` of files that are events of their own.

    Each file is one event; kernels that only an output code holds are parts, so events = files + parts
    + `cache_files` (configurations out of the Inductor cache). `problems` counts the files without a
    text, by reason; `unmapped` the configurations whose kernel is unknown.
    """

    files: int = 0
    parts: int = 0
    cache_files: int = 0
    events: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    unmapped: int = 0
    functions: list[str] = field(default_factory=list)
    rank: int | None = None
    dp_rank: int | None = None
    warm: bool = False


def read_directory(
    path: str | os.PathLike[str],
    record: Callable[[Event], None],
    book: CompileBook | None = None,
    *,
    inductor_cache: str | os.PathLike[str] | None = None,
    torch_key: bytes | None = None,
) -> Report:
    """Record every file of a dump directory as an event, in a fixed order, and say what was there.

    Kernels are recorded as well, after the output code that runs them. `book` learns the compiles.
    `inductor_cache` adds the configurations that lie there. `torch_key` is the value of
    `torch._inductor.codecache.torch_key()` in the torch that made the dump; with it, configurations
    under hashed names find their kernels.

    Raises SourceError if `path` is no directory, cannot be listed, or holds no file of depyf or vLLM.

    Example::

        report = read_directory("dump/rank_0", session.record, session.book)
        print(report.files, report.problems)
    """
    root = Path(path)
    files = list_files(root)
    _check(root, files)
    groups = _grouped(files)
    own = [file for found in groups["best_config"].values() for file in found]
    configs = ConfigTable(own, open_cache(inductor_cache), torch_key)
    report = Report(files=len(files))
    report.functions = sorted({f for k in ("graph", "kernel") for f in groups[k]}, key=_number)
    report.rank, report.dp_rank = parse_rank(root.absolute().name) or (None, None)
    compiled = {function: _read_function(function, groups, configs) for function in report.functions}
    report.parts = sum(one.kernels.parts for one in compiled.values())
    counts: Counter[str] = Counter()
    for event in _events(compiled, groups, configs):
        report.events += 1
        if event.unavailable is not None:
            counts[event.unavailable.partition(":")[0]] += 1
        record(event)
    report.cache_files = len(configs.entries) - len(own)
    report.unmapped = sum(entry.kernel is None for entry in configs.entries)
    report.problems = dict(sorted(counts.items()))
    report.warm = any(one.from_cache for one in compiled.values())
    if book is not None:
        _tell(book, report, compiled, groups[""][""])
    return report


@dataclass(slots=True)
class _Compiled:
    """What the directory holds of one `__compiled_fn_N`."""

    graphs: list[Graph]
    kernels: KernelEvents

    @property
    def from_cache(self) -> bool:
        return not self.graphs and self.kernels.output_codes > 0

    @property
    def direction(self) -> Direction | None:
        """The direction of all output codes, if they have the same."""
        found = {event.direction for event in self.kernels.events if event.kind == "output_code"}
        return found.pop() if len(found) == 1 else None


def _grouped(files: list[DumpFile]) -> dict[str, dict[str, list[DumpFile]]]:
    """Sort files by kind and function; all other kinds stand under empty names."""
    groups: dict[str, dict[str, list[DumpFile]]] = {k: defaultdict(list) for k in (*_BY_FUNCTION, "")}
    for file in files:
        parsed = file.parsed
        if parsed is not None and parsed.kind in _BY_FUNCTION:
            groups[parsed.kind][parsed.function or ""].append(file)
        else:
            groups[""][""].append(file)
    return groups


def _read_function(
    function: str, groups: dict[str, dict[str, list[DumpFile]]], configs: ConfigTable
) -> _Compiled:
    graphs = read_graphs(groups["graph"].get(function, ()))
    perf = {
        file.parsed.index: (file.read() or "").strip()
        for file in groups["kernel_perf"].get(function, ())
        if file.parsed
    }
    modules = read_modules(groups["kernel"].get(function, ()))
    known: dict[str, str] = {}
    lines: dict[str, SourceFrame | None] = {}
    if any(module.role == "output_code" for module in modules):
        own = {graph.digest: graph for graph in graphs if graph.stage.pass_name is None}
        for graph in own.values():  # each text once; a pass names no op that the stages around it do not
            text = graph.file.read() or ""
            found = known_ops(text).items()
            known.update((name, op) for name, op in found if op.startswith("aten.") or name not in known)
            if graph.stage.label == "AFTER POST GRAD":
                for node, frame in source_lines(text).items():  # None: two pieces have a node of this name
                    lines[node] = frame if lines.get(node, frame) == frame else None
    sure = {node: frame for node, frame in lines.items() if frame is not None}
    return _Compiled(graphs, module_events(modules, function, configs, perf, known, sure))


def _events(
    compiled: dict[str, _Compiled], groups: dict[str, dict[str, list[DumpFile]]], configs: ConfigTable
) -> Iterator[Event]:
    possible = configs.guess([pair for one in compiled.values() for pair in one.kernels.sources])
    names: dict[str, str] = {}
    for function, one in compiled.items():
        yield from graph_events(one.graphs, function, one.direction)
        yield from one.kernels.events
        names.update((file, e.name) for e in one.kernels.events if e.kernel for file in e.files)
    yield from configs.events(possible)
    for function, files in groups["kernel_perf"].items():
        for file in files:
            yield perf_event(
                file, function or None, names.get(file.name.removesuffix(".kernel_perf") + ".py")
            )
    for file in groups[""][""]:
        yield other_event(file)


def _check(root: Path, files: list[DumpFile]) -> None:
    if any(file.parsed is not None and file.parsed.kind != "lock" for file in files):
        return
    if not files:
        raise SourceError(f"{root} is empty; give the directory that depyf or vLLM dumped into")
    shown = ", ".join(ascii(file.name)[1:-1] for file in files[:3])
    raise SourceError(
        f"{root} holds no dump of depyf or vLLM: none of its {len(files)} files is named like one "
        f"({shown}{', …' if len(files) > 3 else ''})"
    )


def _number(function: str) -> tuple[int, str]:
    return int(function.rpartition("_")[2]), function


def _tell(book: CompileBook, report: Report, compiled: dict[str, _Compiled], others: list[DumpFile]) -> None:
    """Note compiles, their functions as far as source files name them, and what came from a cache."""
    names = _function_names(others)
    stems = {PurePath(file.name).name for file in others}
    passes = any(g.stage.pass_name for one in compiled.values() for g in one.graphs)
    if report.dp_rank is not None or passes or stems.intersection(VLLM_FILES):
        book.framework.setdefault("vllm", {"rank": report.rank, "dp_rank": report.dp_rank})
    for function, one in compiled.items():
        name = names.get(function)
        book.started(function, function=Function(name=name) if name else None)
        if one.kernels.output_codes or name:
            book.finished(function)
        if one.from_cache:
            number = one.kernels.output_codes
            book.loaded(f"{function}: {number} output codes and not one graph, so they came from a cache")


def _function_names(others: list[DumpFile]) -> dict[str, str]:
    """Read which Python function calls which `__compiled_fn_N`, out of decompiled and full code."""
    names: dict[str, str] = {}
    for kinds in (("transformed_code", "vllm"), ("full_code",)):
        for file in others:
            if file.parsed is None or file.parsed.kind not in kinds:
                continue
            text = file.read() or ""
            first = _DEF.search(text)
            function = file.parsed.function or (first[1] if first else None)
            if function is not None:
                for compiled in sorted(set(_COMPILED.findall(text))):
                    names.setdefault(compiled, function)
    return names
