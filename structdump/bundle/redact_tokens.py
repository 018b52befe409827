"""Which token stands for which value, and how often each rule found one."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class Tokens:
    """The table of one bundle: numbers tokens by first appearance. Safe to share between threads.

    `taken` gives the highest number that each label has already in what is redacted once more.
    """

    def __init__(self, taken: Mapping[str, int] | None = None) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = dict(taken or {})
        self._counts: dict[str, int] = {}

    def get(self, label: str, value: str) -> str:
        """Return the token of a value: `<label-N>`, a new one if the value is new."""
        token = self._tokens.get((label, value))
        if token is None:
            with self._lock:
                token = self._tokens.get((label, value))
                if token is None:
                    number = self._numbers.get(label, 0) + 1
                    self._numbers[label] = number
                    token = self._tokens[label, value] = f"<{label}-{number}>"
        return token

    def count(self, rule: str, times: int = 1) -> None:
        """Note that a rule replaced something."""
        with self._lock:
            self._counts[rule] = self._counts.get(rule, 0) + times

    def replace(self, label: str, value: str, rule: str = "") -> str:
        """Count a replacement by the rule (or by the label's own) and return the token."""
        self.count(rule or label)
        return self.get(label, value)

    def items(self) -> list[tuple[str, str, str]]:
        """Return label, value and token of each value, in the order in which they appeared."""
        with self._lock:
            return [(label, value, token) for (label, value), token in self._tokens.items()]

    @property
    def counts(self) -> dict[str, int]:
        """How many values each rule replaced, by rule name, sorted by it."""
        with self._lock:
            return dict(sorted(self._counts.items()))
