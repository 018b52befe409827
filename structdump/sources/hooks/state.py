"""What the hooks remember for one session: its mapper, counts taken early, and where kernels lie."""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from pathlib import Path
from typing import Any

from structdump.sources.event import Event
from structdump.sources.kernel_events import with_kernels
from structdump.sources.session import Session
from structdump.sources.trace_events import TraceMapper

Counts = tuple[int, dict[str, int]]


class State:
    """The memory of one session's hooks.

    `measures` holds the counts of graphs that depyf's point saw just before torch traced them;
    `paths` the events of each kernel by the stem of its file, a hash of its source, so that several graphs
    may share one; `kernels` those without a file, by name. `tuned` holds what is known of a file's tuning.
    `passes` holds the graph as it was when a pass began, `printed` the last print of each graph, `bodies`
    that of each loop's. `vllm` is vLLM's config, `files` are those of vLLM's own that were recorded, and
    `since` is when this began, in seconds since the epoch.
    """

    def __init__(self, session: Session) -> None:
        self.measures: dict[tuple[Any, ...], Counts] = {}
        self.kernels: dict[str, Event] = {}
        self.paths: dict[str, list[Event]] = {}
        self.folders: dict[str, set[str]] = {}
        self.output_paths: set[str] = set()
        self.passes: dict[Any, list[Any]] = {}
        self.printed: weakref.WeakKeyDictionary[Any, tuple[Any, str]] = weakref.WeakKeyDictionary()
        self.bodies: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.nodes: weakref.WeakKeyDictionary[Any, tuple[list[Any], str]] = weakref.WeakKeyDictionary()
        self.expressions: dict[Any, str] = {}
        self.configs: set[tuple[Any, ...]] = set()
        self.tuned: dict[str, tuple[str | None, list[tuple[str, dict[str, Any]]]]] = {}
        self.commands: set[str] = set()
        self.autotuners: list[tuple[weakref.ref[Any], str | None]] = []
        recorder = with_kernels(functools.partial(self._measured, session.record), self._found)
        self.vllm: Any = None
        self.files: set[Path] = set()
        self.since = time.time()
        self.mapper = TraceMapper(recorder, session.book, intern=_interned)

    def _measured(self, record: Any, event: Event) -> None:
        if event.kind == "graph" and event.measure is None:
            counts = self.measures.pop((event.compile_id, event.stage, event.phase), None)
            if counts is not None:
                event.measure = lambda: counts
        elif event.kind == "output_code" and event.data:
            self.output_paths.add(str(event.data.get("file")))
        record(event)

    def _found(self, kernel: Event, path: str | None) -> None:
        if path is None:
            self.kernels[kernel.name] = kernel
            return
        paths = {stem(path): path}
        if kernel.stage == "triton" and isinstance(kernel.text, str):
            # A template's comment names a file that its source, as it stands beside it, is not loaded from.
            name = file_name(kernel.text)
            paths[name] = os.path.join(os.path.dirname(os.path.dirname(path)), name[1:3], f"{name}.py")  # noqa: PTH118, PTH120 # a path from torch
        for name, place in paths.items():
            self.paths.setdefault(name, []).append(kernel)
            self.lies_in(place)

    def lies_in(self, path: str) -> None:
        """Remember a folder that the file of a kernel lies in: cached output code may name another one."""
        self.folders.setdefault(stem(path), set()).add(os.path.dirname(path))  # noqa: PTH120 # a path from torch

    def kernels_of(self, name: str | None, path: str | None) -> list[Event]:
        """Return the kernels that lie in this file; without one, those of a name if it is of one file."""
        found = self.paths.get(stem(path or ""))
        if found is None and name in self.kernels:
            return [self.kernels[name]]
        if found is None and path is None:
            named = [kernels for kernels in self.paths.values() if any(k.name == name for k in kernels)]
            found = named[0] if len({tuple(map(id, kernels)) for kernels in named}) == 1 else None
        return found or []


def file_of(autotuner: Any, reload_kernel: Any = None) -> str | None:
    """Return the file that a `CachingAutotuner`'s kernel lies in, or its name.

    Heuristics know it, except `template` (torch/_inductor/runtime/triton_heuristics.py, torch 2.9 to 2.13).
    The Python function of a kernel knows it too, unless another process compiled it; then its source is bound
    in the function that would load it here (`AsyncCompile.triton`), and the file has its name from that.
    """
    path = getattr(autotuner, "filename", None)
    if not isinstance(path, str):
        path = getattr(getattr(getattr(autotuner.fn, "fn", None), "__code__", None), "co_filename", None)
    if isinstance(path, str):
        return path
    for cell in getattr(reload_kernel, "__closure__", None) or ():
        load = cell.cell_contents
        if isinstance(load, functools.partial) and load.args and isinstance(load.args[-1], str):
            return file_name(load.args[-1])
    return None


def file_name(source: str) -> str:
    """Return the name of the file, without suffix, that torch loads such a source from.

    From torch/_inductor/codecache.py, `PyCodeCache.write` (torch 2.9 to 2.13).
    """
    name: str = sys.modules["torch._inductor.codecache"].get_hash(source.strip())
    return name


def stem(path: str) -> str:
    """Return the name of a module's file without folder and suffix."""
    return os.path.basename(path).removesuffix(".py")  # noqa: PTH119 # a path from torch


_states: weakref.WeakKeyDictionary[Session, State] = weakref.WeakKeyDictionary()


def state_of(session: Session) -> State:
    """Return what the hooks remember for `session`."""
    state = _states.get(session)
    if state is None:
        state = _states[session] = State(session)
    return state


def _interned(number: int) -> str | None:
    # torch numbers the file names of stack frames (torch/_logging/structured.py, INTERN_TABLE).
    table = sys.modules["torch._logging.structured"].INTERN_TABLE
    return next((text for text, n in table.items() if n == number), None)
