"""Lines of a report: text with a prefix that goes on when the text is wrapped, and a right-hand part."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from structdump.report.printable import printable

_WIDEST = 132


class Line(NamedTuple):
    """One line before it is wrapped: `first` stands before it, `rest` before what wraps from it.

    `right` goes to the right edge where there is room.
    """

    body: Text
    first: str = ""
    rest: str = ""
    right: Text | None = None


def say(*pieces: object) -> Text:
    """Put text together from strings of any origin and `(string, style)` pairs, everything made printable.

    Example: `say("0/0 ", ("failed", "red"))`
    """
    text = Text()
    for piece in pieces:
        if isinstance(piece, Text):
            text.append_text(piece)
        elif isinstance(piece, tuple):
            text.append(printable(piece[0]), style=piece[1])
        else:
            text.append(printable(piece))
    return text


def labelled(label: str, body: Text, width: int = 11) -> Line:
    """Return a line with a dim label in a column of its own."""
    lead = " " * (width + 1)
    return Line(say((label.ljust(width), "dim"), " ", body), "", lead)


def print_lines(lines: Iterable[Line], console: Console) -> None:
    """Print lines wrapped at the console's width, words kept whole in a pipe; no trailing spaces."""
    width = min(console.width, _WIDEST)
    for line in lines:
        for text in _wrapped(line, console, width):
            console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _wrapped(line: Line, console: Console, width: int) -> list[Text]:
    body = line.body
    if line.right is not None:
        space = width - cell_len(line.first) - body.cell_len - line.right.cell_len
        body = say(body, " " * space if space >= 2 else "  ", line.right)
    room = width - max(cell_len(line.first), cell_len(line.rest))
    first = Text(line.first, style="dim")
    if body.cell_len <= width - cell_len(line.first) and "\n" not in body.plain:
        return [first + body]
    room = max(room, 20)
    # A long word, such as a path, is cut at the edge of a screen and kept whole for the next program.
    head = list(body.wrap(console, room, overflow="fold")) if console.is_terminal else _divided(body, room)
    out: list[Text] = []
    for number, piece in enumerate(head):
        piece.rstrip()
        out.append((first if number == 0 else Text(line.rest, style="dim")) + piece)
    return out


def _divided(body: Text, room: int) -> list[Text]:
    ends, start = [], 0
    for word in re.finditer(r"\S+\s*", body.plain):
        if word.start() > start and cell_len(body.plain[start : word.end()].rstrip()) > room:
            start = word.start()
            ends.append(start)
    return list(body.divide(ends))


def table(
    header: Sequence[str], rows: Sequence[Sequence[Text]], right: frozenset[int] = frozenset()
) -> list[Line]:
    """Lay rows out in columns as wide as their content; the last one wraps. `right` columns end flush."""
    every = [[Text(h, style="dim") for h in header], *rows]
    widths = [max(row[i].cell_len for row in every) for i in range(len(header))]
    indent = sum(w + 2 for w in widths[:-1])
    lines = []
    for row in every:
        text = Text()
        for i, cell in enumerate(row):
            space = " " * (widths[i] - cell.cell_len)
            if i in right:
                text.append(space)
                text.append_text(cell)
            else:
                text.append_text(cell)
                text.append(space)
            text.append("  ")
        text.rstrip()
        lines.append(Line(text, "", " " * min(indent, 40)))
    return lines


def seconds(value: float | None) -> str:
    """Write a duration in its natural unit; nothing for None.

    Example::

        >>> seconds(0.00123), seconds(19.234), seconds(754)
        ('1.23 ms', '19.2 s', '12 min 34 s')
    """
    if value is None or not math.isfinite(value):
        return ""
    if value >= 120:
        return f"{int(value) // 60} min {int(value) % 60} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def size(value: int | None) -> str:
    """Write a number of bytes in decimal units; nothing for None.

    Example::

        >>> size(225389), size(12)
        ('225 kB', '12 B')
    """
    if value is None:
        return ""
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.3g} {unit}" if amount < 1000 else f"{amount:.0f} {unit}"


def plural(count: int, noun: str) -> str:
    """Count something.

    Example::

        >>> plural(1, "kernel"), plural(2, "pass")
        ('1 kernel', '2 passes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"
