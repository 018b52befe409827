"""How long a program was in hooks."""

from __future__ import annotations

import threading
from time import perf_counter


class Clock:
    """Measures the time in seconds during which at least one thread is inside.

    Threads that compile side by side wait for each other in a hook; what each waits is not added up.

    Example::

        clock = Clock()
        with clock:
            ...
        clock.seconds
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = 0
        self._since = 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._since = perf_counter()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self.seconds += perf_counter() - self._since
