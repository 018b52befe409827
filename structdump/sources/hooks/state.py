"""What the hooks remember for one session: its mapper, counts taken early, and where kernels lie."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from structdump.sources.event import Event
from structdump.sources.kernel_events import with_kernels
from structdump.sources.session import Session
from structdump.sources.trace_events import TraceMapper

Counts = tuple[int, dict[str, int]]


class State:
    """The memory of one session's hooks.

    `measures` holds the counts of graphs that depyf's point saw just before torch traced them;
    `kernels` the event of each kernel by name, and `paths` by the file it lies in. `passes` holds the
    graph as it was when a pass began, `printed` the last print of each graph, `bodies` that of each loop's.
    """

    def __init__(self, session: Session) -> None:
        self.measures: dict[tuple[Any, ...], Counts] = {}
        self.kernels: dict[str, Event] = {}
        self.paths: dict[str, Event] = {}
        self.output_paths: set[str] = set()
        self.passes: dict[int, list[Any]] = {}
        self.printed: weakref.WeakKeyDictionary[Any, tuple[Any, str]] = weakref.WeakKeyDictionary()
        self.bodies: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.configs: set[tuple[Any, ...]] = set()
        self.commands: set[str] = set()
        self.autotuners: list[weakref.ref[Any]] = []
        recorder = with_kernels(functools.partial(self._measured, session.record), self._found)
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
        self.kernels[kernel.name] = kernel
        if path is not None:
            self.paths[path] = kernel


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
