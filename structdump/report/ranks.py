"""What a merged bundle says of its ranks, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from structdump.analyze.rank_groups import rank_groups
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.rank_view import all_ranks, spelled
from structdump.report.lines import Line, labelled, plural, say

_GROUPS = 4
_NOTES = 4


def ranks_lines(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield how many ranks a merged bundle has, whether they agree, and what is odd about some.

    Example: `print_lines(ranks_lines(structdump.load("job.json.zst")), Console())`
    """
    ranks, groups = all_ranks(bundle), rank_groups(bundle)
    missing = _missing(bundle)
    of = f" of {bundle.runs[0].run.world_size}" if missing and bundle.runs else ""
    yield labelled("merged", say((plural(len(ranks), "rank") + of, "bold"), f": {spelled(ranks)}"))
    if len(groups) == 1:
        yield labelled("", say(("✓", "green"), " the same compiles, graphs and kernels in all"))
    else:
        told = "; ".join(spelled(g) for g in groups[:_GROUPS])
        more = f"; and {len(groups) - _GROUPS} more groups" if len(groups) > _GROUPS else ""
        yield labelled(
            "", say(("≠", "yellow"), f" not all list the same: {told}{more} → structdump diff --ranks")
        )
    if missing:
        yield labelled("", say((f"no bundle of rank {spelled(missing)}", "yellow")))
    notes = [f"rank {run.rank}: {note}" for run in bundle.runs or () for note in run.notes]
    for note in notes[:_NOTES]:
        yield labelled("", say((note, "dim")))
    if len(notes) > _NOTES:
        yield labelled("", say((f"… and {len(notes) - _NOTES} more (--json)", "dim")))


def _missing(bundle: LoadedBundle) -> list[int]:
    """Return the ranks below the world size that are not there, if the ranks are real."""
    runs = bundle.runs or []
    sizes = {run.run.world_size for run in runs}
    size = sizes.pop() if len(sizes) == 1 else None
    if not size or any(run.run.rank is None for run in runs):
        return []
    return sorted(set(range(size)) - {run.rank for run in runs})
