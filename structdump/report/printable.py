"""Text of a stranger's bundle made safe to print: it must not steer the terminal."""

from __future__ import annotations

import unicodedata

# Cc: control characters, escape among them; Cf: invisible ones that reorder or hide text; Cs: lone
# surrogates, which no terminal can show; Zl and Zp: separators that some terminals take for line ends.
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: object, *, multiline: bool = False) -> str:
    r"""Return text with every character that could steer a terminal written as an escape.

    Tabs become spaces; line ends stay only if `multiline`.

    Example::

        >>> printable("a\x1b[31mb\nc")
        'a\\x1b[31mb\\nc'
    """
    whole = str(text).expandtabs(4)
    if whole.isascii() and whole.isprintable():
        return whole
    kept = "\n" if multiline else ""
    return "".join(
        c if c in kept or unicodedata.category(c) not in _UNSAFE else c.encode("unicode_escape").decode()
        for c in whole
    )
