"""What a bundle says, put together per compile: the facts that a person asks for first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Artifact, Compile, OmittedCount

#: Fields of a best_config file that say how it was found, not what was chosen.
CONFIG_FACTS = frozenset({"configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash"})


@dataclass(slots=True)
class Stage:
    """All graphs of one stage and direction of a compile; more than one when the graph was split.

    `nodes` is the node count of each after the stage, `before` that of each before it, as far as known.
    `changed` is None where nothing tells.
    """

    name: str
    direction: str | None
    nodes: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    changed: bool | None = None
    kept: bool = False
    runs: int = 0


@dataclass(slots=True)
class Part:
    """One compile, or what belongs to none (`compile` is None), with what was made for it."""

    id: str | None
    compile: Compile | None
    stages: list[Stage]
    passes: list[ArtifactView]
    kernels: list[ArtifactView]
    artifacts: int
    resumed: list[Part] = field(default_factory=list)

    @property
    def changed(self) -> list[ArtifactView]:
        """The runs of passes that changed the graph."""
        return [p for p in self.passes if p.changed]


def parts(bundle: LoadedBundle) -> list[Part]:
    """Return the compiles of a bundle as a forest: a resumed function stands under the break before it.

    What belongs to no compile comes last, if it holds graphs, passes or kernels.

    Example::

        >>> [part.id for part in parts(structdump.load("run.json.zst"))]
        ['0/0', '0/1']
    """
    grouped: dict[str | None, list[ArtifactView]] = {}
    known = {c.id for c in bundle.compiles}
    for artifact in bundle.artifacts:
        grouped.setdefault(artifact.compile_id if artifact.compile_id in known else None, []).append(artifact)
    found: dict[str, Part] = {}
    for record in bundle.compiles:
        found.setdefault(record.id, _part(record.id, record, grouped.get(record.id, ())))
    children: set[str] = set()
    for part in found.values():
        for graph_break in part.compile.graph_breaks if part.compile else ():
            child = found.get(graph_break.resumed_by or "")
            if child is None or child.id in children or _reaches(child, part):
                continue
            children.add(str(child.id))
            part.resumed.append(child)
    forest = [part for part in found.values() if part.id not in children]
    rest = _part(None, None, grouped.get(None, ()))
    if rest.stages or rest.passes or rest.kernels:
        forest.append(rest)
    return forest


def _reaches(start: Part, goal: Part) -> bool:
    open_parts = [start]
    while open_parts:
        part = open_parts.pop()
        if part is goal:
            return True
        open_parts += part.resumed
    return False


def _part(id_: str | None, record: Compile | None, artifacts: Iterable[ArtifactView]) -> Part:
    artifacts = list(artifacts)
    return Part(
        id_,
        record,
        _stages([a for a in artifacts if a.kind == "graph"]),
        [a for a in artifacts if a.kind == "pass" and a.phase != "before"],
        [a for a in artifacts if a.kind == "kernel" and a.kernel is not None and a.kernel.role == "used"],
        len(artifacts),
    )


def _stages(graphs: list[ArtifactView]) -> list[Stage]:
    last: dict[tuple[Any, ...], int | None] = {}
    for g in graphs:
        last[g.stage, g.direction] = g.attempt
    found: dict[tuple[Any, ...], Stage] = {}
    for g in graphs:
        key = g.stage, g.direction
        if g.attempt != last[key]:
            continue  # an earlier try of the same compile, given up at a graph break
        stage = found.setdefault(key, Stage(g.stage or g.name, g.direction))
        if g.nodes is not None:
            (stage.before if g.phase == "before" else stage.nodes).append(g.nodes)
        if g.phase != "before":
            stage.runs += 1
            stage.kept = stage.kept or g.digest is not None
            if g.changed is not None:
                stage.changed = bool(stage.changed) or g.changed
    return list(found.values())


def config(value: dict[str, Any] | None) -> dict[str, Any]:
    """Return what a launch configuration sets, without the facts of how it was found.

    Example::

        >>> config({"XBLOCK": 64, "num_warps": 4, "configs_hash": "1f", "found_by_coordesc": False})
        {'XBLOCK': 64, 'num_warps': 4}
    """
    return {k: v for k, v in (value or {}).items() if k not in CONFIG_FACTS}


def cures(bundle: LoadedBundle) -> list[tuple[str, OmittedCount, str]]:
    """Return per reason of omission: the reason, the counts, and what to set to get those texts."""
    return [(reason, count, cure(reason, bundle.level)) for reason, count in bundle.omitted.items()]


def cure(reason: str, level: str) -> str:
    """Return what to set so that what was left out for this reason is kept; empty if nothing helps.

    Example::

        >>> cure("filter:passes", "low")
        'widen passes (STRUCTDUMP_PASSES)'
    """
    if reason.startswith("filter:"):
        what = reason.removeprefix("filter:")
        return f"widen {what} (STRUCTDUMP_{what.upper()})"
    if reason == "level":
        higher = {"low": "STRUCTDUMP_LEVEL=medium or full", "medium": "STRUCTDUMP_LEVEL=full"}
        return higher.get(level, "")
    if reason in ("budget", "max_bytes"):
        return "raise max_bytes (STRUCTDUMP_MAX_BYTES)"
    if reason == "privacy":
        return "capture with privacy=normal"
    return ""


def why_not_kept(artifact: Artifact, level: str) -> str:
    """Return a sentence on why an artifact has no text, and what to set to have it next time."""
    reason = artifact.omitted.reason if artifact.omitted else "no text"
    said = {
        "level": f"level {level} only lists it",
        "budget": "the bundle's size limit left no room for it",
        "max_bytes": "the bundle's size limit left no room for it",
        "lost": "its text was not written before the process ended",
        "error": "making its text failed",
        "no text": "it has none",
    }.get(reason, f"left out by {reason}")
    help_ = cure(reason, level)
    return f"{said}; to have it, {_imperative(help_)}" if help_ else said


def _imperative(text: str) -> str:
    return f"set {text}" if text.startswith("STRUCTDUMP") else text
