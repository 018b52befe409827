"""Which compile and which stage of one bundle answers to which of another: by function, order and name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Artifact, Compile

T = TypeVar("T")
Pair = tuple[int | None, int | None]

_NUMBER = re.compile(r"\d+")


def pair_compiles(a: LoadedBundle, b: LoadedBundle) -> list[Pair]:
    """Pair the compiles of two bundles: the n-th of a function with the n-th of the same function.

    Returns indexes into `compiles`; None on one side where the other bundle has nothing like it.
    """
    return align(a.compiles, b.compiles, _compile_key)


def pair_artifacts(a: LoadedBundle, b: LoadedBundle, compiles: Iterable[Pair]) -> list[Pair]:
    """Pair the artifacts within each pair of compiles, and those of no compile; bulk telemetry is left out.

    Returns indexes into `artifacts`.
    """
    ids: list[tuple[str | None, str | None]] = [(None, None)]
    ids += [
        (None if i is None else a.compiles[i].id, None if j is None else b.compiles[j].id)
        for i, j in compiles
    ]
    of_a, of_b = _by_compile(a), _by_compile(b)
    out: list[Pair] = []
    for number, (id_a, id_b) in enumerate(ids):
        left = of_a.get(id_a, []) if number == 0 or id_a is not None else []
        right = of_b.get(id_b, []) if number == 0 or id_b is not None else []
        pairs = align([a.artifacts[i] for i in left], [b.artifacts[j] for j in right], _artifact_key)
        out += [(None if i is None else left[i], None if j is None else right[j]) for i, j in pairs]
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


def _numbered(items: Sequence[T], key: Callable[[T], Hashable]) -> list[Hashable]:
    seen: Counter[Hashable] = Counter()
    out: list[Hashable] = []
    for item in items:
        k = key(item)
        out.append((k, seen[k]))
        seen[k] += 1
    return out


def _compile_key(record: Compile) -> Hashable:
    return record.function.name if record.function else None


def _artifact_key(artifact: Artifact) -> Hashable:
    """Kernels go by their name; other names lose their counters, which depend on what ran before."""
    if artifact.kernel is not None:
        name = artifact.kernel.name
    elif artifact.kind == "graph" and artifact.stage:
        name = ""
    else:
        name = _NUMBER.sub("#", artifact.name)
    piece = artifact.subgraph
    place = (piece.index, piece.name, tuple(piece.range or ())) if piece else None
    return artifact.kind, artifact.stage, name, artifact.phase, artifact.direction, place


def _by_compile(bundle: LoadedBundle) -> dict[str | None, list[int]]:
    known = {record.id for record in bundle.compiles}
    out: dict[str | None, list[int]] = {}
    for i, artifact in enumerate(bundle.artifacts):
        if artifact.kind != "trace":
            out.setdefault(artifact.compile_id if artifact.compile_id in known else None, []).append(i)
    return out
