"""Many sequences as one: each item once, with those that have it, and the order of each kept."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from structdump.bundle.align import align


class Lane:
    """Merges sequences of keys, one after the other.

    Most ranks of a job have the same sequence, which is stored once.

    Example::

        >>> lane = Lane()
        >>> lane.add(0, [b"a", b"b"]), lane.add(1, [b"a", b"c", b"b"])
        ([0, 1], [0, 2, 1])
        >>> lane.order, lane.owners()
        ([0, 2, 1], [[0, 1], [0, 1], [1]])
    """

    def __init__(self) -> None:
        self.order: list[int] = []
        self._keys: list[bytes] = []
        self._known: dict[bytes, tuple[list[int], list[int]]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, owner: int, keys: Sequence[bytes]) -> list[int]:
        """Take a sequence; return the item of each key. Items from the former length on are new.

        Equal keys are one item only where that keeps the order of both sequences.
        """
        name = sha256(b"".join(keys)).digest()
        if name not in self._known:
            self._known[name] = (self._place(keys), [])
        items, owners = self._known[name]
        owners.append(owner)
        return items

    def _place(self, keys: Sequence[bytes]) -> list[int]:
        pairs = align([self._keys[i] for i in self.order], keys)
        order: list[int] = []
        items: list[int] = []
        a = b = 0
        for end_a, end_b in [*pairs, (len(self.order), len(keys))]:
            order += self.order[a:end_a]
            new = range(len(self._keys), len(self._keys) + end_b - b)
            self._keys += keys[b:end_b]
            order += new
            items += new
            if end_a < len(self.order):
                order.append(self.order[end_a])
                items.append(self.order[end_a])
            a, b = end_a + 1, end_b + 1
        self.order = order
        return items

    def owners(self) -> list[list[int]]:
        """Return, by item, the owners of sequences that hold it, in the order in which they came."""
        found: list[list[int]] = [[] for _ in self._keys]
        for items, owners in self._known.values():
            for item in items:
                # A list of its own only where two sequences meet: most items are in one.
                found[item] = found[item] + owners if found[item] else owners
        return [sorted(one) for one in found]
