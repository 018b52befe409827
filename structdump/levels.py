"""The level table: what each level keeps of each kind of artifact. Data, not code.

The policy reads it to decide, the budget reads its order (most valuable first), and the README
and `structdump doctor` print it. The first row that matches an artifact counts.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

Level = Literal["low", "medium", "full"]
Cell = Literal["text", "index", "drop", "winner"]
LEVELS: tuple[Level, ...] = ("low", "medium", "full")


class Row(NamedTuple):
    """One row: what it matches, and its cell per level.

    `stage` is a shell glob; `phase` and `changed` match anything when None.
    """

    what: str
    kind: str
    stage: str
    phase: str | None
    changed: bool | None
    low: Cell
    medium: Cell
    full: Cell


TABLE: tuple[Row, ...] = (
    Row("errors", "event", "error", None, None, "text", "text", "text"),
    Row("graph breaks", "event", "graph_break", None, None, "text", "text", "text"),
    Row("recompile reasons", "event", "recompile", None, None, "text", "text", "text"),
    Row(
        "what the framework above configured", "event", "framework_config", None, None, "text", "text", "text"
    ),
    Row("compilation metrics", "metrics", "*", None, None, "text", "text", "text"),
    Row("cache-key lines", "cache", "key_lines", None, None, "drop", "drop", "text"),
    Row("cache state", "cache", "*", None, None, "text", "text", "text"),
    Row("captured graph", "graph", "captured", None, None, "text", "text", "text"),
    Row("post-grad graph", "graph", "post_grad", "after", None, "text", "text", "text"),
    Row("best configs of kernels that run", "best_config", "*", None, None, "text", "text", "text"),
    Row("autotuning: choices and times", "autotune", "*", None, None, "winner", "text", "text"),
    Row("kernels that run", "kernel", "*", None, None, "index", "text", "text"),
    Row("output code", "output_code", "*", None, None, "index", "text", "text"),
    Row("standalone repro", "repro", "*", None, None, "index", "text", "text"),
    Row("runtime asserts, tensorify", "graph", "runtime_asserts", None, None, "index", "index", "text"),
    Row("runtime asserts, tensorify", "graph", "tensorify", None, None, "index", "index", "text"),
    Row("graphs before a stage", "graph", "*", "before", None, "index", "index", "text"),
    Row(
        "joint, forward, backward, split and other graphs", "graph", "*", None, None, "index", "text", "text"
    ),
    Row("graphs before a pass", "pass", "*", "before", None, "index", "index", "text"),
    Row("passes that changed nothing", "pass", "*", None, False, "index", "index", "text"),
    Row("passes that changed the graph", "pass", "*", None, None, "index", "text", "text"),
    Row("guards", "guards", "*", None, None, "index", "text", "text"),
    Row("decompiled and full code", "source", "*", None, None, "index", "text", "text"),
    Row("autotune candidates", "candidate", "*", None, None, "drop", "index", "text"),
    Row("bytecode", "bytecode", "*", None, None, "drop", "index", "text"),
    Row("Inductor IR; TTIR, TTGIR, LLIR, PTX", "ir", "*", None, None, "drop", "index", "text"),
    Row("other events", "event", "*", None, None, "index", "index", "text"),
    Row("chromium trace and other bulk telemetry", "trace", "*", None, None, "drop", "drop", "text"),
)


def rank(kind: str, stage: str | None = None, phase: str | None = None, changed: bool | None = None) -> int:
    """Return the index of the first matching row: the lower, the more valuable.

    Example::

        >>> TABLE[rank("graph", "post_grad", "after")].what
        'post-grad graph'
    """
    for index, row in enumerate(TABLE):
        if (
            row.kind == kind
            and (row.stage == "*" or fnmatchcase(stage or "", row.stage))
            and (row.phase is None or row.phase == phase)
            and (row.changed is None or row.changed == changed)
        ):
            return index
    return len(TABLE)


def cell(
    level: Level, kind: str, stage: str | None = None, phase: str | None = None, changed: bool | None = None
) -> Cell:
    """Return what `level` does with such an artifact; an unknown kind is kept at full alone."""
    index = rank(kind, stage, phase, changed)
    if index == len(TABLE):
        return "text" if level == "full" else "drop"
    row = TABLE[index]
    return {"low": row.low, "medium": row.medium, "full": row.full}[level]
