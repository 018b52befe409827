"""Which items of two sequences answer to each other: patience first, a careful diff for what is left.

`difflib` alone takes minutes on two long graphs of repeated layers: its cost is the product of how
often each line occurs on either side. Lines that occur once on both sides are found in linear time,
and what lies between two of them is short.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import count

Pairs = list[tuple[int, int]]

_CAREFUL = 20_000  # pairs of equal items up to which difflib takes milliseconds
_DEEPEST = 64  # levels of gaps within gaps; real graphs need fewer than ten


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Return index pairs of equal items, increasing on both sides: the long common part of `a` and `b`.

    Takes O(n log n), whatever the input; on repetitive input the result may fall short of the longest.

    Example::

        >>> align("abcd", "axcd")
        [(0, 0), (2, 2), (3, 3)]
    """
    pairs: Pairs = []
    gaps = [(0, len(a), 0, len(b), 0)]
    while gaps:
        start_a, end_a, start_b, end_b, depth = gaps.pop()
        while start_a < end_a and start_b < end_b and a[start_a] == b[start_b]:
            pairs.append((start_a, start_b))
            start_a, start_b = start_a + 1, start_b + 1
        while start_a < end_a and start_b < end_b and a[end_a - 1] == b[end_b - 1]:
            end_a, end_b = end_a - 1, end_b - 1
            pairs.append((end_a, end_b))
        if start_a == end_a or start_b == end_b:
            continue
        left, right = a[start_a:end_a], b[start_b:end_b]
        anchors = _unique(left, right) if depth < _DEEPEST else []
        if not anchors:
            pairs += [(start_a + i, start_b + j) for i, j in _repetitive(left, right)]
            continue
        before = (start_a, start_b)
        for i, j in [*anchors, (len(left), len(right))]:
            at = (start_a + i, start_b + j)
            gaps.append((before[0], at[0], before[1], at[1], depth + 1))
            before = at
            if i < len(left):
                pairs.append(at)
                before = (at[0] + 1, at[1] + 1)
    return sorted(pairs)


def _unique(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Pair the items that occur once on each side, in an order that both sides share."""
    once_a = {item for item, n in Counter(a).items() if n == 1}
    once_b = {item for item, n in Counter(b).items() if n == 1}
    where = {item: j for j, item in enumerate(b) if item in once_b and item in once_a}
    return _increasing([(i, where[item]) for i, item in enumerate(a) if item in where])


def _repetitive(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    counts_a, counts_b = Counter(a), Counter(b)
    if sum(n * counts_b[item] for item, n in counts_a.items()) <= _CAREFUL:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        return [(i + k, j + k) for i, j, size in blocks for k in range(size)]
    return _unique(_numbered(a), _numbered(b))


def _numbered(items: Sequence[Hashable]) -> list[Hashable]:
    """Make each item unique: its n-th occurrence is told from the others."""
    seen: dict[Hashable, count[int]] = {}
    return [(item, next(seen.setdefault(item, count()))) for item in items]


def _increasing(pairs: Pairs) -> Pairs:
    """Return the longest subsequence whose second indexes increase (the first ones do)."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for at, (_, j) in enumerate(pairs):
        rank = bisect_left(tails, j)
        previous.append(ends[rank - 1] if rank else -1)
        if rank == len(tails):
            tails.append(j)
            ends.append(at)
        else:
            tails[rank], ends[rank] = j, at
    chain: Pairs = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]
