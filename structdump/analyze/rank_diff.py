"""Whether all ranks of a job compiled the same graphs in the same order, and which differs first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from structdump.analyze.diff import Openable, diff
from structdump.analyze.difference import CompileDifference, Difference
from structdump.analyze.rank_groups import rank_groups
from structdump.analyze.rank_words import in_shared_words
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Compile
from structdump.bundle.rank_view import all_ranks, spelled
from structdump.bundle.reader import load
from structdump.errors import UsageError

#: What may differ between ranks without a rank doing anything else than the others.
IGNORED = ("env", "guards", "configs", "autotune", "times")


@dataclass(slots=True)
class RankDifference:
    """Ranks that differ from the reference, and where they do first.

    `how` is `order` (another function was compiled at this point), `missing` (the ranks compiled nothing
    more, the reference did), `extra` (the other way round), `status` (the compile itself went otherwise),
    `graph` or `kernels`. `position` is the number of the compile, in order, at which that is. `compile_id`
    and `function` are those of `ranks`, `reference_compile_id` and `reference_function` what the reference
    has there. `compile` says where within the compile, with the reference as A; `difference` is all that
    differs.
    """

    ranks: list[int]
    how: str
    position: int
    compile_id: str | None
    function: str | None
    reference_compile_id: str | None
    reference_function: str | None
    compile: CompileDifference | None = None
    difference: Difference | None = None


@dataclass(slots=True)
class RanksReport:
    """What `diff_ranks` found: `groups` of ranks that agree, the largest first.

    The first rank of the first group is the reference.

    `differences` has one entry per further group, the one that differs first before the others.
    """

    ranks: list[int]
    groups: list[list[int]]
    reference: int
    differences: list[RankDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """True if all ranks compiled the same graphs in the same order."""
        return not self.differences

    @property
    def first(self) -> RankDifference | None:
        """The difference that comes first, in order of compiles; None if there is none."""
        return self.differences[0] if self.differences else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, `same` first."""
        return {"same": self.same, **asdict(self)}


def diff_ranks(source: Openable) -> RanksReport:
    """Compare the ranks of a merged bundle, given opened or as a path.

    Ranks that compiled other graphs, or in another order, are the usual cause of a hang in a collective.

    What counts is which functions were compiled in which order, how that ended, and their graphs and
    kernels. The index of a rank's own device, its number, names of process groups, addresses, process
    ids, clocks, guards and tuned configurations do not. What a rank took from a cache or left out is no
    difference.

    Raises UsageError if the bundle is not merged, and what `structdump.load` raises.

    Example::

        report = structdump.diff_ranks("job.json.zst")
        if report.first:
            print(report.first.ranks, report.first.how, report.first.function)
    """
    bundle = source if isinstance(source, LoadedBundle) else load(source)
    if not bundle.runs:
        raise UsageError("this is the bundle of one process; `structdump merge` makes one of all ranks")
    groups = rank_groups(bundle)
    reference, first_groups = in_shared_words(bundle, groups[0][0])
    report = RanksReport(all_ranks(bundle), [list(groups[0])], groups[0][0])
    unlike: list[RankDifference] = []
    for group in groups[1:]:
        view, names = in_shared_words(bundle, group[0])
        found = _compare(reference, view, group)
        if found is None:
            report.groups[0] = sorted([*report.groups[0], *group])
            continue
        unlike.append(found)
        if list(names) != list(first_groups):
            report.notes.append(
                f"rank {spelled(group)} uses the process groups {', '.join(names) or 'none'},"
                f" rank {groups[0][0]} {', '.join(first_groups) or 'none'}; what counts is the order of use"
            )
    report.differences = sorted(unlike, key=lambda d: (d.position, _within(d), d.ranks))
    report.groups += [d.ranks for d in report.differences]
    report.notes += _notes(bundle)
    return report


def _compare(reference: LoadedBundle, view: LoadedBundle, ranks: list[int]) -> RankDifference | None:
    found = diff(reference, view, ignore=IGNORED)
    order = _order(reference.compiles, view.compiles)
    places = {c.id: n for n, c in enumerate(reference.compiles)}
    inside = [(places.get(c.id_a or "", len(places)), c) for c in found.compiles]
    at, compiled = min(inside, key=lambda pair: pair[0], default=(len(places), None))
    if order is not None and order <= at:
        mine, theirs = _at(view.compiles, order), _at(reference.compiles, order)
        how = "missing" if mine is None else "extra" if theirs is None else "order"
        return _made(ranks, how, order, mine, theirs, None, found)
    if compiled is None:
        if found.same:
            return None
        kernel = found.kernels[0].compile.split(" / ")[0] if found.kernels else None
        at = places.get(kernel or "", 0)
        record = _at(reference.compiles, at)
        return _made(ranks, "kernels", at, record, record, None, found)
    how = "graph" if compiled.first or compiled.only_a or compiled.only_b else "status"
    theirs = _at(reference.compiles, at)
    mine = next((c for c in view.compiles if c.id == compiled.id_b), None)
    return _made(ranks, how, at, mine, theirs, compiled, found)


def _made(
    ranks: list[int],
    how: str,
    position: int,
    mine: Compile | None,
    theirs: Compile | None,
    compiled: CompileDifference | None,
    found: Difference,
) -> RankDifference:
    ids = [c.id if c else None for c in (mine, theirs)]
    return RankDifference(
        ranks, how, position, ids[0], _name(mine), ids[1], _name(theirs), compiled, found
    )  # fmt: skip


def _order(a: Sequence[Compile], b: Sequence[Compile]) -> int | None:
    """Return the first place at which other functions were compiled; None if the order is the same."""
    for n in range(max(len(a), len(b))):
        one, other = _at(a, n), _at(b, n)
        if one is None or other is None or _key(one) != _key(other):
            return n
    return None


def _at(compiles: Sequence[Compile], n: int) -> Compile | None:
    return compiles[n] if n < len(compiles) else None


def _key(record: Compile) -> Any:
    function = record.function
    return function and (function.name, function.line)


def _name(record: Compile | None) -> str | None:
    return record.function.name if record and record.function else None


def _within(difference: RankDifference) -> int:
    """Return the number of the artifact at which a compile differs, to tell which of two ranks does first."""
    compiled = difference.compile
    if compiled is None or compiled.first is None:
        return -1
    return compiled.first.stage.seq_a or 0


def _notes(bundle: LoadedBundle) -> list[str]:
    notes = [f"rank {run.rank}: {note}" for run in bundle.runs or () for note in run.notes]
    verdicts = {run.verdict for run in bundle.runs or ()}
    if len(verdicts) > 1:
        notes.append("some ranks took from a cache what others compiled; what only some show does not count")
    return notes
