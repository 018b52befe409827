"""The bundles of many processes as one: what they have in common once, with the ranks that have it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from structdump.bundle import assemble, codec, rank_text
from structdump.bundle.lane import Lane
from structdump.bundle.layout import TextFrames, lay_out
from structdump.bundle.limits import DEFAULT, Limits
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Artifact, Bundle, Compile, Completeness, OmittedCount, RankRun
from structdump.bundle.patch import make_patch
from structdump.bundle.rank_view import of_rank
from structdump.bundle.reader import load
from structdump.bundle.writer import WriteResult, finish
from structdump.errors import BundleError, LimitError, UsageError

Source = LoadedBundle | str | os.PathLike[str] | bytes
_IN_FULL = 64  # ranks up to which an artifact that all have lists them


def merge(
    sources: Iterable[Source],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    on_error: Callable[[str, BundleError], None] | None = None,
) -> WriteResult:
    """Write one bundle of many: of the ranks of a job, each text once, each artifact with its ranks.

    `sources` are paths, opened bundles or files' bytes; they are read one at a time, so memory grows
    with what differs between them alone. A merged bundle among them counts as its ranks; `output` is
    passed over. A rank is `run.rank`; one that is unknown or taken gets the next free number, and
    `runs` says so. Times are those of one rank, but each compile's seconds are kept for all.
    An existing `output` is kept and the bundle goes beside it, unless `overwrite`.

    `on_error(name, error)` is called for a source that can't be read, which is then left out. Without
    it, what `structdump.load` raises is raised. Raises UsageError if nothing is left to merge, LimitError
    if the sources have so little in common that no reader would open the result, OSError when writing fails.

    Example: `structdump.merge(Path("out").glob("*.json.zst"), "job.json.zst").bytes`
    """
    target = Path(output)
    with closing(TextFrames(target.parent)) as frames:
        merger = _Merger(frames, DEFAULT)
        for number, source in enumerate(sources):
            name = f"source {number}"
            if isinstance(source, (str, os.PathLike)):
                name = os.fspath(source)
                if Path(name) == target:
                    continue
            try:
                merger.add(source, name)
            except BundleError as error:
                if on_error is None or merger.full:
                    raise
                on_error(name, error)
        bundle = merger.bundle()
        return finish(bundle, lay_out(bundle, frames.finish(), frames, None), target, overwrite)


class _Merger:
    """Takes bundles one after the other; keeps what is new in each."""

    def __init__(self, frames: TextFrames, limits: Limits):
        self.full = False
        self._frames = frames
        self._limits = limits
        self._runs: list[RankRun] = []
        self._base: Bundle | None = None
        self._compiles, self._artifacts = Lane(), Lane()
        self._records: list[Compile] = []
        self._found: list[Artifact] = []
        self._seconds: list[dict[int, float]] = []
        self._facts: dict[str, _Facts] = {}
        self._written: set[str] = set()
        self._redactions: Counter[str] = Counter()
        self._errors: dict[tuple[str, str], Any] = {}
        self._omitted: dict[str, OmittedCount] = {}

    def add(self, source: Source, name: str) -> None:
        bundle = source if isinstance(source, LoadedBundle) else load(source)
        if bundle.runs is None:
            self._add(bundle, name)
        else:
            for run in bundle.runs:
                self._add(of_rank(bundle, run.rank), name)

    def _add(self, bundle: LoadedBundle, name: str) -> None:
        # What may fail first, so that a damaged source leaves nothing behind.
        device, keys = self._keys(bundle)
        records = [rank_text.compile_key(c, device) for c in bundle.compiles]
        owner = len(self._runs)
        self._take_head(bundle, device)
        for item, record in zip(self._compiles.add(owner, records), bundle.compiles, strict=True):
            if item == len(self._records):
                self._records.append(record)
                self._seconds.append({})
            if record.seconds is not None:
                self._seconds[item][owner] = record.seconds
        for item, artifact in zip(self._artifacts.add(owner, keys), bundle.artifacts, strict=True):
            if item == len(self._found):
                self._found.append(Artifact.model_construct(**artifact.__dict__))
                self._write(artifact.digest, bundle, assemble.level_rank(artifact))
            elif artifact.digest != self._found[item].digest:
                self._found[item].varies = True
        if len(self._found) > self._limits.artifacts:
            self.full = True
            raise LimitError(
                f"together, the bundles up to {name} have more than {self._limits.artifacts:,} different"
                " artifacts: these are not ranks of one job"
            )

    def _keys(self, bundle: LoadedBundle) -> tuple[str | None, list[bytes]]:
        facts = [self._facts_of(a, bundle) for a in bundle.artifacts]
        device = next((f.first for f in facts if f is not None and f.first is not None), None)
        keys = []
        for artifact, known in zip(bundle.artifacts, facts, strict=True):
            content = "" if known is None else known.content(artifact, bundle, device)
            keys.append(rank_text.artifact_key(artifact, content, device))
        return device, keys

    def _facts_of(self, artifact: Artifact, bundle: LoadedBundle) -> _Facts | None:
        if artifact.digest is None:
            return None
        if artifact.digest not in self._facts:
            self._facts[artifact.digest] = _Facts(bundle.text(artifact.digest))
        return self._facts[artifact.digest]

    def _write(self, digest: str | None, bundle: LoadedBundle, value: int) -> None:
        if digest is not None and digest not in self._written:
            self._written.add(digest)
            self._frames.add(value, digest, codec.dumps(bundle.text(digest)))

    def _take_head(self, bundle: LoadedBundle, device: str | None) -> None:
        base = self._base
        if base is None:
            base = self._base = Bundle(
                level=bundle.level, config=bundle.config, environment=bundle.environment
            )
            base.producer.source = "merge"
            base.producer.version = bundle.producer.version
        run = RankRun(
            rank=-1 if bundle.run.rank is None else bundle.run.rank,
            run=bundle.run,
            level=None if bundle.level == base.level else bundle.level,
            environment=make_patch(
                base.environment.model_dump(mode="json"), bundle.environment.model_dump(mode="json")
            ),
            verdict=bundle.completeness.verdict,
            complete=bundle.complete is not False,
            device=device,
        )
        if not run.complete:
            run.notes.append("its process ended before its capture did")
        self._runs.append(run)
        self._redactions.update(bundle.redactions)
        for error in bundle.hook_errors:
            known = self._errors.setdefault((error.hook, error.error), error.model_copy(update={"count": 0}))
            known.count += error.count
        for reason, count in bundle.omitted.items():  # what was dropped in all ranks is dropped once
            mine = self._omitted.setdefault(reason, OmittedCount())
            mine.dropped, mine.bytes = max(mine.dropped, count.dropped), max(mine.bytes, count.bytes)
        facts = base.completeness
        facts.reasons += [r for r in bundle.completeness.reasons if r not in facts.reasons]
        facts.hints += [h for h in bundle.completeness.hints if h not in facts.hints]

    def bundle(self) -> Bundle:
        """Return the merged bundle without its texts, which are in the frames."""
        bundle = self._base
        if bundle is None:
            raise UsageError("there is no bundle to merge")
        ranks = _numbered(self._runs)
        bundle.runs = sorted(self._runs, key=lambda r: r.rank)
        bundle.run = bundle.runs[0].run.model_copy(
            update={"rank": None, "pid": None, "launcher": {}, "hook_seconds": None}
        )
        bundle.complete = all(run.complete for run in bundle.runs)
        _judge(bundle.completeness, bundle.runs)
        in_full = len(ranks) <= _IN_FULL

        def names(owners: list[int]) -> list[int] | None:
            return sorted(ranks[o] for o in owners) if in_full or len(owners) < len(ranks) else None

        owners = self._compiles.owners()
        for item in self._compiles.order:
            times = {str(ranks[o]): s for o, s in self._seconds[item].items()}
            changes = {"ranks": names(owners[item]), "seconds_by_rank": _by_number(times) or None}
            bundle.compiles.append(self._records[item].model_copy(update=changes))
        owners = self._artifacts.owners()
        for seq, item in enumerate(self._artifacts.order):
            artifact = self._found[item]
            artifact.seq, artifact.ranks = seq, names(owners[item])
            bundle.artifacts.append(artifact)
        bundle.omitted, bundle.redactions = self._omitted, dict(sorted(self._redactions.items()))
        bundle.hook_errors = list(self._errors.values())
        assemble.settle(bundle, self._written)
        return bundle


class _Facts:
    """What is known of a text without reading it again."""

    def __init__(self, text: str):
        self.first = rank_text.first_device(text)
        self._contents: dict[tuple[str, str | None], str] = {}

    def content(self, artifact: Artifact, bundle: LoadedBundle, device: str | None) -> str:
        """Return the digest of the canonical text."""
        key = (artifact.kind, device)
        if key not in self._contents:
            text = bundle.text(artifact.digest or "")
            self._contents[key] = codec.digest(rank_text.canonical_text(artifact.kind, text, device))
        return self._contents[key]


def _numbered(runs: list[RankRun]) -> list[int]:
    """Give each run a rank of its own, those that have one first; return them in order of the runs."""
    taken: set[int] = set()
    without = []
    for run in runs:
        if run.rank < 0 or run.rank in taken:
            without.append(run)
        taken.add(run.rank)
    free = _free(taken)
    for run in without:
        number = next(free)
        run.notes.append(
            f"it does not say its rank; {number} is by order"
            if run.rank < 0
            else f"it is another run of rank {run.rank}; {number} tells it apart"
        )
        run.rank = number
    return [run.rank for run in runs]


def _free(taken: set[int]) -> Iterator[int]:
    number = 0
    while True:
        if number not in taken:
            yield number
        number += 1


def _by_number(times: dict[str, float]) -> dict[str, float]:
    return dict(sorted(times.items(), key=lambda item: int(item[0])))


def _judge(facts: Completeness, runs: list[RankRun]) -> None:
    verdicts = Counter(run.verdict for run in runs)
    facts.verdict = runs[0].verdict if len(verdicts) == 1 else "partial"
    if len(verdicts) > 1:
        told = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
        facts.reasons.insert(0, f"ranks differ: {told}")
