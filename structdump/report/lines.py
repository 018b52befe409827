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
_NARROWEST = 24  # cells; in less, nobody reads a column


class Line(NamedTuple):
    """One line before it is wrapped: `first` stands before it, `rest` before what wraps from it.

    `tail` follows where there is room, else has a line of its own, as much of it as fits. `right` goes to
    the right edge. What wraps from a table's last column, which begins after `hang` cells, goes on there.
    """

    body: Text
    first: str = ""
    rest: str = ""
    tail: Text | None = None
    right: Text | None = None
    hang: int = 0


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


def print_lines(lines: Iterable[Line], console: Console, *, wrap: bool = True) -> None:
    """Print lines wrapped at the console's width, words kept whole in a pipe; no trailing spaces.

    Without `wrap` each line stays one, for the next program in a pipe.
    """
    width = min(console.width, _WIDEST)
    for line in lines:
        for text in _wrapped(line, width, fold=console.is_terminal) if wrap else [_whole(line)]:
            console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _whole(line: Line) -> Text:
    more = [part for part in (line.tail, line.right) if part is not None and part.cell_len]
    return say((line.first, "dim"), line.body, *(say("  ", part) for part in more))


def _wrapped(line: Line, width: int, *, fold: bool) -> list[Text]:
    room = width - cell_len(line.first)
    right = line.right if line.right is not None else Text()
    head = max(20, room - right.cell_len - 2) if right.cell_len else max(20, room)
    rest = line.rest + " " * (line.hang if width - line.hang - cell_len(line.rest) >= _NARROWEST else 0)
    body, below = line.body, line.tail
    if below is not None and body.cell_len + 2 + below.cell_len <= head:
        body, below = say(body, "  ", below), None
    ends = _breaks(body.plain, head, max(20, width - cell_len(rest)), line.hang, fold=fold)
    out: list[Text] = []
    for number, piece in enumerate(body.divide(ends)):
        piece.rstrip()
        text = say((rest if number else line.first, "dim"), piece)
        if number == 0 and right.cell_len:
            text = say(text, " " * max(2, width - text.cell_len - right.cell_len), right)
        out.append(text)
    if below is not None and below.cell_len:
        below = below.copy()
        below.truncate(max(20, width - cell_len(rest)), overflow="ellipsis")
        out.append(say((rest, "dim"), below))
    return out


def _breaks(plain: str, first: int, room: int, hang: int, *, fold: bool) -> list[int]:
    """Return where to divide text: before words that don't fit, and within words that never would if `fold`.

    The columns of a table, as far as `hang`, stay together with the first word of the last one.
    """
    ends, start, limit = [], 0, first
    hang += len(plain[hang:]) - len(plain[hang:].lstrip())
    for word in re.finditer(r"\S+\s*", plain):
        if word.start() > max(start, hang) and cell_len(plain[start : word.end()].rstrip()) > limit:
            start, limit = word.start(), room
            ends.append(start)
        # A long word, such as a path, is cut at the edge of a screen and kept whole for the next program.
        while fold and cell_len(plain[start : word.end()].rstrip()) > limit:
            start, limit = start + _fitting(plain, start, limit), room
            ends.append(start)
    return ends


def _fitting(plain: str, start: int, limit: int) -> int:
    count = cells = 0
    for character in plain[start:]:
        cells += cell_len(character)
        if cells > limit:
            break
        count += 1
    return max(1, count)


def table(
    header: Sequence[str], rows: Sequence[Sequence[Text]], right: frozenset[int] = frozenset()
) -> list[Line]:
    """Lay rows out in columns as wide as their content; the last one wraps. `right` columns end flush.

    Columns in which no row has anything are left out.
    """
    used = [i for i in range(len(header)) if any(row[i].plain for row in rows)]
    every = [[Text(h, style="dim") for h in header], *rows]
    widths = {i: max(row[i].cell_len for row in every) for i in used}
    hang = sum(widths[i] + 2 for i in used[:-1])
    lines = []
    for row in every:
        text = Text()
        for i in used:
            space = " " * (widths[i] - row[i].cell_len)
            text.append_text(say(space, row[i]) if i in right else say(row[i], space))
            text.append("  ")
        text.rstrip()
        lines.append(Line(text, hang=hang))
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
