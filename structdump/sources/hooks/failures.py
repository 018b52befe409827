"""Exceptions that end a compile."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import Any

from structdump.sources.hooks.context import compile_context
from structdump.sources.hub import HUB
from structdump.sources.session import Session


def install_failures() -> Callable[[], None]:
    """Hook MetricsContext.__exit__ (torch/_dynamo/metrics_context.py), which every compile leaves by.

    It sees the exception that ends a compile, a lazily compiled backward included.
    """
    owner = sys.modules["torch._dynamo.metrics_context"].MetricsContext
    former = owner.__exit__

    @functools.wraps(former)
    def leave(self: Any, kind: Any, value: Any, trace: Any) -> Any:
        if value is not None and getattr(self, "_level", 1) == 1:
            HUB.each("metrics", functools.partial(_failed, value))
        return former(self, kind, value, trace)

    owner.__exit__ = leave

    def undo() -> None:
        if owner.__exit__ is leave:
            owner.__exit__ = former

    return undo


def _failed(error: BaseException, session: Session) -> None:
    compile_id, _ = compile_context()
    if compile_id is not None:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        session.book.failed(compile_id, type(error).__qualname__, str(error), "".join(lines))
        session.note_compile(compile_id)
