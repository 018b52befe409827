"""What of one bundle answers to what of another, and whether the two are the same, for a page with both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from structdump.analyze.compile_pairs import CompileSide, pair_compiles
from structdump.analyze.kernel_diff import pair_kernels
from structdump.analyze.stage_diff import diff_stages
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Artifact

T = TypeVar("T")
Pair = tuple[int | None, int | None]

_NUMBER = re.compile(r"\d+")


class Pairs(NamedTuple):
    """Indexes into `compiles` and into `artifacts` of two bundles; None where one has nothing like it.

    The third of an artifact pair is how its texts compare if names and paths don't count: `same`,
    `alike` (by counts of ops), `differs` or `unknown`; None where whether texts are equal has to do.
    """

    compiles: list[Pair]
    artifacts: list[tuple[int | None, int | None, str | None]]


def pair_bundles(a: LoadedBundle, b: LoadedBundle) -> Pairs:
    """Pair compiles by function and order, and in them stages, kernels and all else but telemetry.

    Compiles, stages and kernels are paired as `structdump diff` pairs them.

    Example: `pair_bundles(structdump.load("a.json.zst"), structdump.load("b.json.zst")).compiles`
    """
    compiles = {id(c): i for side in (a, b) for i, c in enumerate(side.compiles)}
    artifacts = {id(x): i for side in (a, b) for i, x in enumerate(side.artifacts)}
    out = Pairs([], [])
    for left, right in pair_compiles(a, b):
        records = [side.record if side else None for side in (left, right)]
        if any(records):
            i, j = (compiles[id(c)] if c else None for c in records)
            out.compiles.append((i, j))
        for one, other, answer in _pair_artifacts(left, right):
            place = (artifacts[id(x)] if x is not None else None for x in (one, other))
            out.artifacts.append((*place, answer))  # type: ignore[arg-type] # two of them
    return out


def align(a: Sequence[T], b: Sequence[T], key: Callable[[T], Hashable]) -> list[Pair]:
    """Pair equal keys in order of occurrence; what only `b` has stands after what precedes it there.

    Example::

        >>> align("xay", "xyz", str)
        [(0, 0), (1, None), (2, 1), (None, 2)]
    """
    keys_b = _numbered(b, key)
    where = {k: j for j, k in enumerate(keys_b)}
    keys_a = _numbered(a, key)
    known = set(keys_a)
    after: dict[Hashable, list[int]] = {}
    last: Hashable = None
    for j, k in enumerate(keys_b):
        if k in known:
            last = k
        else:
            after.setdefault(last, []).append(j)
    out: list[Pair] = [(None, j) for j in after.get(None, [])]
    for i, k in enumerate(keys_a):
        out.append((i, where.get(k)))
        out += [(None, j) for j in after.get(k, [])]
    return out


Row = tuple[ArtifactView | None, ArtifactView | None, str | None]


def _pair_artifacts(left: CompileSide | None, right: CompileSide | None) -> Iterator[Row]:
    a, b = (side.artifacts if side else [] for side in (left, right))
    done: set[int] = set()
    for row in diff_stages(a, b).rows:
        done.update(id(x) for x in (row.a, row.b) if x is not None)
        yield row.a, row.b, row.answer
    for direction in dict.fromkeys(x.direction for x in [*a, *b] if x.kind == "kernel"):
        mine, theirs = (
            [x for x in side if x.kind == "kernel" and x.direction == direction] for side in (a, b)
        )
        for one, other in pair_kernels(mine, theirs):
            pair = (one.artifact if one else None, other.artifact if other else None)
            done.update(id(x) for x in pair if x is not None)
            yield (*pair, "same" if one and other and one.source and one.source == other.source else None)
    rest_a, rest_b = ([x for x in side if x.kind != "trace" and id(x) not in done] for side in (a, b))
    for i, j in align(rest_a, rest_b, _key):
        yield None if i is None else rest_a[i], None if j is None else rest_b[j], None


def _numbered(items: Sequence[T], key: Callable[[T], Hashable]) -> list[Hashable]:
    seen: Counter[Hashable] = Counter()
    out: list[Hashable] = []
    for item in items:
        k = key(item)
        out.append((k, seen[k]))
        seen[k] += 1
    return out


def _key(artifact: Artifact) -> Hashable:
    """Names lose their counters, which depend on what ran before."""
    name = artifact.kernel.name if artifact.kernel else _NUMBER.sub("#", artifact.name)
    piece = artifact.subgraph
    place = (piece.index, piece.name, tuple(piece.range or ())) if piece else None
    return artifact.kind, artifact.stage, name, artifact.phase, artifact.direction, place
