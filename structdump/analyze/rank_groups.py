"""Which ranks of a merged bundle have exactly the same."""

from __future__ import annotations

from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.rank_view import all_ranks

#: Kinds that tell what was compiled; the others tell how that went, such as caches and times.
COMPILED = frozenset({"graph", "pass", "output_code", "kernel"})


def rank_groups(bundle: LoadedBundle) -> list[list[int]]:
    """Return the ranks in groups that list the same compiles and the same compiled artifacts, largest first.

    More than one group need not mean that anything differs: some ranks may have compiled what others
    took from a cache. `diff_ranks` tells.

    Example: `rank_groups(structdump.load("job.json.zst")) == [[0, 1, 2, 3]]`
    """
    ranks = all_ranks(bundle)
    have: dict[int, list[int]] = {rank: [] for rank in ranks}
    items = [c.ranks for c in bundle.compiles]
    items += [a.ranks for a in bundle.artifacts if a.kind in COMPILED]
    for number, owners in enumerate(items):
        if owners is not None and have.keys() - set(owners):
            for rank in have.keys() & set(owners):
                have[rank].append(number)
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in ranks:
        groups.setdefault(tuple(have[rank]), []).append(rank)
    return sorted(groups.values(), key=lambda g: (-len(g), g))
