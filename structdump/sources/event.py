"""The record that every source yields: one thing the compiler did, its text not yet printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.model import Autotune, Direction, Kernel, Kind, Phase, Subgraph

Text = str | Callable[[], str | None] | None
Measure = Callable[[], tuple[int, dict[str, int]]]


@dataclass(slots=True)
class Event:
    """One artifact as a source sees it.

    `text` may be a callable: it is called at most once, and only if the policy keeps the text.
    `measure` counts nodes and ops; it must be cheap, since indexed artifacts are measured too.
    `unavailable` says why there is no text to be had, `size` how many bytes it would have, if known.

    Example::

        Event("graph", "AFTER POST GRAD", stage="post_grad", compile_id="0/0",
              direction="forward", language="python", text=lambda: gm.print_readable(False))
    """

    kind: Kind
    name: str
    stage: str | None = None
    phase: Phase | None = None
    compile_id: str | None = None
    attempt: int | None = None
    graph_id: str | None = None
    direction: Direction | None = None
    subgraph: Subgraph | None = None
    language: str = "text"
    text: Text = None
    measure: Measure | None = None
    changed: bool | None = None
    data: Any = None
    kernel: Kernel | None = None
    autotune: Autotune | None = None
    files: list[str] = field(default_factory=list)
    inferred: list[str] = field(default_factory=list)
    unavailable: str | None = None
    size: int | None = None
