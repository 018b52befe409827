"""A bundle made fit to be given away: redacted once more, lowered, small enough, in a .zip."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from structdump import levels
from structdump.bundle import assemble, codec
from structdump.bundle.codec import digest
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import (
    Artifact,
    Bundle,
    Compile,
    Completeness,
    Environment,
    HookError,
    Omission,
    OmittedCount,
    Run,
)
from structdump.bundle.privacy import REASON, Privacy
from structdump.bundle.redact import Redactor
from structdump.bundle.redact_rules import TOKEN
from structdump.bundle.writer import ENDINGS, place, write_document
from structdump.errors import UsageError

_ZIP_BYTES = 1024  # what a .zip adds to the one file in it, its name included


class Shared(NamedTuple):
    """What was written: the .zip, its size in bytes, and the bundle in it without its texts."""

    path: Path
    bytes: int
    bundle: Bundle


class Private(NamedTuple):
    """A value that redaction would replace: its token, how often it stands in the bundle, and where first."""

    value: str
    token: str
    times: int
    where: str


def private_values(bundle: LoadedBundle, patterns: Iterable[str] = ()) -> list[Private]:
    """Return what redaction would replace in a bundle, in the order in which it finds it.

    Example::

        >>> private_values(structdump.load("run.json.zst"))  # which was redacted when it was made
        []
    """
    document = bundle.document()
    redactor = Redactor(patterns=patterns, taken=_taken(document))
    privacy = Privacy(redactor)
    first: dict[str, str] = {}

    def note(where: str) -> None:
        for _, _, token in redactor.found[len(first) :]:
            first[token] = where

    for artifact in document.artifacts:
        if artifact.digest in document.texts:
            document.texts[artifact.digest] = (
                privacy.text(artifact.kind, document.texts[artifact.digest]) or ""
            )
            note(f"text of {artifact.seq} {artifact.name}")
    _pass(document, privacy)
    note("environment, arguments, records")
    whole = codec.dumps(document.model_dump(mode="json")).decode("utf-8", "replace")
    return [Private(value, token, whole.count(token), first[token]) for _, value, token in redactor.found]


def share(
    bundle: LoadedBundle,
    target: Path,
    *,
    level: levels.Level | None = None,
    max_bytes: int | None = None,
    shapes: bool = False,
    patterns: Iterable[str] = (),
) -> Shared:
    """Write a bundle, fit to be given away, as a .zip; a file that is there is kept, and another name taken.

    It is redacted once more, with the identity and the secrets of whoever shares it and with `patterns`,
    whether it was redacted when it was made or not. `level` lowers it, `max_bytes` bounds the .zip: texts
    that don't fit become index entries, the least valuable first. With `shapes` nothing of the user's
    stays, see `privacy="shapes"`.

    Raises UsageError if the bundle's level is lower than the one asked for, ConfigError for a bad pattern,
    OSError when it can't be written.

    Example::

        share(load("run.json.zst"), Path("run.zip"), level="low").bytes
    """
    document = reviewed(bundle, level=level, shapes=shapes, patterns=patterns)
    stem = target.name.removesuffix(".zip")
    with tempfile.TemporaryDirectory(prefix="structdump-") as directory:
        limit = None if max_bytes is None else max(max_bytes - _ZIP_BYTES, 1)
        inner = write_document(document, Path(directory, f"{stem}.json.zst"), max_bytes=limit).path
        packed = Path(directory, "packed.zip")
        # GitHub's uploads take .zip and no .zst; the bundle is compressed as it is.
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            info = zipfile.ZipInfo(inner.name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o600 << 16
            archive.writestr(info, inner.read_bytes())
        data = packed.read_bytes()
    document.texts = {}
    return Shared(place([data], target), len(data), document)


def shared_name(path: Path, *, shapes: bool = False) -> str:
    """Return the name that the .zip of a file gets: redacted as well.

    Example: `shared_name(Path("/home/alex/run.json.zst")) == "run.zip"`
    """
    name = path.name or path.absolute().name
    stem = next((name[: -len(e)] for e in (*ENDINGS, ".journal", ".log") if name.endswith(e)), name)
    return f"{'structdump-shapes' if shapes else Redactor().text(stem)}.zip"


def reviewed(
    bundle: LoadedBundle,
    *,
    level: levels.Level | None = None,
    shapes: bool = False,
    patterns: Iterable[str] = (),
) -> Bundle:
    """Return a bundle as `share` writes it, with all its texts."""
    document = bundle.document()
    if level is not None:
        lower(document, level)
    redactor = Redactor(patterns=patterns, taken=_taken(document))
    _pass(document, Privacy(redactor, shapes=shapes, again=document.config.get("privacy") == "shapes"))
    document.config = {**document.config, "redact": True}
    return document


def lower(bundle: Bundle, level: levels.Level) -> None:
    """Leave out what a lower level would not have kept. Raises UsageError if it is a higher one."""
    if levels.LEVELS.index(level) > levels.LEVELS.index(bundle.level):
        raise UsageError(f"the bundle is of level {bundle.level}; {level} would need what it has not got")
    if level == bundle.level:
        return
    kept: list[Artifact] = []
    count = bundle.omitted.setdefault("level", OmittedCount())
    for artifact in bundle.artifacts:
        cell = levels.cell(level, artifact.kind, artifact.stage, artifact.phase, artifact.changed)
        if cell == "drop":
            count.dropped += 1
            count.bytes += artifact.bytes or 0
            continue
        if cell == "index" and artifact.omitted is None:
            assemble.omit(artifact, "level")
        if cell == "winner" and artifact.autotune is not None:
            artifact.autotune.choices = artifact.autotune.choices[:1]
        kept.append(artifact)
    bundle.artifacts, bundle.level = kept, level
    bundle.config = {**bundle.config, "level": level}


def _pass(bundle: Bundle, privacy: Privacy) -> None:
    """Let each part of a bundle through the gate."""
    texts: dict[str, tuple[str, int] | None] = {}
    new: dict[str, str] = {}
    for artifact in bundle.artifacts:
        if artifact.digest is None or artifact.digest in texts:
            continue
        text = privacy.text(artifact.kind, bundle.texts[artifact.digest])
        if text is not None:
            texts[artifact.digest] = (digest(text), len(text.encode("utf-8", "surrogatepass")))
            new[digest(text)] = text
        else:
            texts[artifact.digest] = None
    bundle.artifacts = [_artifact(a, texts, bundle.texts, privacy) for a in bundle.artifacts]
    bundle.texts = new
    bundle.compiles = [
        Compile.model_validate(privacy.compile(c.model_dump(exclude_defaults=True))) for c in bundle.compiles
    ]
    bundle.environment = Environment.model_validate(privacy.environment(bundle.environment.model_dump()))
    bundle.run = Run.model_validate(privacy.run(bundle.run.model_dump()))
    for one in bundle.runs or ():
        one.run = Run.model_validate(privacy.run(one.run.model_dump()))
        one.environment = {} if privacy.shapes else privacy.value(one.environment)
        one.notes = [privacy.message(note) for note in one.notes]
    bundle.config = privacy.config(bundle.config)
    bundle.completeness = Completeness.model_validate(privacy.completeness(bundle.completeness.model_dump()))
    bundle.hook_errors = [
        HookError.model_validate(privacy.hook_error(e.model_dump())) for e in bundle.hook_errors
    ]
    omitted = privacy.omitted({reason: count.model_dump() for reason, count in bundle.omitted.items()})
    bundle.omitted = {reason: OmittedCount.model_validate(count) for reason, count in omitted.items()}
    counts = privacy.counts
    bundle.redactions = {
        rule: bundle.redactions.get(rule, 0) + counts.get(rule, 0)
        for rule in sorted({*bundle.redactions, *counts})
    }


def _artifact(
    artifact: Artifact,
    texts: dict[str, tuple[str, int] | None],
    old: dict[str, str],
    privacy: Privacy,
) -> Artifact:
    if artifact.digest is not None:
        found = texts[artifact.digest]
        if found is None:
            same = privacy.same(old[artifact.digest])
            assemble.omit(artifact, REASON)
            artifact.omitted = Omission(
                reason=REASON, bytes=artifact.omitted and artifact.omitted.bytes, same=same
            )
        else:
            artifact.digest, artifact.bytes = found
    return Artifact.model_validate(privacy.artifact(artifact.model_dump(exclude_defaults=True)))


def _taken(bundle: Bundle) -> dict[str, int]:
    """Return the highest number of each label among the tokens that are in a bundle already."""
    taken: dict[str, int] = {}
    data: Any = bundle.model_dump(mode="json")
    for token in set(TOKEN.findall(codec.dumps(data).decode("utf-8", "replace"))):
        label, _, number = token.strip("<>").rpartition("-")
        taken[label] = max(taken.get(label, 0), int(number))
    return taken
