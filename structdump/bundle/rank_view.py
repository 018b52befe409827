"""A merged bundle as one of its ranks has it."""

from __future__ import annotations

from pydantic import ValidationError

from structdump.bundle import assemble
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Artifact, Compile, Environment, OmittedCount
from structdump.bundle.patch import apply_patch
from structdump.errors import CorruptError, UsageError


def all_ranks(bundle: LoadedBundle) -> list[int]:
    """Return the ranks of a merged bundle; of any other its own, if it says one.

    Example: `all_ranks(load("job.json.zst")) == [0, 1, 2, 3]`
    """
    if bundle.runs is None:
        return [] if bundle.run.rank is None else [bundle.run.rank]
    return [run.rank for run in bundle.runs]


def has(item: Artifact | Compile, rank: int) -> bool:
    """Tell whether a rank has an artifact or a compile of a merged bundle."""
    return item.ranks is None or rank in item.ranks


def of_rank(bundle: LoadedBundle, rank: int | None = None) -> LoadedBundle:
    """Return a merged bundle as one rank has it (default: the first), or any other as it is.

    Artifacts keep their numbers, and `varies` tells which of the texts are another rank's.
    Raises UsageError if there is no such rank, CorruptError if what is its own breaks the format.

    Example: `of_rank(load("job.json.zst"), 3).run.rank == 3`
    """
    ranks = all_ranks(bundle)
    if bundle.runs is None or not ranks:
        if rank is not None and rank not in ranks:
            raise UsageError(f"there is no rank {rank} in it: it is not merged")
        return bundle
    rank = ranks[0] if rank is None else rank
    if rank not in ranks:
        raise UsageError(f"there is no rank {rank} in it; there are {spelled(ranks)}")
    own = bundle.runs[ranks.index(rank)]
    whole = bundle.bare()
    facts = whole.completeness.model_copy(deep=True, update={"verdict": own.verdict})
    patched = apply_patch(whole.environment.model_dump(mode="json"), own.environment)
    try:
        environment = Environment.model_validate(patched)
    except ValidationError:
        raise CorruptError(f"the environment of rank {rank} breaks the format") from None
    view = whole.model_copy(
        update={
            "run": own.run.model_copy(update={"rank": rank}),
            "runs": None,
            "level": own.level or whole.level,
            "environment": environment,
            "completeness": facts,
            "compiles": [_compile_of(c, rank) for c in whole.compiles if has(c, rank)],
            "artifacts": [Artifact.model_construct(**a.__dict__) for a in bundle.artifacts if has(a, rank)],
            "omitted": {reason: OmittedCount(**o.model_dump()) for reason, o in whole.omitted.items()},
        }
    )
    assemble.count(view)
    return LoadedBundle(view, bundle.texts, own.complete)


def _compile_of(record: Compile, rank: int) -> Compile:
    times = record.seconds_by_rank or {}
    return record.model_copy(update={"seconds": times.get(str(rank), record.seconds)})


def spelled(ranks: list[int]) -> str:
    """Return ranks as people write them.

    Example::

        >>> spelled([0, 1, 2, 3, 7, 9, 10])
        '0-3, 7, 9-10'
    """
    groups: list[list[int]] = []
    for rank in sorted(ranks):
        if groups and rank == groups[-1][-1] + 1:
            groups[-1].append(rank)
        else:
            groups.append([rank])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)
