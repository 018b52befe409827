"""Dynamo's bytecode hooks, and depyf's decompiler."""

from __future__ import annotations

import dis
import functools
import io
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context
from structdump.sources.hub import HUB
from structdump.sources.session import Session

#: Per session, the code objects that were compiled, with their globals.
_compiled: weakref.WeakKeyDictionary[Session, dict[types.CodeType, dict[str, Any]]] = (
    weakref.WeakKeyDictionary()
)


def _bytecode_hook(code: types.CodeType, new_code: types.CodeType) -> None:
    """Dynamo's bytecode hook; it returns None, so what runs is what would have run."""
    HUB.each("bytecode", functools.partial(_bytecode, code, new_code))


def _bytecode(code: types.CodeType, new_code: types.CodeType, session: Session) -> None:
    compile_id, attempt = compile_context()
    _compiled.setdefault(session, {}).setdefault(code, _frame_globals(code))

    def event(kind: Any, stage: str, language: str, text: Callable[[], str]) -> None:
        session.record(
            Event(
                kind=kind,
                name=f"{stage} {code.co_name}",
                stage=stage,
                compile_id=compile_id,
                attempt=attempt,
                language=language,
                text=text,
            )
        )

    if "torch_dynamo_resume_in" not in code.co_name:  # of these torch reports the bytecode itself
        event("bytecode", "original", "text", lambda: disassemble(code))
        event("bytecode", "transformed", "text", lambda: disassemble(new_code))
    event("source", "decompiled", "python", lambda: _decompiled(new_code, session))


def disassemble(code: types.CodeType) -> str:
    """Return the listing that `dis` prints, nested code included."""
    out = io.StringIO()
    dis.dis(code, file=out)
    return out.getvalue()


def _decompiled(code: types.CodeType, session: Session) -> str:
    try:
        from depyf.decompiler import Decompiler
    except ImportError as error:
        session.fail("depyf", f"not installed, no decompiled source: {error}")
        return f"# depyf is not installed: this is the disassembly.\n{disassemble(code)}"
    try:
        return str(Decompiler(code).decompile(overwite_fn_name=code.co_name))
    except Exception as error:  # noqa: BLE001 # depyf raises whatever its handlers raise on new opcodes
        session.fail("decompile", error)
        return f"# depyf could not decompile this code: this is the disassembly.\n{disassemble(code)}"


def _frame_globals(code: types.CodeType) -> dict[str, Any]:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        traced = frame.f_locals.get("frame") if frame.f_code.co_name == "_compile" else None
        if traced is not None and getattr(traced, "f_code", None) is code:
            found: dict[str, Any] = traced.f_globals
            return found
        frame = frame.f_back
    return {}


def install_bytecode() -> Callable[[], None]:
    """Register with Dynamo (torch/_dynamo/convert_frame.py); return how to undo that."""
    handle = sys.modules["torch._dynamo.convert_frame"].register_bytecode_hook(_bytecode_hook)
    remove: Callable[[], None] = handle.remove
    return remove


def collect_code(session: Session) -> None:
    """Record depyf's `full_code`: each compiled function with its guards and transformed versions."""
    compiled = _compiled.pop(session, {})
    names = {code.co_name for code in compiled}
    for code, scope in compiled.items():
        if any(f"resume_in_{name}" in code.co_name for name in names):
            continue  # it stands in the full code of the function that it resumes
        session.record(
            Event(
                kind="source",
                name=f"full_code_for_{code.co_name}",
                stage="full_code",
                language="python",
                text=lambda c=code, s=scope: _full_code(c, s),  # type: ignore[misc] # mypy infers no defaults
            )
        )


def _full_code(code: types.CodeType, scope: dict[str, Any]) -> str:
    from depyf.explain.utils import CodeProxy, DynamoOptimizationResult

    kept = CodeProxy.instances, CodeProxy.used_instances
    CodeProxy.instances, CodeProxy.used_instances = {}, set()
    try:
        return str(DynamoOptimizationResult(code, None, scope).to_src())
    finally:
        CodeProxy.instances, CodeProxy.used_instances = kept
