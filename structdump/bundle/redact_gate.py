"""A gate tells at a few GB/s whether a pattern may match a text at all.

Python's own engine takes 10 ns a character for patterns that do not start with a literal, and there
are two dozen. pydantic, which is needed anyway, holds Rust's regex engine: it looks for many
literals at once with vector instructions, and never backtracks (pydantic-core, since 2.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic_core import SchemaValidator, core_schema

Gate = Callable[[str], bool]


def gate(patterns: Iterable[str]) -> Gate:
    """Return a function that says whether any of the patterns (in Rust's syntax) is found in a text.

    It also says yes to text with lone surrogates, which that engine cannot read.
    """
    # One by one, since a union of them all would fall off the engine's fast path.
    found = [_finder(pattern) for pattern in patterns]

    def is_open(text: str) -> bool:
        return any(find(text) for find in found) or not (text.isascii() or _ANY(text))

    return is_open


def _finder(pattern: str) -> Gate:
    return SchemaValidator(
        core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    ).isinstance_python


_ANY = _finder("")
