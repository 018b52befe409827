"""Below the graph: Inductor's IR around fusion, and compile commands."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import State, state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session

_PRINTING = threading.Lock()
#: What fusion notes on a node and `debug_str` does not print (torch/_inductor/scheduler.py, 2.9 to 2.13).
_UNPRINTED = frozenset({"ancestors", "last_usage", "max_order", "min_order", "mpi_buffer", "mpi_node"})


def install_ir() -> Callable[[], None]:
    """Answer `V.debug.ir_pre_fusion(nodes)` and `ir_post_fusion(nodes)`; return how to undo that.

    The scheduler calls them around fusion (torch/_inductor/debug.py, log_ir_pre_fusion, torch 2.9 to 2.13).
    """
    debug = sys.modules["torch._inductor.debug"].DebugContext
    undos = [_wrap_ir(debug, "ir_pre_fusion", "before"), _wrap_ir(debug, "ir_post_fusion", "after")]

    def undo() -> None:
        for one in undos:
            one()

    return undo


def _wrap_ir(owner: Any, name: str, phase: Literal["before", "after"]) -> Callable[[], None]:
    def log(self: Any, nodes: Any) -> Any:
        HUB.each("ir", functools.partial(_ir, nodes, phase))
        # DebugContext has no such method: its __getattr__ answers with a formatter's or a no-op.
        return self.__getattr__(name)(nodes)

    setattr(owner, name, log)

    def undo() -> None:
        if owner.__dict__.get(name) is log:
            delattr(owner, name)

    return undo


def _ir(nodes: Any, phase: Literal["before", "after"], session: Session) -> None:
    _record(
        session,
        f"{'pre' if phase == 'before' else 'post'}_fusion",
        f"Inductor IR {phase} fusion",
        lambda: _printed(nodes, state_of(session)),
        phase=phase,
    )


def _printed(nodes: Any, state: State) -> str:
    with _quick_printing(state):
        return "\n\n\n".join(node.debug_str() for node in nodes)


@contextlib.contextmanager
def _quick_printing(state: State) -> Iterator[None]:
    """Have IR printed to the same text in a fraction of the time.

    To print the body of a loop, `LoopBodyBlock.debug_str` (torch/_inductor/loop_body.py, torch 2.9 to 2.13)
    makes a module of it, which compiles its code; here the code is generated and no more, and remembered
    until after fusion. So is the text of a node (torch/_inductor/scheduler.py) if fusion changed nothing
    of it. Sympy prints the same few sizes thousands of times. Triton code that torch may generate for a
    print alone is left out: that touches its counters, and the kernels that run are in the bundle.
    """
    block = sys.modules["torch._inductor.loop_body"].LoopBodyBlock
    node = sys.modules["torch._inductor.scheduler"].BaseSchedulerNode
    printable = sys.modules["sympy.core._print_helpers"].Printable
    slow_node, slow_expression = node.debug_str, printable.__str__

    def body_str(self: Any, name: str = "block") -> str:
        code = state.bodies.get(self.graph)
        if code is None:
            code = self.graph.python_code("self").src.strip()
            code = state.bodies[self.graph] = re.sub(r";[^\n]*", "", code)
        return code.replace("def forward(", f"def {name}(")

    def node_str(self: Any) -> str:
        now = _facets(self)
        known, text = state.nodes.get(self, (None, ""))
        if known is None or not _same_facets(known, now):
            text = slow_node(self)
            state.nodes[self] = (now, text)
        return text

    def expression_str(self: Any) -> str:
        text = state.expressions.get(self)
        if text is None:
            text = state.expressions[self] = slow_expression(self)
        return text

    ours: tuple[tuple[Any, str, Any], ...] = (
        (block, "debug_str", body_str),
        (node, "debug_str", node_str),
        (node, "_debug_str_for_device", lambda _: []),
        (printable, "__str__", expression_str),
        (printable, "__repr__", expression_str),
    )
    with _PRINTING:  # so that no thread takes what another put here for torch's own
        former = [(o, name, o.__dict__[name]) for o, name, _ in ours if name in o.__dict__]
        try:
            for owner, name, function in ours:
                if name in owner.__dict__:
                    setattr(owner, name, function)
            yield
        finally:
            for owner, name, function in former:
                setattr(owner, name, function)


def _facets(node: Any) -> list[Any]:
    """Return the objects that a node's text is made of: its own, its buffers', the layouts it refers to."""
    graph = sys.modules["torch._inductor.virtualized"].V.graph
    owners = [node, *node.get_outputs(), *(getattr(b, "node", None) for b in node.get_outputs())]
    found: list[Any] = []
    for owner in owners:
        for key, value in getattr(owner, "__dict__", {}).items():
            if key in _UNPRINTED or key.endswith("cache"):
                continue
            found.append(key)
            found.extend(value if isinstance(value, (list, tuple, AbstractSet)) else (value,))
    found.extend(
        getattr(graph.try_get_buffer(dep.name), "layout", None) for dep in node.read_writes.reads_and_writes()
    )
    return found


def _same_facets(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(
        x is y or (type(x) in (int, str) and x == y) for x, y in zip(a, b, strict=True)
    )


def install_commands() -> Callable[[], None]:
    """Wrap `CppBuilder.get_command_line` (torch/_inductor/cpp_builder.py); return how to undo that."""
    owner = sys.modules["torch._inductor.cpp_builder"].CppBuilder
    former = owner.get_command_line

    @functools.wraps(former)
    def get_command_line(self: Any) -> Any:
        command = former(self)
        HUB.each("commands", functools.partial(_command, command))
        return command

    owner.get_command_line = get_command_line

    def undo() -> None:
        if owner.get_command_line is get_command_line:
            owner.get_command_line = former

    return undo


def _command(command: str, session: Session) -> None:
    seen = state_of(session).commands
    if command not in seen:
        seen.add(command)
        _record(session, "compile_command", "C++ compile command", lambda: command)


def _record(
    session: Session,
    stage: str,
    name: str,
    text: Callable[[], str],
    phase: Literal["before", "after"] | None = None,
) -> None:
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    session.record(
        Event(
            kind="ir",
            name=name,
            stage=stage,
            phase=phase,
            compile_id=compile_id,
            attempt=attempt,
            graph_id=graph_id,
            direction=direction,
            text=text,
        )
    )
