"""Graph files of a dump directory as events: in order, before paired with after, twins marked.

A directory says none of that. depyf counts files of one name up, and writes no second file for the same
content, so numbers of two names need not agree: pairs are worked out and marked as inferred.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from structdump.bundle.graphs import measure_text
from structdump.bundle.model import Direction
from structdump.bundle.names import Stage
from structdump.bundle.normal import normalise
from structdump.sources.dump_files import DumpFile
from structdump.sources.event import Event

# The order in which one compile goes through its stages; an unknown stage stands between the
# pieces' own graphs and the post-grad ones. vLLM splits before AOTAutograd sees the pieces.
ORDER = (
    "captured", "runtime_asserts", "split", "split_module", "compiled_autograd", "frozen",
    "pre_grad", "joint", "tensorify", "saved_tensors_hooks", "unlift_tokens", "forward", "backward", "",
    "post_grad",
)  # fmt: skip
_RANK = {stage: place for place, stage in enumerate(ORDER)}
_LAST = 1 << 30


class Graph(NamedTuple):
    """A graph file, what its name says, and the digest of its normalised text (None if unreadable)."""

    file: DumpFile
    stage: Stage
    number: int
    digest: str | None


def read_graphs(files: Iterable[DumpFile]) -> list[Graph]:
    """Read the digests of graph files and put the graphs into the order of compilation."""
    graphs = []
    for file in files:
        if file.parsed is not None:
            text = file.read()
            digest = None if text is None else text_digest(text)
            graphs.append(Graph(file, file.parsed.stage, file.parsed.index or 0, digest))
    return sorted(graphs, key=_place)


def text_digest(text: str) -> str:
    """Digest of a text without what differs from run to run, and without blanks around it."""
    return sha256(normalise(text).strip().encode("utf-8", "surrogatepass")).hexdigest()


def graph_events(graphs: list[Graph], compile_id: str, graph_direction: Direction | None) -> list[Event]:
    """Return one event per graph of one function, in the order given.

    `graph_direction` is that of the only graph of a function without a backward.
    """
    changes = _changes(graphs)
    first: dict[str, str] = {}
    directions = _directions(graphs, graph_direction)
    events = []
    for graph in graphs:
        stage, name = graph.stage, graph.file.name
        event = Event(
            kind="pass" if stage.pass_name else "graph",
            name=normalise(stage.pass_name or stage.label),
            stage=stage.stage,
            phase=stage.phase,
            compile_id=compile_id,
            direction=stage.direction or directions.get(name),
            language="python",
            text=graph.file.read,
            measure=lambda file=graph.file: measure_text(file.read() or ""),  # type: ignore[misc] # mypy infers no defaults
            changed=changes.get(name),
            files=[name],
            inferred=["compile_id", "order"],
            size=graph.file.size,
            unavailable=graph.file.problem,
        )
        event.inferred += ["direction"] * (stage.direction is None and event.direction is not None)
        event.inferred += ["changed"] * (event.changed is not None)
        if stage.order is not None:
            event.data = {"position": stage.order}
        if graph.digest is not None:
            twin = first.setdefault(graph.digest, name)
            if twin != name:
                event.data = {**(event.data or {}), "same_as": twin}
                event.inferred.append("data.same_as")
        events.append(event)
    return events


def _place(graph: Graph) -> tuple[int, int, int, int, str]:
    stage = graph.stage
    order = -1 if stage.order is None else stage.order
    if stage.stage == "post_grad" and stage.pass_name is None:
        order = _LAST  # AFTER POST GRAD ends what the passes do
    phase = {"before": 0, None: 1, "after": 2}[stage.phase]
    return _RANK.get(stage.stage, _RANK[""]), graph.number, order, phase, graph.file.name


def _changes(graphs: list[Graph]) -> dict[str, bool]:
    """Tell of each after-graph whether it differs from its before, where the pair can be told."""
    sides: dict[tuple[object, ...], dict[str, list[Graph]]] = defaultdict(lambda: {"before": [], "after": []})
    middles: list[Graph] = []
    for graph in graphs:
        if graph.digest is None:
            continue
        if graph.stage.phase is not None:
            sides[_pair_key(graph.stage)][graph.stage.phase].append(graph)
        elif graph.stage.pass_name and "." in graph.stage.pass_name:
            middles.append(graph)
    changes: dict[str, bool] = {}
    for both in sides.values():
        changes.update(_compared(both["before"], both["after"]))
    for graph in middles:
        stage = graph.stage._replace(pass_name=(graph.stage.pass_name or "").rpartition(".")[0])
        befores = sides.get(_pair_key(stage), {}).get("before", [])
        same = [before for before in befores if before.number == graph.number]
        if same:
            changes[graph.file.name] = same[0].digest != graph.digest
    return changes


def _pair_key(stage: Stage) -> tuple[object, ...]:
    return stage.stage, stage.pass_name, stage.order, stage.direction


def _compared(befores: list[Graph], afters: list[Graph]) -> dict[str, bool]:
    if not befores:
        return {}
    if [graph.number for graph in afters] == [graph.number for graph in befores]:
        pairs = zip(befores, afters, strict=True)
        return {after.file.name: after.digest != before.digest for before, after in pairs}
    digests = {graph.digest for graph in befores}  # a text that no before has was changed, whichever it was
    return {after.file.name: after.digest not in digests for after in afters}


def _directions(graphs: list[Graph], alone: Direction | None) -> dict[str, Direction]:
    """Tell forward from backward where the name does not: one of each at most, or no backward at all."""
    by_stage: dict[str, list[Graph]] = defaultdict(list)
    for graph in graphs:
        if graph.stage.pass_name is None and graph.stage.direction is None:
            by_stage[graph.stage.stage].append(graph)
    trains = any(graph.stage.stage in ("joint", "backward") for graph in graphs)
    if not trains:
        plain = [*by_stage["forward"], *by_stage["post_grad"], *(g for g in graphs if g.stage.pass_name)]
        return {graph.file.name: alone or "inference" for graph in plain}
    found: dict[str, Direction] = {graph.file.name: "forward" for graph in by_stage["forward"]}
    backwards = [graph for graph in graphs if graph.stage.stage == "backward"]
    post = by_stage["post_grad"]
    if len(by_stage["forward"]) == 1 and len(backwards) == 1 and len(post) == 2:
        # Inductor compiles the backward graph at the first backward, or right after the forward one
        found[post[0].file.name], found[post[1].file.name] = "forward", "backward"
    return found
