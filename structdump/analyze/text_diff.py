"""What differs between two texts, as a short unified diff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from structdump.bundle.align import align

CONTEXT = 2
LONGEST = 120  # lines of a diff
UNFOLDED = 3  # lines shown of many that differ in type alone


@dataclass(slots=True)
class TextDifference:
    """What differs between two texts.

    `lines` is a unified diff (`@@`, ` `, `-`, `+`) of what counts, at most `LONGEST` lines. In graphs
    it uses A's names; a name with a prime exists in B alone. `more` is how many lines are not shown.
    `ops` counts the operations that B has more (+) or fewer (-) of. `only_order`: the same operations,
    in another order. `types`: how many nodes differ in shape or type alone, of which a few are shown.
    """

    lines: list[str] = field(default_factory=list)
    more: int = 0
    added: int = 0
    removed: int = 0
    ops: dict[str, int] = field(default_factory=dict)
    only_order: bool = False
    types: int = 0

    @property
    def changed(self) -> list[str]:
        """The lines that were added and removed, without their surroundings."""
        return [line for line in self.lines if line[0] in "+-"]


@dataclass(slots=True)
class Edit:
    """One line of a diff: `mark` is " ", "-", "+", or "~" for a change that is not shown."""

    mark: str
    text: str
    number: int
    where: str | None = None
    op: str = ""


def diff_lines(a: Sequence[str], b: Sequence[str]) -> TextDifference | None:
    """Compare two texts line by line; None if they are equal.

    Example::

        >>> diff_lines(["x"], ["x", "y"]).lines
        ['@@ line 1 @@', ' x', '+y']
    """
    if a == b:
        return None
    edits: list[Edit] = []
    i = j = 0
    for end_a, end_b in [*align(a, b), (len(a), len(b))]:
        edits += [Edit("-", text, n) for n, text in enumerate(a[i:end_a], i + 1)]
        edits += [Edit("+", text, n) for n, text in enumerate(b[j:end_b], j + 1)]
        if end_a < len(a):
            edits.append(Edit(" ", a[end_a], end_a + 1))
        i, j = end_a + 1, end_b + 1
    return render(edits)


def render(edits: Sequence[Edit]) -> TextDifference:
    """Lay edits out as a unified diff with little context."""
    found = TextDifference(types=sum(e.mark == "~" for e in edits))
    found.added = sum(e.mark == "+" for e in edits)
    found.removed = sum(e.mark == "-" for e in edits)
    shown = 0  # the edits before this one are done with
    for n, change in enumerate(edits):
        if change.mark not in "+-":
            continue
        start = max(n - CONTEXT, shown, 0)
        if start > shown or not found.lines:
            where = f" {change.where}" if change.where else ""
            found.lines.append(f"@@ line {edits[start].number}{where} @@")
        for edit in edits[start : n + CONTEXT + 1]:
            found.lines.append((" " if edit.mark == "~" else edit.mark) + edit.text)
        shown = max(shown, min(n + CONTEXT + 1, len(edits)))
    found.more = max(0, len(found.lines) - LONGEST)
    del found.lines[LONGEST:]
    return found
