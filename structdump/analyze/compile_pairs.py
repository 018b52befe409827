"""Which compile of one bundle answers to which of another: by function, by what was captured, by order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import NamedTuple

from structdump.bundle.align import align
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Compile

_RESUME = re.compile(r"_at_\d+(?:_\d+)?$")  # the line where a function goes on after a graph break


class CompileSide(NamedTuple):
    """One compile and its artifacts; `record` is None for the artifacts that belong to no compile."""

    record: Compile | None
    artifacts: list[ArtifactView]

    @property
    def id(self) -> str | None:
        """The compile id."""
        return self.record.id if self.record else None

    @property
    def function(self) -> str:
        """The function's name, for a reader."""
        if self.record is None:
            return "(no compile id)"
        return self.record.function.name if self.record.function else "(unknown function)"

    @property
    def label(self) -> str:
        """The compile as one line names it."""
        return f"{self.id} {self.function}" if self.record else self.function


Paired = tuple[CompileSide | None, CompileSide | None]


def pair_compiles(a: LoadedBundle, b: LoadedBundle) -> list[Paired]:
    """Pair the compiles of two bundles, in A's order; None where one has no counterpart.

    Within one function, those that captured the same graph come first, the rest by order. A directory
    or a log may not know a function's file, or its name: then the name counts, then order alone.
    Compiles that are left over on both sides under the same id are one function under another name.
    """
    left, right = _sides(a), _sides(b)
    partner: dict[int, int] = {}
    for key in (_key, _name, _nameless(left, right)):
        keys_a = {i: key(s) for i, s in enumerate(left) if i not in partner}
        taken = set(partner.values())
        keys_b = {j: key(s) for j, s in enumerate(right) if j not in taken}
        for value in dict.fromkeys(v for v in keys_a.values() if v is not None):
            mine = [i for i, k in keys_a.items() if k == value]
            theirs = [j for j, k in keys_b.items() if k == value]
            partner |= _pair(left, right, mine, theirs)
    taken = set(partner.values())
    ids = {s.id: j for j, s in enumerate(right) if j not in taken}
    for i, side in enumerate(left):
        if i not in partner and side.id in ids:
            partner[i] = ids.pop(side.id)
    taken = set(partner.values())
    pairs: list[Paired] = [(s, right[partner[i]] if i in partner else None) for i, s in enumerate(left)]
    return pairs + [(None, s) for j, s in enumerate(right) if j not in taken]


def _pair(
    left: list[CompileSide], right: list[CompileSide], mine: list[int], theirs: list[int]
) -> dict[int, int]:
    captured_a, captured_b = [_captured(left[i]) for i in mine], [_captured(right[j]) for j in theirs]
    same = [(i, j) for i, j in align(captured_a, captured_b) if captured_a[i] is not None]
    found: dict[int, int] = {}
    i = j = 0
    for end_a, end_b in [*same, (len(mine), len(theirs))]:
        found.update(zip(mine[i:end_a], theirs[j:end_b], strict=False))
        if end_a < len(mine):
            found[mine[end_a]] = theirs[end_b]
        i, j = end_a + 1, end_b + 1
    return found


def _sides(bundle: LoadedBundle) -> list[CompileSide]:
    of: dict[str | None, list[ArtifactView]] = defaultdict(list)
    known = {c.id for c in bundle.compiles}
    for artifact in bundle.artifacts:
        of[artifact.compile_id if artifact.compile_id in known else None].append(artifact)
    sides = [CompileSide(c, of[c.id]) for c in bundle.compiles]
    return [*sides, CompileSide(None, of[None])] if of[None] else sides


def _key(side: CompileSide) -> Hashable:
    if side.record is None:
        return "no compile id"
    function = side.record.function
    return function and (_RESUME.sub("", function.name), re.split(r"[/\\]", function.file or "")[-1])


def _name(side: CompileSide) -> Hashable:
    function = side.record.function if side.record else None
    return function and _RESUME.sub("", function.name)


def _nameless(left: list[CompileSide], right: list[CompileSide]) -> Callable[[CompileSide], Hashable]:
    """Return a key that pairs all that is left, unless both bundles name their functions."""
    named = all(side.record is None or side.record.function for side in (*left, *right))
    return lambda side: None if named or side.record is None else "any"


def _captured(side: CompileSide) -> Hashable:
    """Return what tells one compile of a function from another: the digest of the graph it captured."""
    return next((a.digest for a in side.artifacts if a.kind == "graph" and a.stage == "captured"), None)
