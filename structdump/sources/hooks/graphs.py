"""torch.fx's lazy_format_graph_code, depyf's own point: every graph that torch would log."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from structdump.bundle.graphs import count_ops, measure_graph
from structdump.bundle.names import stage_of
from structdump.sources.event import Event
from structdump.sources.hooks.context import DIRECTIONS, compile_context, graph_context
from structdump.sources.hooks.passes import differs, snapshot
from structdump.sources.hooks.state import state_of
from structdump.sources.hooks.swap import TABLE, swap_code
from structdump.sources.hub import HUB
from structdump.sources.session import Session

#: Stages that torch sends through trace_structured as well, and better: with shapes, warm caches
#: included. At depyf's point their graph is then only measured.
TRACED = frozenset(
    {
        ("captured", None),
        ("pre_grad", "before"),
        ("joint", None),
        ("forward", None),
        ("backward", None),
        ("post_grad", "after"),
    }
)


def _lazy_format_graph_code(*args: Any, **kwargs: Any) -> Any:
    # This code runs in place of torch's, with torch's globals; see swap.py.
    table = __structdump__  # type: ignore[name-defined] # noqa: F821 # in torch's globals
    table.graph_seen(args, kwargs)
    return table.lazy_format_graph_code(*args, **kwargs)


def _lazy_inside_depyf(*args: Any, **kwargs: Any) -> Any:
    table = __structdump__  # type: ignore[name-defined] # noqa: F821 # in torch's globals
    table.graph_seen(args, kwargs)
    return table.depyf(*args, **kwargs)


def graph_seen(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record the graph of one `lazy_format_graph_code(name, gm, maybe_id, **print options)` call."""
    names = ("name", "gm", "maybe_id")
    bound = dict(zip(names, args, strict=False)) | {k: v for k, v in kwargs.items() if k in names}
    options = {k: v for k, v in kwargs.items() if k not in (*names, "colored", "print_output")}
    HUB.each("lazy_format_graph_code", functools.partial(_graph, bound, options))


def _graph(bound: dict[str, Any], options: dict[str, Any], session: Session) -> None:
    name, gm = str(bound["name"]), bound["gm"]
    stage = stage_of(name)
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    traced = stage.pass_name is None and (stage.stage, stage.phase) in TRACED
    if traced and hasattr(TABLE, "trace_structured"):
        state_of(session).measures[(compile_id, stage.stage, stage.phase)] = measure_graph(gm)
        return
    changed: bool | None = None
    data: dict[str, Any] = {} if stage.order is None else {"order": stage.order}
    key, began = (id(gm), stage.pass_name), state_of(session).passes
    if stage.pass_name and stage.phase == "before":
        began[key] = snapshot(gm.graph)
    elif stage.phase == "after" and key in began:
        before = began.pop(key)
        changed = differs(before, snapshot(gm.graph))
        data["nodes_before"] = len(before) // 4
        if changed:
            data["ops_before"] = count_ops(before[::4])
    session.record(
        Event(
            kind="pass" if stage.pass_name else "graph",
            name=stage.pass_name or name.split(":")[0],
            stage=stage.stage,
            phase=stage.phase,
            compile_id=compile_id,
            attempt=attempt,
            graph_id=graph_id,
            direction=DIRECTIONS.get(stage.stage, direction),
            language="python",
            text=lambda: gm.print_readable(print_output=False, **options),
            measure=lambda: measure_graph(gm),
            changed=changed,
            data=data or None,
        )
    )


def install_graphs() -> Callable[[], None]:
    """Swap the code of `lazy_format_graph_code` (torch/fx/_utils.py); return how to undo that."""
    function = sys.modules["torch._dynamo.utils"].lazy_format_graph_code
    former, undo = swap_code(function, _lazy_format_graph_code, ("name", "gm", "maybe_id"))
    TABLE.lazy_format_graph_code, TABLE.graph_seen = former, graph_seen
    return undo


def install_depyf() -> Callable[[], None]:
    """Put the filter inside a `depyf.prepare_debug` that the user's program enters.

    `prepare_debug` looks the name up when it is entered and swaps its code in.
    """
    module: Any = sys.modules["depyf.explain.enable_debugging"]
    theirs = module.patched_lazy_format_graph_code
    target = sys.modules["torch._dynamo.utils"].lazy_format_graph_code
    body = types.FunctionType(theirs.__code__, target.__globals__, theirs.__name__, theirs.__defaults__)
    TABLE.depyf = body
    module.patched_lazy_format_graph_code = _lazy_inside_depyf

    def undo() -> None:
        if module.patched_lazy_format_graph_code is _lazy_inside_depyf:
            module.patched_lazy_format_graph_code = theirs

    return undo
