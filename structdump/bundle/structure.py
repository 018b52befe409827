"""The outline of a JSON text, before a parser spends memory on it."""

from __future__ import annotations

from structdump.bundle.limits import TRUST, Limits
from structdump.errors import LimitError

_CHUNK = 1 << 20
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")  # whether they match is the parser's to say
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_whole(data: bytes, limits: Limits) -> bool:
    """Return False if the JSON ends before its outermost value does, going by quotes and brackets alone.

    Raises LimitError if it is nested deeper, or holds more values, than `limits` allow.

    Example: `is_whole(b'{"a": [1, 2', Limits()) is False`.
    """
    brackets, values, strings, in_string = bytearray(), 0, 0, False
    start = 0
    while start < len(data):
        chunk = data[start : start + _CHUNK]
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:  # never cut between a backslash and what it escapes
            chunk = data[start : start + _CHUNK + 1]
        start += len(chunk)
        # With escaped backslashes and then escaped quotes gone, each quote left begins or ends a string.
        chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        strings += chunk.count(b'"') // 2
        parts = chunk.split(b'"')
        outside = b"".join(parts[in_string::2])
        in_string ^= len(parts) % 2 == 0
        values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if values > limits.nodes or strings > 2 * limits.nodes:
            raise LimitError(
                f"the JSON holds more than {limits.nodes:,} values, more than a bundle may; {TRUST}"
            )
        brackets += outside.translate(_AS_SQUARE, _NO_BRACKETS)
    for _ in range(limits.nesting):  # each round takes the innermost level away
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets or brackets.count(b"[") > limits.nesting:
        raise LimitError(f"the JSON is nested deeper than {limits.nesting} levels, deeper than a bundle is")
    return not in_string and (not brackets or b"]" in brackets)
