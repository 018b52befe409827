"""What differs between two bundles, from the outside in; `structdump.diff`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from structdump.analyze.compile_pairs import CompileSide, pair_compiles
from structdump.analyze.difference import (
    PARTS,
    CompileDifference,
    Difference,
    Side,
)
from structdump.analyze.environment_diff import diff_environments
from structdump.analyze.kernel_diff import diff_autotune, diff_configs, diff_kernels, pair_kernels
from structdump.analyze.record_diff import diff_guards, diff_records
from structdump.analyze.stage_diff import StageReport, diff_stages
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.rank_view import of_rank
from structdump.bundle.reader import load
from structdump.errors import UsageError

Openable = LoadedBundle | str | os.PathLike[str]

_COMPILED = ("graph", "pass", "output_code", "kernel")
_TOLD = 8  # stages or kernels that a note names


def diff(a: Openable, b: Openable, *, ignore: Iterable[str] = (), times: bool = False) -> Difference:
    """Compare two bundles, given opened or as paths; of a merged one its first rank.

    What counts is what was compiled: names of values, numbers in kernel names, directories, uuids,
    addresses and clocks do not. What one bundle holds and the other left out (by level, filter or
    cache) is no difference; `notes` say so. `ignore` names parts of `PARTS`. With `times`, compiles
    that take half as long again as in the other bundle count too (seconds).

    Raises UsageError for an unknown part, and what `structdump.load` raises.

    Example::

        d = structdump.diff("before.json.zst", "after.json.zst", ignore=["env"])
        print(d.same, [k.name_b for k in d.kernels if k.how == "added"])
    """
    ignored = list(dict.fromkeys(ignore))
    for part in ignored:
        if part not in PARTS:
            raise UsageError(f"nothing called {part!r} to ignore; there are {', '.join(PARTS)}")
    parts = set(PARTS) - set(ignored) - (set() if times else {"times"})
    return _Diff(_opened(a), _opened(b), parts).run(ignored)


def _opened(source: Openable) -> LoadedBundle:
    return of_rank(source if isinstance(source, LoadedBundle) else load(source))


class _Diff:
    def __init__(self, a: LoadedBundle, b: LoadedBundle, parts: set[str]):
        self.a, self.b, self.parts = a, b, parts
        self.out = Difference(side_of(a), side_of(b))
        self.alike = _seen(a) == _seen(b)  # so that what one lacks was not made
        self.known = a.producer.source == b.producer.source != "directory"
        self.unknown: list[str] = []
        self.kernels_missing: list[str] = []

    def run(self, ignored: list[str]) -> Difference:
        self.out.ignored = ignored
        if "env" in self.parts:
            self.out.environment = diff_environments(self.a.environment, self.b.environment, known=self.known)
        self.out.notes += _explain(self.a, self.b)
        for left, right in pair_compiles(self.a, self.b):
            if left is not None and right is not None:
                self._compile(left, right)
            elif "compiles" in self.parts:
                self._alone(left, right)
        if self.unknown:
            self.out.notes.append(
                f"{len(self.unknown)} stages are not comparable, as their text is not in both bundles:"
                f" {_some(self.unknown)}"
            )
        if self.kernels_missing:
            self.out.notes.append(
                f"the kernels of {_some(self.kernels_missing)} are in one bundle alone, which the differences"
                " in level or cache may explain"
            )
        return self.out

    def _alone(self, left: CompileSide | None, right: CompileSide | None) -> None:
        side = left or right
        assert side is not None  # noqa: S101  # pair_compiles makes no empty pair
        if side.record is None and not (self.alike and any(x.kind in _COMPILED for x in side.artifacts)):
            return
        why = side.record.recompile.reason if side.record and side.record.recompile else ""
        label = f"{side.label}, as {why}" if why else side.label
        (self.out.only_a if left else self.out.only_b).append(label)

    def _compile(self, left: CompileSide, right: CompileSide) -> None:
        found = CompileDifference(left.id, right.id, left.function)
        if left.record and right.record:
            found.changes = [
                c for c in diff_records(left.record, right.record, known=self.known) if c.part in self.parts
            ]
        if "graphs" in self.parts:
            self._graphs(found, diff_stages(left.artifacts, right.artifacts))
        if "guards" in self.parts:
            found.guards = diff_guards(left.artifacts, right.artifacts)
        if found:
            self.out.compiles.append(found)
        self._kernels(found.label, left.artifacts, right.artifacts)

    def _graphs(self, found: CompileDifference, report: StageReport) -> None:
        found.first, found.later = report.first(alike=self.alike), report.later()
        if found.first is not None and found.first.text is not None:
            changed = found.first.text.changed
            found.first.same_as = next(
                (
                    c.label
                    for c in self.out.compiles
                    if c.first and c.first.text and c.first.text.changed == changed
                ),
                None,
            )
        self.unknown += [row.stage.label for row in report.rows if row.answer == "unknown"]
        if self.alike:
            found.only_a, found.only_b = report.only("only_a"), report.only("only_b")
        else:
            self.unknown += [s.label for s in [*report.only("only_a"), *report.only("only_b")]]

    def _kernels(self, label: str, a: list[ArtifactView], b: list[ArtifactView]) -> None:
        for direction in dict.fromkeys(x.direction for x in [*a, *b] if x.kind == "kernel"):
            mine, theirs = (_of(side, "kernel", direction) for side in (a, b))
            pairs = pair_kernels(mine, theirs)
            # What one bundle left out is whole output codes and their kernels.
            codes = [len(_of(side, "output_code", direction)) for side in (a, b)]
            unsure = not self.alike and (codes[0] != codes[1] or bool(mine) != bool(theirs))
            if unsure and not all(map(all, pairs)):
                self.kernels_missing.append(f"{label} ({direction or 'no direction'})")
                pairs = [pair for pair in pairs if all(pair)]
            if "kernels" in self.parts:
                self.out.kernels += diff_kernels(pairs, label)
            if "configs" in self.parts:
                self.out.configs += diff_configs(pairs, _of(a, "best_config"), _of(b, "best_config"), label)
        if "autotune" in self.parts:
            self.out.autotune += diff_autotune(_of(a, "autotune"), _of(b, "autotune"), label)


def _of(artifacts: list[ArtifactView], kind: str, direction: str | None = "*") -> list[ArtifactView]:
    return [x for x in artifacts if x.kind == kind and direction in ("*", x.direction)]


def side_of(bundle: LoadedBundle) -> Side:
    """Return what a report says of a bundle before anything is compared."""
    return Side(
        bundle.run.program,
        bundle.run.rank,
        bundle.level,
        bundle.environment.versions.get("torch"),
        bundle.completeness.verdict,
        bundle.complete,
    )


def _seen(bundle: LoadedBundle) -> Any:
    """Return what decides which stages a bundle lists: level, filters, caches, source, and its end."""
    filters = {k: bundle.config.get(k) for k in ("passes", "kernels", "functions", "kinds", "every_pass")}
    return (bundle.level, filters, bundle.completeness.verdict, bundle.producer.source, bundle.complete)


def _explain(a: LoadedBundle, b: LoadedBundle) -> Iterator[str]:
    if a.level != b.level:
        yield f"A was made at level {a.level}, B at {b.level}: what only one of them keeps is not compared"
    elif _seen(a)[1] != _seen(b)[1]:
        yield "A and B were made with different filters: what only one of them keeps is not compared"
    if a.completeness.verdict != b.completeness.verdict:
        yield (
            f"A is {a.completeness.verdict}, B is {b.completeness.verdict}: a compile that comes from a cache"
            " shows fewer stages"
        )
    for name, bundle in (("A", a), ("B", b)):
        if bundle.complete is False:
            yield f"{name} was cut short: its process ended before the bundle was whole"
        budget = bundle.omitted.get("budget")
        if budget:
            yield f"{name} left out {budget.indexed} texts to stay within its size limit"


def _some(labels: list[str]) -> str:
    shown = list(dict.fromkeys(labels))
    more = f" and {len(shown) - _TOLD} more" if len(shown) > _TOLD else ""
    return "; ".join(shown[:_TOLD]) + more
