"""Which token stands for which value, and how often each rule found one."""

from __future__ import annotations

import threading


class Tokens:
    """The table of one bundle: numbers tokens by first appearance. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}
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

    @property
    def counts(self) -> dict[str, int]:
        """How many values each rule replaced, by rule name, sorted by it."""
        with self._lock:
            return dict(sorted(self._counts.items()))
