"""The modules of a dump directory, `kernel_N.py`: output codes, kernels that run, what was only timed.

Their names tell nobody which is which, so the texts do: a kernel runs if an output code holds it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from structdump.bundle.model import Direction, SourceFrame
from structdump.sources.configs import parse_kernel_perf
from structdump.sources.dump_configs import ConfigTable, assign
from structdump.sources.dump_files import DumpFile
from structdump.sources.dump_graphs import text_digest
from structdump.sources.event import Event
from structdump.sources.kernel_events import kernel_events
from structdump.sources.kernel_sources import describe
from structdump.sources.kernels import ModuleRole, module_role, read_aot_id

_DIRECTIONS: dict[str, Direction] = {"forward": "forward", "backward": "backward", "inference": "inference"}
_DEF = re.compile(r"^@triton\.jit\s+def (\w+)\(", re.MULTILINE)


@dataclass(slots=True)
class Module:
    """One `kernel_N.py`: what it is, and what its text hashes to."""

    file: DumpFile
    role: ModuleRole = "kernel"
    digest: str | None = None
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class KernelEvents:
    """The events of one function's modules, and how many of them have no file of their own."""

    events: list[Event] = field(default_factory=list)
    sources: list[tuple[Event, str]] = field(default_factory=list)
    parts: int = 0
    output_codes: int = 0


def read_modules(files: Iterable[DumpFile]) -> list[Module]:
    """Read what each module is, in the order of their numbers."""
    modules = []
    for file in sorted(files, key=lambda f: (f.parsed.index or 0 if f.parsed else 0, f.name)):
        text = file.read()
        if text is None:
            modules.append(Module(file))
        else:
            names = tuple(_DEF.findall(text))
            modules.append(Module(file, module_role(text), text_digest(text), names))
    return modules


def module_events(
    modules: list[Module],
    compile_id: str,
    configs: ConfigTable,
    performance: Mapping[int | None, str],
    known: Mapping[str, str],
    lines: Mapping[str, SourceFrame],
) -> KernelEvents:
    """Return the events of one function's modules: each output code with its kernels, then the rest.

    `performance` has the lines of `.kernel_perf` files by module number, `known` ops for kernels' names,
    `lines` the Python lines of graph nodes.
    """
    found = KernelEvents()
    twins: dict[str, list[Module]] = defaultdict(list)
    for module in modules:
        if module.role != "output_code" and module.digest is not None:
            twins[module.digest].append(module)
    claimed: set[str] = set()
    used: set[str] = set()
    for module in modules:
        if module.role != "output_code":
            continue
        found.output_codes += 1
        output = _output_code(module, compile_id)
        found.events.append(output)
        for event, path in kernel_events(output, known, lines):
            used.add(event.name)
            source = event.text if isinstance(event.text, str) else ""
            twin = next(iter(twins.get(text_digest(source), ())), None) if source else None
            if twin is None or twin.file.name in claimed:
                event.files = [module.file.name]
                found.parts += 1
            else:
                claimed.add(twin.file.name)
                event.files = [twin.file.name]
            _finish(event, source, twin, path, configs, performance)
            found.events.append(event)
            found.sources.append((event, source))
    for module in modules:
        if module.role != "output_code" and module.file.name not in claimed:
            found.events.append(_left_over(module, compile_id, configs, performance, used, found))
    return found


def perf_event(file: DumpFile, compile_id: str | None, kernel: str | None) -> Event:
    """Return the event of a `.kernel_perf` file: one benchmarked time, in milliseconds."""
    text = file.read()
    return Event(
        kind="metrics",
        name=kernel or file.name.removesuffix(".kernel_perf"),
        stage="kernel_perf",
        compile_id=compile_id,
        text=file.read,
        data={"kernel": kernel, "milliseconds": parse_kernel_perf(text or "")},
        files=[file.name],
        unavailable=file.problem,
        size=file.size,
    )


def _output_code(module: Module, compile_id: str) -> Event:
    file = module.file
    aot_id = read_aot_id(file.read() or "")
    direction = _DIRECTIONS.get((aot_id or "").rpartition("_")[2])
    return Event(
        kind="output_code",
        name="inductor_output_code",
        stage="output_code",
        compile_id=compile_id,
        graph_id=f"model__{aot_id}" if aot_id else None,
        direction=direction,
        language="python",
        text=file.read,
        files=[file.name],
        inferred=["compile_id", "order"],
        size=file.size,
        unavailable=file.problem,
    )


def _finish(
    event: Event,
    source: str,
    module: Module | None,
    path: str | None,
    configs: ConfigTable,
    performance: Mapping[int | None, str],
) -> None:
    entry = configs.find(source, path, module.file if module else None) if source else None
    if entry is not None:
        assign(entry, event)
    if module is not None and module.file.parsed is not None and event.kernel is not None:
        event.kernel.performance = performance.get(module.file.parsed.index)


def _left_over(
    module: Module,
    compile_id: str,
    configs: ConfigTable,
    performance: Mapping[int | None, str],
    used: set[str],
    found: KernelEvents,
) -> Event:
    file = module.file
    text = file.read() or ""
    backend = "triton" if "@triton.jit" in text else "unknown"
    stem = file.name.rpartition(".py")[0]
    item = describe(module.names[-1] if module.names else stem, backend, text)
    event = Event(
        kind="kernel",
        name=item.kernel.name,
        stage=backend,
        compile_id=compile_id,
        language="python",
        text=file.read,
        kernel=item.kernel,
        files=[file.name],
        inferred=["compile_id", "order", "kernel.role"],
        size=file.size,
        unavailable=file.problem,
    )
    _finish(event, text, module, None, configs, performance)
    ran = item.kernel.name in used or (not found.output_codes and module.role == "kernel")
    tuned = item.kernel.best_config is not None and item.kernel.heuristic != "template"
    if module.role == "benchmark":
        event.kind, item.kernel.role = "candidate", "benchmark"
    elif module.role == "candidate" or not (ran or tuned):
        event.kind, item.kernel.role = "candidate", "candidate"
    if event.kind == "kernel":
        item.kernel.calls = 1
        found.sources.append((event, text))
    else:
        event.stage = item.kernel.role
        event.data, item.kernel.best_config = item.kernel.best_config, None  # tried, not chosen
    return event
