"""GraphTransformObserver: each Inductor pass that runs under it, with the graph before and after."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from structdump.bundle.graphs import measure_graph
from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session

Snapshot = list[tuple[Any, Any, Any, Any]]


def snapshot(graph: Any) -> Snapshot:
    """Return what a pass can change of each node. It holds the objects, so none is reused meanwhile."""
    return [(node, node.target, node.args, node.kwargs) for node in graph.nodes]


def differs(before: Snapshot, after: Snapshot) -> bool:
    """Tell whether a pass changed the graph: nodes, order, targets or arguments."""
    if len(before) != len(after):
        return True
    for old, new in zip(before, after, strict=True):
        if any(a is not b for a, b in zip(old, new, strict=True)) and old != new:
            return True
    return False


def install_passes() -> Callable[[], None]:
    """Wrap `GraphTransformObserver.__enter__` and `__exit__`; return how to undo that.

    From torch/fx/passes/graph_transform_observer.py: `apply_gm_pass` and `apply_graph_pass` run each
    pass of Inductor inside the observer as a context (torch 2.9 to 2.13).
    """
    observer = sys.modules["torch.fx.passes.graph_transform_observer"].GraphTransformObserver
    enter, leave = observer.__enter__, observer.__exit__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        HUB.each("passes", functools.partial(_begun, self))
        return enter(self)

    @functools.wraps(leave)
    def left(self: Any, kind: Any, value: Any, trace: Any) -> Any:
        result = leave(self, kind, value, trace)
        HUB.each("passes", functools.partial(_ended, self, value))
        return result

    observer.__enter__, observer.__exit__ = entered, left

    def undo() -> None:
        if observer.__exit__ is left:
            observer.__enter__, observer.__exit__ = enter, leave

    return undo


def _begun(observer: Any, session: Session) -> None:
    if session.policy.wants_pass(observer.passname):
        state_of(session).passes[id(observer)] = (snapshot(observer.gm.graph), measure_graph(observer.gm))


def _ended(observer: Any, error: BaseException | None, session: Session) -> None:
    begun = state_of(session).passes.pop(id(observer), None)
    if begun is None:
        return
    before, counts = begun
    module = observer.gm
    after = snapshot(module.graph)
    changed = differs(before, after)
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    data: dict[str, Any] = {"nodes_before": counts[0]}
    if changed:
        data["ops_before"] = counts[1]
    if error is not None:
        data["error"] = f"{type(error).__name__}: {error}"
    session.record(
        Event(
            kind="pass",
            name=observer.passname,
            stage=observer.subsystem or "inductor",
            phase="after",
            compile_id=compile_id,
            attempt=attempt,
            graph_id=graph_id,
            direction=direction,
            language="python",
            text=lambda: _printed(module, after, session),
            measure=lambda: measure_graph(module) if changed else counts,
            changed=changed,
            data=data,
        )
    )


def _printed(module: Any, now: Snapshot, session: Session) -> str:
    """Print the graph, or return the last print of it if nothing has changed since."""
    state = state_of(session)
    last = state.printed.get(module)
    if last is not None and not differs(last[0], now):
        return last[1]
    text: str = module.print_readable(print_output=False, include_stride=True, include_device=True)
    state.printed[module] = (now, text)
    return text
