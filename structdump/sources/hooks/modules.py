"""PyCodeCache.load_by_key_path, depyf's point for Inductor's modules."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import state_of
from structdump.sources.hub import HUB
from structdump.sources.kernels import module_role
from structdump.sources.session import Session

_loading = threading.local()


def install_modules() -> Callable[[], None]:
    """Wrap `load_by_key_path` (torch/_inductor/codecache.py); return how to undo that."""
    cache = sys.modules["torch._inductor.codecache"].PyCodeCache
    before = cache.__dict__["load_by_key_path"]
    current = cache.load_by_key_path

    def load_by_key_path(*args: Any, **kwargs: Any) -> Any:
        path = args[1] if len(args) > 1 else kwargs.get("path")
        outer = getattr(_loading, "depth", 0)
        if not outer and isinstance(path, str):
            HUB.each("load_by_key_path", functools.partial(_module, path))
        _loading.depth = outer + 1
        try:
            return current(*args, **kwargs)
        finally:
            _loading.depth = outer

    cache.load_by_key_path = load_by_key_path

    def undo() -> None:
        if cache.__dict__.get("load_by_key_path") is load_by_key_path:
            cache.load_by_key_path = before

    return undo


def _module(path: str, session: Session) -> None:
    """Record a module that was loaded by itself: what tuning benchmarks, not what will run.

    The output code's own module was seen at trace_structured just before, and what loads while it
    executes are its kernels, which are read from its source.
    """
    if path in state_of(session).output_paths or module_role(_read(path)) == "output_code":
        return
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    session.record(
        Event(
            kind="candidate",
            name=os.path.basename(path).removesuffix(".py"),  # noqa: PTH119 # a name from torch
            stage="candidate",
            compile_id=compile_id,
            attempt=attempt,
            graph_id=graph_id,
            direction=direction,
            language="python",
            text=lambda: _read(path),
        )
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 # a path from torch
        return file.read()
