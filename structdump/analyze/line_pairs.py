"""Which lines of two graphs answer to each other, by what they do and not by what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from operator import attrgetter

from structdump.analyze.graph_lines import Line
from structdump.bundle.align import Pairs, align

Gap = tuple[int, int, int, int]
Key = Callable[[Line], Hashable]


def pair_lines(a: list[Line], b: list[Line]) -> Pairs:
    """Pair lines in order, by ever less: the whole line, what it does to what, what it does at all.

    A line that stands alone where the other graph has one line of its own is paired with it, so that
    what uses its value is not taken for changed.
    """
    ops_a, ops_b = _op_of_names(a), _op_of_names(b)
    keys: list[tuple[Key, Key]] = [
        (attrgetter("defines", "expression", "operands"),) * 2,
        (lambda s: in_context(s, ops_a), lambda s: in_context(s, ops_b)),
        (attrgetter("expression"),) * 2,
        (attrgetter("op"),) * 2,
    ]
    pairs: Pairs = []
    gaps: list[Gap] = [(0, len(a), 0, len(b))]
    for key_a, key_b in keys:
        left_over: list[Gap] = []
        for gap in gaps:
            start_a, end_a, start_b, end_b = gap
            found = align([key_a(s) for s in a[start_a:end_a]], [key_b(s) for s in b[start_b:end_b]])
            here = [(start_a + i, start_b + j) for i, j in found]
            pairs += here
            left_over += _gaps(here, gap)
        gaps = left_over
    for start_a, end_a, start_b, end_b in gaps:
        alone = end_a - start_a == end_b - start_b == 1
        if alone and len(a[start_a].defines) == len(b[start_b].defines):
            pairs.append((start_a, start_b))
    return sorted(pairs)


def moved_lines(a: list[Line], b: list[Line], pairs: Pairs) -> Pairs:
    """Pair lines that were left over on both sides and do the same to the same: they stand elsewhere."""
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    ops_a, ops_b = _op_of_names(a), _op_of_names(b)
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for j, line in enumerate(b):
        if j not in taken_b:
            waiting[in_context(line, ops_b), line.type].append(j)
    out: Pairs = []
    for i, line in enumerate(a):
        found = waiting.get((in_context(line, ops_a), line.type)) if i not in taken_a else None
        if found:
            out.append((i, found.pop(0)))
    return out


def in_context(line: Line, ops: dict[str, str]) -> Hashable:
    """Return what a line does, and to the results of which operations."""
    return (line.expression, tuple(ops.get(name, "") for name in line.operands))


def _op_of_names(lines: list[Line]) -> dict[str, str]:
    return {name: line.op for line in lines for name in line.defines}


def _gaps(found: Pairs, gap: Gap) -> list[Gap]:
    start_a, end_a, start_b, end_b = gap
    gaps = []
    for i, j in [*found, (end_a, end_b)]:
        if start_a < i and start_b < j:
            gaps.append((start_a, i, start_b, j))
        start_a, start_b = i + 1, j + 1
    return gaps
