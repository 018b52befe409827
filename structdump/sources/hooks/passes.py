"""GraphTransformObserver: each Inductor pass that runs under it, with the graph before and after."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from structdump.bundle.graphs import count_ops
from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session

#: node, target, args, kwargs of every node, one after the other
Snapshot = list[Any]
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


def snapshot(graph: Any) -> Snapshot:
    """Return what a pass can change of each node. It holds the objects, so none is reused meanwhile."""
    return [part for n in graph.nodes for part in (n, n.target, n.args, n.kwargs)]


def differs(before: Snapshot, after: Snapshot) -> bool:
    """Tell whether a pass changed the graph: nodes, order, targets or arguments."""
    if len(before) != len(after):
        return True
    if all(map(operator.is_, before, after)):
        return False
    return not all(map(_same, before, after))


def _same(a: Any, b: Any) -> bool:
    """Compare without asking anything of the program's own: comparing symbolic sizes makes guards."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, slice):
        return _same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return type(a) in _PLAIN and bool(a == b)


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
        state_of(session).passes[id(observer)] = snapshot(observer.gm.graph)


def _ended(observer: Any, error: BaseException | None, session: Session) -> None:
    before = state_of(session).passes.pop(id(observer), None)
    if before is None:
        return
    module = observer.gm
    after = snapshot(module.graph)
    changed = differs(before, after)
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    data: dict[str, Any] = {"nodes_before": len(before) // 4}
    if changed:
        data["ops_before"] = count_ops(before[::4])
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
            measure=lambda: (len(after) // 4, count_ops(after[::4])),
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
