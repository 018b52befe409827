"""Where torch is in its work, asked from inside a hook."""

from __future__ import annotations

import sys
from typing import Any

from structdump.bundle.model import Direction

DIRECTIONS: dict[str, Direction] = {
    "forward": "forward",
    "backward": "backward",
    "inference": "inference",
    "joint": "joint",
}


def compile_context(explicit: Any = None) -> tuple[str | None, int | None]:
    """Return torch's current compile id, such as `0/0`, and attempt (torch._guards.CompileContext)."""
    from torch._guards import CompileContext

    trace_id = CompileContext.current_trace_id()
    if trace_id is not None:
        return str(trace_id.compile_id), trace_id.attempt
    found = explicit or CompileContext.current_compile_id()
    return (None if found is None else str(found)), None


def graph_context() -> tuple[str | None, Direction | None]:
    """Return AOTAutograd's name of the graph being compiled and its direction, or None for each.

    From torch/_functorch/_aot_autograd/logging_utils.py: `graph_being_compiled` holds `0_forward`
    and the like, and is empty outside of a graph's compile.
    """
    module = sys.modules.get("torch._functorch._aot_autograd.logging_utils")
    current = getattr(module, "graph_being_compiled", None)
    if module is None or not current:
        return None, None
    part = str(current[0]).rsplit("_", 1)[-1]
    return module.get_aot_graph_name(), DIRECTIONS.get(part)
