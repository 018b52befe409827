"""What a capture has seen: how much of it was kept, listed or counted, why, and which hooks failed."""

from __future__ import annotations

from typing import Any


class Tally:
    """Counts events so that kept + indexed + dropped = seen at any moment. The caller locks.

    Example::

        tally = Tally()
        number = tally.begin()
        tally.settle(kept=True)
    """

    def __init__(self) -> None:
        self.kept = 0
        self.indexed = 0
        self.dropped = 0
        self.omitted: dict[str, dict[str, int]] = {}
        self._errors: dict[tuple[str, str], int] = {}

    @property
    def seen(self) -> int:
        """How many events there were."""
        return self.kept + self.indexed + self.dropped

    @property
    def errors(self) -> int:
        """How many times a hook failed."""
        return sum(self._errors.values())

    def begin(self) -> int:
        """Return the number of a new event, which counts as dropped until it is stored."""
        number = self.seen
        self.dropped += 1
        return number

    def settle(self, *, kept: bool) -> None:
        """Note that an event is stored: with its text, or as an entry without."""
        self.dropped -= 1
        if kept:
            self.kept += 1
        else:
            self.indexed += 1

    def omit(self, reason: str, how: str, size: int | None = None) -> None:
        """Note why an event has no text: `how` is `indexed` or `dropped`, `size` its bytes if known."""
        count = self.omitted.setdefault(reason, {"indexed": 0, "dropped": 0, "bytes": 0})
        count[how] += 1
        count["bytes"] += size or 0

    def fail(self, hook: str, message: str) -> None:
        """Note a hook's failure; the same one again is counted."""
        self._errors[hook, message] = self._errors.get((hook, message), 0) + 1

    def totals(self) -> dict[str, int]:
        """Return the counts as `completeness` has them."""
        return {"seen": self.seen, "kept": self.kept, "indexed": self.indexed, "dropped": self.dropped}

    def hook_errors(self) -> list[dict[str, Any]]:
        """Return each failure once, with its count."""
        return [{"hook": h, "error": e, "count": n} for (h, e), n in self._errors.items()]
