"""The record that every source yields: one thing the compiler did, its text not yet printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.model import Artifact, Autotune, Direction, Kernel, Kind, Phase, Subgraph
from structdump.bundle.normal import normalise

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


def described(event: Event, number: int) -> Artifact:
    """Return the artifact that an event becomes as its `number`th, without text, counts and tuning.

    Example::

        described(Event("graph", "AFTER POST GRAD", stage="post_grad"), 7).seq  # 7
    """
    return Artifact.model_construct(
        seq=number,
        kind=event.kind,
        stage=event.stage,
        name=normalise(event.name),
        phase=event.phase,
        compile_id=event.compile_id,
        attempt=event.attempt or None,
        graph_id=event.graph_id,
        direction=event.direction,
        subgraph=event.subgraph,
        language=event.language,
        changed=event.changed,
        data=event.data,
        kernel=event.kernel,
        files=event.files,
        inferred=event.inferred,
    )
