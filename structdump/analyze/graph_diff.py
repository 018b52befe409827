"""What differs between two printed graphs, as a short unified diff in which names do not count.

SSA names are numbered, so one more `add` renames every later one. Lines are aligned by what they do,
not by what they are called; the names of one graph are then mapped to those of the other, and a line
differs only if its operation, its constants, its type or the values it works on do.
"""

from __future__ import annotations

import re
from collections import Counter

from structdump.analyze.graph_lines import GRAPH, INPUT, Line, Source, defined_names, source_lines, take_apart
from structdump.analyze.line_pairs import moved_lines, pair_lines
from structdump.analyze.text_diff import UNFOLDED, Edit, TextDifference, render
from structdump.bundle.align import Pairs

_DETAILED = re.compile(r'"(\w+\[[^\]"\n]*\])\[[^\]"\n]*\][a-z]*(?::\d+)?"')
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def diff_graphs(a: str, b: str) -> TextDifference | None:
    r"""Compare two printed graphs, or two wrappers of kernels; None if they do the same.

    Example::

        >>> old = "  x = f(y)\n  z = g(x, 1)\n"
        >>> diff_graphs(old, "  q = f(y)\n  r = g(q, 1)\n") is None
        True
        >>> diff_graphs(old, "  x = f(y)\n  z = g(x, 2)\n").lines[-2:]
        ['-z = g(x, 1)', '+z = g(x, 2)']
    """
    comparison = _Comparison(*_sources(a, b))
    return None if comparison.same() else comparison.result()


def same_graph(a: str, b: str) -> bool:
    """Tell whether two printed graphs do the same; stops at the first line that does not."""
    return _Comparison(*_sources(a, b)).same()


def _sources(a: str, b: str) -> tuple[list[Source], list[Source]]:
    """Return the lines of both; strides and devices only if both are printed with them."""
    if (_DETAILED.search(a) is None) != (_DETAILED.search(b) is None):
        a, b = (_DETAILED.sub(r'"\1"', text) for text in (a, b))
    return source_lines(a), source_lines(b)


class _Names:
    """Which value of A is which of B, within one graph; nested graphs use the same names for others."""

    def __init__(self, defined_a: set[str], defined_b: set[str], common: set[str]):
        self._defined_a, self._defined_b, self._common = defined_a, defined_b, common
        self.to_a: dict[str, str] = {}
        self.to_b: dict[str, str] = {}

    def define(self, a: Line, b: Line) -> None:
        alike = len(a.defines) == len(b.defines)
        for x, y in zip(a.defines, b.defines, strict=False):
            if alike or x == y:  # of inputs that are unpacked in one line, the first ones are the same
                self.to_b[x], self.to_a[y] = y, x

    def same(self, x: str, y: str) -> bool:
        if x in self.to_b or y in self.to_a:
            return self.to_b.get(x) == y
        if x not in self._defined_a and y not in self._defined_b:  # symbols are one when they first meet
            self.to_b[x], self.to_a[y] = y, x
            return True
        return x == y and x in self._common

    def equal(self, a: Line, b: Line) -> bool:
        return (
            a.expression == b.expression
            and a.type == b.type
            and len(a.operands) == len(b.operands)
            and len(a.defines) == len(b.defines)
            and all(self.same(x, y) for x, y in zip(a.operands, b.operands, strict=True))
        )

    def differ_in_type_alone(self, a: Line, b: Line) -> bool:
        return (
            a.expression == b.expression
            and (a.type != b.type or len(a.operands) != len(b.operands))
            and all(self.same(x, y) for x, y in zip(a.operands, b.operands, strict=False))
        )

    def shown(self, name: str) -> str:
        """Return what a name of B is called in a diff: as in A where it is there, else with a prime."""
        if name in self.to_a:
            return self.to_a[name]
        return f"{name}'" if name in self._defined_a and name not in self._common else name


class _Comparison:
    def __init__(self, left: list[Source], right: list[Source]):
        head, tail = _common_ends(left, right)
        self.head, self.tail = left[:head], left[len(left) - tail :]

        self.names_a, self.names_b = defined_names(left), defined_names(right)
        self.common = defined_names(_last_graph(self.head) + _first_graph(self.tail))
        self.middle_a, self.middle_b = left[head : len(left) - tail], right[head : len(right) - tail]
        self.a: list[Line] = []
        self.b: list[Line] = []
        self.moved: Pairs = []
        self.folded = 0

    def same(self) -> bool:
        """Walk through both graphs side by side, up to the first line that differs."""
        if len(self.middle_a) != len(self.middle_b):
            return False
        self.names = _Names(self.names_a, self.names_b, self.common)
        for left, right in zip(self.middle_a, self.middle_b, strict=True):
            a, b = take_apart(left, self.names_a), take_apart(right, self.names_b)
            if left.text == GRAPH:
                self.names = _Names(self.names_a, self.names_b, set())
            if not self.names.equal(a, b):
                return False
            self.names.define(a, b)
            self.a.append(a)
            self.b.append(b)
        self.common = defined_names(_first_graph(self.tail))
        return all(edit.mark == " " for edit in self._tail_edits())

    def result(self) -> TextDifference | None:
        self.common = defined_names(_last_graph(self.head) + _first_graph(self.tail))
        self.a = [take_apart(s, self.names_a) for s in self.middle_a]
        self.b = [take_apart(s, self.names_b) for s in self.middle_b]
        self.folded = 0
        pairs = pair_lines(self.a, self.b)
        self.moved = moved_lines(self.a, self.b, pairs)
        edits = self._edits(pairs)
        changes = [e for e in edits if e.mark != " "]
        if not changes:
            return None
        edits = [_context(s) for s in self.head] + edits
        found = render(edits)
        found.ops = _ops(changes)
        found.types = self.folded
        found.only_order = bool(self.moved) and found.added == found.removed == len(self.moved)
        return found

    def _start(self, at: int) -> None:
        """Begin a graph at line `at` of A: forget the names of the one before."""
        self.names = _Names(self.names_a, self.names_b, self.common)
        end = next((n for n in range(at + 1, len(self.a)) if self.a[n].source.text == GRAPH), len(self.a))
        for i, j in self.moved:
            if at <= i < end:
                self.names.define(self.a[i], self.b[j])

    def _edits(self, pairs: Pairs) -> list[Edit]:
        self._start(0)
        edits: list[Edit] = []
        i = j = 0
        for at_a, at_b in [*pairs, (len(self.a), len(self.b))]:
            edits += [self._edit("-", s) for s in self.a[i:at_a]]
            edits += [self._edit("+", s) for s in self.b[j:at_b]]
            i, j = at_a + 1, at_b + 1
            if at_a < len(self.a):
                if self.a[at_a].source.text == GRAPH:
                    self.common = set()
                    self._start(at_a)
                edits += self._pair_edits(self.a[at_a], self.b[at_b])
        self.common = defined_names(_first_graph(self.tail))
        return edits + self._tail_edits()

    def _pair_edits(self, a: Line, b: Line) -> list[Edit]:
        equal = self.names.equal(a, b)
        only_type = not equal and self.names.differ_in_type_alone(a, b)
        self.names.define(a, b)
        if equal:
            return [self._edit(" ", a)]
        self.folded += only_type
        if only_type and self.folded > UNFOLDED:  # one shape that differs shows in every line after it
            return [Edit("~", a.source.text, a.source.number)]
        return [self._edit("-", a), self._edit("+", b)]

    def _tail_edits(self) -> list[Edit]:
        """Look at the equal end of both graphs only where it uses what has another name or is new."""
        near = _first_graph(self.tail)
        ours = {n for s in self.a for n in s.defines}
        theirs = {n for s in self.b for n in s.defines}
        other = (ours ^ theirs) | {n for n in ours | theirs if self.names.to_b.get(n) != n}
        if not other:
            return [_context(s) for s in self.tail]
        edits = []
        for source in near:
            a, b = take_apart(source, self.names_a), take_apart(source, self.names_b)
            edits += self._pair_edits(a, b)
        return edits + [_context(s) for s in self.tail[len(near) :]]

    def _edit(self, mark: str, line: Line) -> Edit:
        text = line.source.text
        if mark == "+":
            text = _renamed(text, {n: self.names.shown(n) for n in (*line.defines, *line.operands)})
        return Edit(mark, text, line.source.number, line.source.where, line.op)


def _context(source: Source) -> Edit:
    return Edit(" ", source.text, source.number, source.where)


def _common_ends(a: list[Source], b: list[Source]) -> tuple[int, int]:
    most = min(len(a), len(b))
    head = next((n for n in range(most) if a[n].text != b[n].text), most)
    most -= head
    return head, next((n for n in range(most) if a[-1 - n].text != b[-1 - n].text), most)


def _last_graph(lines: list[Source]) -> list[Source]:
    start = max((n for n, s in enumerate(lines) if s.text == GRAPH), default=0)
    return lines[start:]


def _first_graph(lines: list[Source]) -> list[Source]:
    return lines[: next((n for n, s in enumerate(lines) if s.text == GRAPH), len(lines))]


def _renamed(text: str, names: dict[str, str]) -> str:
    changed = {old: new for old, new in names.items() if old != new}
    if not changed:
        return text
    return _WORD.sub(lambda m: changed.get(m[0], m[0]), text)


def _ops(changes: list[Edit]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for edit in changes:
        if edit.mark in "+-" and edit.op not in ("", INPUT, "symbol") and "%" not in edit.op:
            counts[edit.op.removeprefix("torch.ops.")] += 1 if edit.mark == "+" else -1
    return {op: n for op, n in sorted(counts.items()) if n}
