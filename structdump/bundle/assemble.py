"""From a journal's records to a bundle without its texts: who is kept, what is missing, what adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from structdump import levels
from structdump.bundle.journal import JournalReader
from structdump.bundle.limits import TRUST, Limits
from structdump.bundle.model import Artifact, Bundle, Compile, HookError, Kind, Model, Omission, OmittedCount
from structdump.errors import LimitError

Rank = Callable[[Artifact], int]
_KINDS = get_args(Kind)
_REPEATED = {"kind", "name", "stage", "phase", "compile_id", "direction", "language", "omitted"}
_M = TypeVar("_M", bound=Model)
_STATE = (
    "producer", "run", "level", "config", "environment", "completeness", "compiles", "omitted", "redactions",
    "hook_errors",
)  # fmt: skip


def level_rank(artifact: Artifact) -> int:
    """Return an artifact's row in the level table: the lower, the more valuable its text."""
    return levels.rank(artifact.kind, artifact.stage, artifact.phase, artifact.changed)


#: The reason that a journal without its end gives for its verdict.
CUT = "the process ended before the capture did; all that was seen by then is here"


class Assembly:
    """Makes a bundle of a journal's records, texts aside.

    A record that does not fit the model loses the fields that don't, and `hook_errors` says so.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        self._entries = 0
        self._state: dict[str, Any] = {}
        self._compiles: dict[str, Any] = {}
        self._artifacts: list[Artifact] = []
        self._problems: list[str] = []
        self._known: dict[str, str] = {}
        self._fields: dict[frozenset[str], set[str]] = {}

    def take(self, record: Mapping[str, Any]) -> Artifact | None:
        """Take one record; return its artifact, if it is one.

        Raises LimitError when there are more records than the limits allow.
        """
        self._entries += 1
        _check(self._entries // 2, self._limits)  # a compile or two for each artifact would be many
        kind = record["t"]
        if kind == "artifact":
            data = record.get("artifact")
            if isinstance(data, dict):  # pydantic deep-copies such defaults, which takes longer than all else
                data = {"inferred": [], "files": [], **data}
                for field in _REPEATED & data.keys():
                    if isinstance(data[field], str):
                        data[field] = self._known.setdefault(data[field], data[field])
            artifact = fit(Artifact, data, self._problems)
            if artifact is not None:
                # A long log has hundreds of thousands; a set of names for each is two fifths of its memory.
                own = artifact.model_fields_set
                shared = self._fields.setdefault(frozenset(own), own)
                object.__setattr__(artifact, "__pydantic_fields_set__", shared)
                self._artifacts.append(artifact)
            return artifact
        if kind == "compile" and isinstance(record.get("compile"), dict):
            self._compiles[str(record["compile"].get("id"))] = record["compile"]
        elif kind in ("head", "state"):
            self._state.update((k, record[k]) for k in _STATE if k in record)
        return None

    def finish(self, texts: Iterable[str], *, complete: bool) -> Bundle:
        """Return the bundle, its counts settled; `texts` are the digests of those that are there."""
        state = self._state
        if "compiles" not in state or not complete:
            known = [c for c in state.get("compiles") or () if isinstance(c, dict)]
            state["compiles"] = list({**{str(c.get("id")): c for c in known}, **self._compiles}.values())
        bundle = _bundle(state, self._problems)
        bundle.artifacts = self._artifacts
        bundle.complete = complete
        if not complete:
            bundle.completeness.verdict = "partial"
            bundle.completeness.reasons.append(CUT)
            listed = {c.id for c in bundle.compiles}
            begun = dict.fromkeys(a.compile_id for a in bundle.artifacts if a.compile_id is not None)
            bundle.compiles += [Compile(id=id_) for id_ in begun if id_ not in listed]
        if not complete and bundle.artifacts:
            # The counts of what was dropped were lost with the end, but every event took a number.
            known_of = len(bundle.artifacts) + sum(o.dropped for o in bundle.omitted.values())
            lost = max(a.seq for a in bundle.artifacts) + 1 - known_of
            if lost > 0:
                bundle.omitted.setdefault("unrecorded", OmittedCount()).dropped += lost
        settle(bundle, texts)
        return bundle


def from_journal(reader: JournalReader) -> Bundle:
    """Read all records but the texts, which are neither kept nor parsed, and return their bundle.

    A journal without its end gives a bundle with `complete` False.
    Raises LimitError when there are more artifacts than the reader's limits allow.
    """
    assembly = Assembly(reader.limits)
    present: set[str] = set()
    reader.complete = False
    for line in reader.lines():
        text = reader.text(line)
        if text is not None:
            if text[0]:
                present.add(text[0])
            _check(len(present), reader.limits)
            continue
        record = reader.record(line)
        if record is None:
            break
        assembly.take(record)
    return assembly.finish(present, complete=reader.complete)


def _check(count: int, limits: Limits) -> None:
    if count > limits.artifacts:
        raise LimitError(f"the journal lists more than {limits.artifacts:,} artifacts; {TRUST}")


def _bundle(state: Mapping[str, Any], problems: list[str]) -> Bundle:
    compiles = [fit(Compile, c, problems) for c in state.get("compiles") or ()]
    rest = {k: v for k, v in state.items() if k != "compiles"}
    bundle = fit(Bundle, rest, problems) or Bundle()
    bundle.compiles = [c for c in compiles if c is not None]
    bundle.hook_errors += [HookError(hook="writer", error=p) for p in dict.fromkeys(problems)]
    return bundle


def from_newer(document: Mapping[str, Any]) -> Bundle:
    """Return the bundle in a document of a newer minor version, without the values that are new in it.

    An artifact of a kind that is unknown here becomes an `event`.
    """
    ignored: list[str] = []
    bundle = _bundle({k: v for k, v in document.items() if k != "artifacts"}, ignored)
    bundle.hook_errors = [e for e in bundle.hook_errors if e.hook != "writer"]
    for item in document.get("artifacts") or ():
        known = (
            item if not isinstance(item, dict) or item.get("kind") in _KINDS else {**item, "kind": "event"}
        )
        artifact = fit(Artifact, known, ignored)
        if artifact is not None:
            bundle.artifacts.append(artifact)
    return bundle


def fit(model: type[_M], data: Any, problems: list[str]) -> _M | None:
    """Return `data` as a model, without the fields that break it (named in `problems`); None if hopeless."""
    try:
        return model.model_validate(data)
    except ValidationError as e:
        bad = {str(error["loc"][0]) for error in e.errors() if error["loc"]}
    problems.append(f"{model.__name__}: bad {', '.join(sorted(bad)) or 'record'}")
    if not isinstance(data, dict) or not bad & data.keys():
        return None
    return fit(model, {k: v for k, v in data.items() if k not in bad}, problems)


def settle(bundle: Bundle, present: Iterable[str]) -> set[str]:
    """Make the artifacts, the counts and the texts that are `present` agree; return the digests in use.

    An artifact whose text is missing becomes indexed, with the reason `lost`. Afterwards
    kept + indexed + dropped = seen.
    """
    present = set(present)
    bundle.artifacts.sort(key=lambda a: a.seq)
    used = set()
    for artifact in bundle.artifacts:
        if artifact.digest is None:
            continue
        if artifact.omitted is None and artifact.digest in present:
            used.add(artifact.digest)
        else:
            omit(artifact, "lost")
    count(bundle)
    return used


def omit(artifact: Artifact, reason: str) -> None:
    """Turn a kept artifact into an indexed one that says how large its text was."""
    if artifact.omitted is None:
        artifact.omitted = Omission(reason=reason, bytes=artifact.bytes)
    artifact.digest = artifact.bytes = None


def count(bundle: Bundle) -> None:
    """Set `completeness` and `omitted` to what the artifacts say; dropped ones are taken as given."""
    omitted = {
        r: OmittedCount(dropped=o.dropped, bytes=o.bytes) for r, o in bundle.omitted.items() if o.dropped
    }
    sizes: dict[str, int] = {}
    for artifact in bundle.artifacts:
        if artifact.omitted is not None:
            reason = artifact.omitted.reason
            omitted.setdefault(reason, OmittedCount()).indexed += 1
            sizes[reason] = sizes.get(reason, 0) + (artifact.omitted.bytes or 0)
    for reason, size in sizes.items():
        omitted[reason].bytes = max(omitted[reason].bytes, size)
    bundle.omitted = dict(sorted(omitted.items()))
    facts = bundle.completeness
    facts.indexed = sum(o.indexed for o in omitted.values())
    facts.dropped = sum(o.dropped for o in omitted.values())
    facts.kept = len(bundle.artifacts) - facts.indexed
    facts.seen = facts.kept + facts.indexed + facts.dropped


def ranks(bundle: Bundle, rank: Rank) -> dict[str, int]:
    """Return the value of each text in use: that of its most valuable artifact (lower is better)."""
    best: dict[str, int] = {}
    for artifact in bundle.artifacts:
        if artifact.digest is not None:
            value = rank(artifact)
            best[artifact.digest] = min(value, best.get(artifact.digest, value))
    return best
