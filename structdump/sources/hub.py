"""Which sessions listen, and the points at which hooks are installed for them."""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

import wrapt

from structdump.sources.session import Session

Undo = Callable[[], None]


class UnfitError(Exception):
    """A point does not look as expected in this release, so its hook is left out."""


@dataclass(frozen=True)
class Point:
    """One place to hook: once `module` is imported, `install` hooks it and returns how to undo that."""

    name: str
    module: str
    install: Callable[[], Undo]


class Hub:
    """Keeps the hooks installed while at least one session listens, and calls each session safely.

    Modules are never imported for the sake of a hook: a point waits until its module is.
    """

    def __init__(self) -> None:
        self.points: tuple[Point, ...] = ()
        self.sessions: tuple[Session, ...] = ()
        self._undo: dict[str, Undo] = {}
        self._unfit: dict[str, str] = {}
        self._watched: set[str] = set()
        self._lock = threading.RLock()
        self._local = threading.local()
        self._forks = False

    def attach(self, session: Session) -> None:
        """Start feeding `session`. Hooks that do not fit are recorded in it."""
        with self._lock:
            if not self._forks:
                self._forks = True
                os.register_at_fork(after_in_child=self.abandon)
            self.sessions = (*self.sessions, session)
            for point in self.points:
                if point.module in sys.modules:
                    self._install(point)
                elif point.name not in self._watched:
                    self._watched.add(point.name)
                    wrapt.when_imported(point.module)(functools.partial(self._late, point))
            for name, reason in self._unfit.items():
                session.fail(name, reason)

    def detach(self, session: Session) -> None:
        """Stop feeding `session`; the last one to leave takes the hooks off."""
        with self._lock:
            self.sessions = tuple(s for s in self.sessions if s is not session)
            if not self.sessions:
                for name in list(self._undo)[::-1]:
                    try:
                        self._undo.pop(name)()
                    except Exception as error:  # noqa: BLE001 # the other hooks must come off all the same
                        session.fail(name, error)

    def abandon(self) -> None:
        """In a forked child: let go of the parent's sessions, whose files are the parent's."""
        self._lock = threading.RLock()
        self._local = threading.local()
        left, self.sessions = self.sessions, ()
        for session in left:
            session.abandon()

    def each(self, hook: str, action: Callable[[Session], None]) -> None:
        """Call `action` for each active session; an error is recorded in it and goes no further.

        What the action itself triggers (printing a graph may log) is not seen again.
        """
        if getattr(self._local, "busy", False):
            return
        self._local.busy = True
        # What a hook allocates is gone when it ends; searching a compiler's heap for garbage on its
        # account takes longer than all the rest of it.
        collecting = gc.isenabled()
        gc.disable()
        try:
            for session in self.sessions:
                if session.active:
                    with session.clock:
                        try:
                            action(session)
                        except Exception as error:  # noqa: BLE001 # a hook's error must never reach a compile
                            session.fail(hook, error)
        finally:
            if collecting:
                gc.enable()
            self._local.busy = False

    def installed(self) -> dict[str, str]:
        """Return each point's state: `installed`, `waiting` for its module, or why it does not fit."""
        return {
            p.name: "installed" if p.name in self._undo else self._unfit.get(p.name, "waiting")
            for p in self.points
        }

    def _late(self, point: Point, _module: object) -> None:
        self._install(point)

    def _install(self, point: Point) -> None:
        with self._lock:
            if not self.sessions or point.name in self._undo:
                return
            try:
                self._undo[point.name] = point.install()
            except Exception as error:  # noqa: BLE001 # another release of torch or depyf may lack anything
                self._unfit[point.name] = f"not installed: {error or type(error).__name__}"
                for session in self.sessions:
                    session.fail(point.name, self._unfit[point.name])


#: The one hub of this process. `structdump.sources.hooks` gives it its points.
HUB = Hub()
