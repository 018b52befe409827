"""Values of trace records that are made only when asked for, and the text that they have in a log."""

from __future__ import annotations

import json
from typing import Any


class Once:
    """A value, or a callable that is called at most once, when the value is first asked for."""

    __slots__ = ("_done", "_source", "_value")

    def __init__(self, source: Any) -> None:
        self._done = not callable(source)
        self._source = source
        self._value = source if self._done else None

    def __call__(self) -> Any:
        """Return the value; None if making it failed before."""
        if not self._done:
            self._done = True
            source, self._source = self._source, None
            self._value = source()
        return self._value


class RecordText:
    """The text of a record: its payload, or its metadata where it has none.

    `named` metadata holds no more than a name and an encoding, and is no text.
    """

    __slots__ = ("_metadata", "_named", "_payload")

    def __init__(self, payload: Once, metadata: Once, named: bool) -> None:
        self._payload = payload
        self._metadata = metadata
        self._named = named

    def __call__(self) -> str | None:
        """Return the text; None if there is none."""
        value = self._payload()
        if value is None and not self._named:
            value = self._metadata() or None
        return None if value is None else to_text(value)


def to_text(value: object) -> str:
    r"""Return a payload as torch writes it into a log: strings as they are, else JSON by line.

    The layout is that of `trace_structured` in torch/_logging/_internal.py (2.9 to 2.13), so that
    live texts and texts from a log are equal; sets, whose order is not, are sorted.

    Example::

        >>> to_text(["a", 1])
        '[\n"a",\n1\n]'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(item, default=_plain) for item in value) + "\n]"
    return json.dumps(value, default=_plain, indent=0)


def _plain(value: object) -> object:
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else repr(value)
