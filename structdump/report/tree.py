"""The tree of compiles: each with its stages, kernels and the place where its graph broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from structdump.analyze.summary import Part, Stage, config
from structdump.bundle.loaded import ArtifactView
from structdump.bundle.model import Compile, GraphBreak
from structdump.report.failure import place
from structdump.report.lines import Line, labelled, say, seconds

_COMPILES = 12
_DEEPEST = 7
_KERNELS = (24, 3, 8)  # in all, and of each compile at least and at most
_NAME = 40  # cells; names are padded to so many, so that what follows them stands in a column
_PASSES = 4
_QUIET = frozenset({"runtime_asserts", "tensorify", "unlift_tokens"})
_LABEL = 9
MARKS = {
    "ok": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "fell_back": ("↩", "yellow"),
    "skipped": ("–", "dim"),
    "unfinished": ("…", "yellow"),
}


@dataclass
class _Room:
    """How much more may be printed, and what waits to stand at the left edge."""

    compiles: int
    kernels: int | None
    later: list[Part]


def tree(forest: Sequence[Part], *, full: bool = False) -> Iterator[Line]:
    """Yield the tree; without `full` only so much of a large one as fits a few screens.

    What is nested too deep to be read goes on at the left edge.
    """
    total = sum(_size(part) for part in forest)
    kernels = None if full else max(_KERNELS[1], min(_KERNELS[2], _KERNELS[0] // max(1, total)))
    room = _Room(total if full else _COMPILES, kernels, [])
    hidden = max(0, total - room.compiles)
    waiting = list(reversed(forest))
    while waiting and room.compiles > 0:
        yield from _compile(waiting.pop(), "", "", room, 0)
        waiting += reversed(room.later)
        room.later.clear()
    if hidden:
        noun = "compile" if hidden == 1 else "compiles"
        yield Line(say((f"… {hidden:,} more {noun} (--full shows all)", "dim")))


def _size(part: Part) -> int:
    count, waiting = 0, [part]
    while waiting:
        count += 1
        waiting += waiting.pop().resumed
    return count


def _compile(part: Part, first: str, rest: str, room: _Room, depth: int) -> Iterator[Line]:
    room.compiles -= 1
    yield _head(part, first, rest + "    ")
    blocks: list[list[Line] | Part] = []
    record = part.compile
    if record is not None and record.recompile is not None:
        again = record.recompile
        because = again.guard or again.reason
        previous = say("guard of ", (again.previous, "bold"), " failed: ") if again.previous else say("")
        blocks.append([labelled("again", say(previous, (because, "yellow")), _LABEL)])
    blocks += [[line] for line in _stage_lines(part.stages)]
    if part.passes:
        blocks.append([labelled("passes", _passes(part, full=room.kernels is None), _LABEL)])
    if part.kernels:
        blocks.append(list(_kernel_lines(part.kernels, room.kernels)))
    shown = {child.id: child for child in part.resumed}
    for graph_break in record.graph_breaks if record is not None else ():
        blocks.append([_break(graph_break)])
        child = shown.pop(graph_break.resumed_by, None)
        if child is not None and depth == _DEEPEST:
            room.later.append(child)
        elif child is not None and room.compiles > 0:
            blocks.append(child)
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        lead, follow = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(block, Part):
            if room.compiles > 0:
                yield from _compile(block, rest + lead, rest + follow, room, depth + 1)
            continue
        for row, line in enumerate(block):
            lead_here = lead if row == 0 else follow
            yield line._replace(first=rest + lead_here + line.first, rest=rest + follow + line.rest)


def _head(part: Part, first: str, rest: str) -> Line:
    record = part.compile
    if record is None:
        return Line(
            say(("outside any compile", "bold"), (f"  {part.artifacts:,} artifacts", "dim")), first, rest
        )
    mark, style = MARKS[record.status]
    function = record.function
    name = function.name if function else ""
    where = place(function.file, function.line) if function and function.file else ""
    asked = cache(record)
    words = [
        say(("" if record.status == "ok" else record.status.replace("_", " "), style)),
        say(("" if asked == "cache miss" else asked, "dim")),  # a verdict of cold says that already
        say(seconds(record.seconds).rjust(7) if record.seconds is not None else ""),
    ]
    right = Text("  ").join(word for word in words if word)
    return Line(
        say((mark, style), " ", (record.id, "bold cyan"), " ", (name, "bold")),
        first,
        rest,
        say((where, "dim")),
        right,
    )


def cache(record: Compile) -> str:
    """Say in a word or two what the caches answered."""
    states = {"fx": record.cache.fx_graph, "aot": record.cache.aot_autograd}
    known = {name: state for name, state in states.items() if state}
    if not known:
        return ""
    if len(set(known.values())) == 1:
        return f"cache {next(iter(known.values()))}"
    return ", ".join(f"{name} {state}" for name, state in known.items())


def _stage_lines(stages: Sequence[Stage]) -> Iterator[Line]:
    """One line per direction, in order; small helper stages only where nothing else is."""
    wanted = [s for s in stages if s.name not in _QUIET] or list(stages)
    rows: dict[str, list[Stage]] = {}
    for stage in wanted:
        label = "graphs" if stage.direction in (None, "joint") else stage.direction or ""
        rows.setdefault(label, []).append(stage)
    for label, row in rows.items():
        body = Text()
        for number, stage in enumerate(row):
            body.append_text(say((" → " if number else "", "dim")))
            body.append_text(
                _stage(stage, "" if stage.name == "forward" or stage.name == label else stage.name)
            )
        yield labelled(label, body, _LABEL)


def _stage(stage: Stage, name: str) -> Text:
    nodes = _count(stage.nodes or stage.before)
    if len(stage.nodes) == 1 and len(stage.before) == 1 and stage.before != stage.nodes:
        nodes = f"{stage.before[0]}→{stage.nodes[0]}"
    if not name:
        name, nodes = (f"{nodes} nodes", "") if nodes else (stage.name, "")
    times = f" ×{stage.runs}" if stage.runs > 1 else ""
    text = say((name, "" if stage.kept else "dim"), f" {nodes}" if nodes else "", times)
    return say(text, ("*", "yellow")) if stage.changed else text


def _count(nodes: Sequence[int]) -> str:
    if not nodes:
        return ""
    low, high = min(nodes), max(nodes)
    return str(low) if low == high else f"{low}–{high}"


def _passes(part: Part, *, full: bool) -> Text:
    changed = part.changed
    text = say(
        f"{len(part.passes)} runs, {len(changed)} changed the graph"
        if changed
        else f"{len(part.passes)} runs, none changed the graph"
    )
    most = len(changed) if full else _PASSES
    for number, run in enumerate(changed[:most]):
        text.append_text(say(": " if number == 0 else ", ", (run.name, "yellow"), (_nodes(run), "dim")))
    if len(changed) > most:
        text.append_text(say((f", … and {len(changed) - most} more (--passes)", "dim")))
    return text


def nodes_before(run: ArtifactView) -> int | None:
    """Return how many nodes the graph had before a pass, where that is recorded."""
    value = run.data.get("nodes_before") if isinstance(run.data, dict) else None
    return value if isinstance(value, int) else None


def _nodes(run: ArtifactView) -> str:
    before = nodes_before(run)
    if run.nodes is None:
        return ""
    return f" {before}→{run.nodes}" if before not in (None, run.nodes) else f" {run.nodes}"


def _kernel_lines(kernels: Sequence[ArtifactView], most: int | None) -> Iterator[Line]:
    backends = Counter(k.kernel.backend for k in kernels if k.kernel)
    counts = ", ".join(f"{n} {backend}" for backend, n in backends.most_common())
    yield labelled("kernels", say(counts), _LABEL)
    order = sorted(kernels, key=lambda k: (k.kernel is not None and k.kernel.backend == "extern", k.seq))
    most = len(order) if most is None else most
    width = min(_NAME, max((len(k.name) for k in order[:most]), default=0))
    for kernel in order[:most]:
        yield _kernel(kernel, width)
    if len(order) > most:
        yield Line(say((f"… and {len(order) - most} more (--kernels)", "dim")), "  ", "  ")


def _kernel(artifact: ArtifactView, width: int) -> Line:
    kernel = artifact.kernel
    assert kernel is not None  # noqa: S101  # a Part holds no other kernels
    more = [
        (f"×{kernel.calls}" if kernel.calls > 1 else "", ""),
        (settings(artifact), "green"),
        (f"← {operations(kernel.ops)}" if kernel.ops else "", "dim"),
    ]
    tail = Text("  ").join(say(part) for part in more if part[0])
    name = say((kernel.name.ljust(width), "" if artifact.digest else "dim"))
    return Line(name, "  ", "    ", tail)


def settings(artifact: ArtifactView) -> str:
    """Write the launch configuration of a kernel as `NAME=value` words, sizes and warps before the rest."""
    chosen = config(artifact.best_config)
    order = sorted(chosen, key=lambda name: not ("BLOCK" in name or name.startswith("num_")))
    return " ".join(f"{name}={chosen[name]}" for name in order)


def operations(ops: Sequence[str], most: int = 6) -> str:
    """Write ATen operations without their namespace, the first few of them."""
    names = [op.removeprefix("aten.") for op in ops]
    return ", ".join(names[:most]) + (f", … {len(names) - most} more" if len(names) > most else "")


def reason(text: str) -> str:
    """Return the telling part of a graph break's reason: Dynamo's second paragraph, its first line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break"):
        return lines[1]
    return lines[0] if lines else "no reason given"


def _break(graph_break: GraphBreak) -> Line:
    frame = graph_break.stack[-1] if graph_break.stack else None
    where = say(" at ", place(frame.file, frame.line)) if frame else say("")
    then = say(" → ", (graph_break.resumed_by, "cyan")) if graph_break.resumed_by else say("")
    line = labelled("break", say((reason(graph_break.reason), "magenta"), where, then), _LABEL)
    return line._replace(tail=say((frame.code.strip(), "dim"))) if frame and frame.code else line
