"""Any Python value as one that JSON can hold; pure."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_DEEPEST = 60  # levels that are kept; readers accept Limits.nesting
_MOST_NODES = 200_000  # values that are kept
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def clean(text: str) -> str:
    r"""Return `text` as it can be stored as UTF-8: lone surrogates become `\udc80`-like escapes.

    Example: `clean("a\udcff") == "a\\udcff"`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def leaf(obj: Any) -> Any:
    """Return something simpler for an object that is no JSON value: text, a list, a dictionary.

    Example: `leaf(Path("a")) == "a"`, `leaf({2, 1}) == [1, 2]`, `leaf(object()) == "<object object>"`.
    """
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return bytes(obj).decode("utf-8", "backslashreplace")
    try:
        if isinstance(obj, (set, frozenset)):
            return sorted(obj, key=repr)
        if isinstance(obj, Mapping):
            return dict(obj)
        if hasattr(type(obj), "model_dump"):
            return obj.model_dump(by_alias=True)
        return clean(str(obj) if isinstance(obj, PurePath) else _ADDRESS.sub("", str(obj)))
    except Exception:  # noqa: BLE001  # foreign methods may raise anything; a bundle must still be written
        return f"<{type(obj).__module__}.{type(obj).__qualname__}>"


def rebuilt(obj: Any) -> Any:
    """Return `obj` rebuilt of dictionaries with text keys, lists, text, numbers that fit 64 bits, and None.

    What refers to itself becomes `"<cycle>"`; what is nested too deep, or too much, `"<cut>"`.
    Objects that orjson knows, such as dates, stay as they are.
    """
    return _Rebuilder().of(obj, 0)


class _Rebuilder:
    def __init__(self) -> None:
        self.nodes = 0
        self.open: set[int] = set()

    def of(self, obj: Any, depth: int) -> Any:
        self.nodes += 1
        if isinstance(obj, enum.Enum):
            obj = obj.value
        if isinstance(obj, str):
            return clean(str(obj))
        if obj is None or isinstance(obj, (bool, float)):
            return obj
        if isinstance(obj, int):
            return int(obj) if -(1 << 63) <= obj < 1 << 64 else _digits(obj)
        if depth >= _DEEPEST or self.nodes > _MOST_NODES:
            return "<cut>"
        if id(obj) in self.open:
            return "<cycle>"
        self.open.add(id(obj))
        try:
            return self._inner(obj, depth + 1)
        finally:
            self.open.discard(id(obj))

    def _inner(self, obj: Any, depth: int) -> Any:
        if isinstance(obj, Mapping):
            simple = obj if isinstance(obj, dict) else leaf(obj)
            if isinstance(simple, dict):
                return {_key(k): self.of(v, depth) for k, v in simple.items()}
            return simple
        if isinstance(obj, (list, tuple)):
            return [self.of(v, depth) for v in obj]
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            return {f.name: self.of(getattr(obj, f.name, None), depth) for f in dataclasses.fields(obj)}
        return self.of(leaf(obj), depth)


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to print more than 4300 digits
        return hex(number)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return clean(str(key))
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return _digits(key) if isinstance(key, int) else str(leaf(key))
