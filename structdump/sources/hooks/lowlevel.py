"""Below the graph: Inductor's IR around fusion, and compile commands."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session

_PRINTING = threading.Lock()


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
        lambda: _printed(nodes, state_of(session).bodies),
        phase=phase,
    )


def _printed(nodes: Any, bodies: weakref.WeakKeyDictionary[Any, str]) -> str:
    with _quick_printing(bodies):
        return "\n\n\n".join(node.debug_str() for node in nodes)


@contextlib.contextmanager
def _quick_printing(bodies: weakref.WeakKeyDictionary[Any, str]) -> Iterator[None]:
    """Have IR printed to the same text in a fraction of the time.

    To print the body of a loop, `LoopBodyBlock.debug_str` (torch/_inductor/loop_body.py, torch 2.9 to 2.13)
    makes a module of it, which compiles its code; here the code is generated and no more, and remembered
    until after fusion. Sympy prints the same few sizes thousands of times.
    """
    block = sys.modules["torch._inductor.loop_body"].LoopBodyBlock
    printable = sys.modules["sympy.core._print_helpers"].Printable
    expressions: dict[Any, str] = {}
    slow = printable.__str__

    def debug_str(self: Any, name: str = "block") -> str:
        code = bodies.get(self.graph)
        if code is None:
            code = self.graph.python_code("self").src.strip()
            code = bodies[self.graph] = re.sub(r";[^\n]*", "", code)
        return code.replace("def forward(", f"def {name}(")

    def quick(self: Any) -> str:
        text = expressions.get(self)
        if text is None:
            text = expressions[self] = slow(self)
        return text

    with _PRINTING:  # so that no thread takes what another put here for sympy's own
        former = block.debug_str, printable.__str__, printable.__repr__
        block.debug_str, printable.__str__, printable.__repr__ = debug_str, quick, quick
        try:
            yield
        finally:
            block.debug_str, printable.__str__, printable.__repr__ = former


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
