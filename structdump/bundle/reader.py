"""Opening a bundle in any of its forms, safely: what it is, then its head, and texts when asked.

Every error is one of `structdump.errors`. What decides is the content (magic bytes), not the name.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from structdump.bundle import assemble, codec, journal, unpack
from structdump.bundle.codec import Frame
from structdump.bundle.journal import JournalReader
from structdump.bundle.layout import OPENING, closing
from structdump.bundle.limits import DEFAULT, TRUST, Limits, Meter
from structdump.bundle.loaded import ArtifactView, LoadedBundle, Provenance
from structdump.bundle.model import FORMAT, VERSION, Bundle
from structdump.bundle.places import is_url, opened, size, url_of
from structdump.bundle.texts import FrameTexts, LateTexts, NoTexts
from structdump.bundle.verify import problems
from structdump.errors import (
    BundleError,
    CorruptError,
    LimitError,
    NotABundleError,
    TruncatedError,
    UnsupportedVersionError,
)

__all__ = ["ArtifactView", "Limits", "LoadedBundle", "Provenance", "head", "load", "verify"]


def load(source: str | os.PathLike[str] | bytes, *, limits: Limits = DEFAULT) -> LoadedBundle:
    """Open a bundle: `.json.zst`, `.json`, `.json.gz`, a `.zip` holding one of these, or a journal.

    `source` is a path, any URL that fsspec reads (`s3://…`, `memory://…`), or the file's bytes. Texts are
    read when asked for, so damage in them shows up then. Needs neither torch nor depyf.

    Raises NotABundleError, TruncatedError, CorruptError, UnsupportedVersionError or LimitError.

    Example: `load("run.json.zst").compiles[0].status`
    """
    if isinstance(source, bytes):
        return _load(source, limits)
    path = url_of(source) if is_url(source) else Path(source)
    try:
        with opened(path) as file:
            return _load_file(path, file, limits)
    except BundleError as e:
        raise type(e)(f"{path}: {e}") from None
    except IsADirectoryError:
        raise NotABundleError(
            f"{path} is a directory; `structdump pack` makes a bundle of a dump directory"
        ) from None
    except (OSError, ValueError) as e:  # ValueError: a null byte in the name
        raise NotABundleError(f"{path} cannot be read: {getattr(e, 'strerror', None) or e}") from None


def head(
    path: str | os.PathLike[str], *, kinds: Collection[str] | None = None, limits: Limits = DEFAULT
) -> LoadedBundle:
    """Open a bundle but read its head alone: for scans of thousands of bundles.

    Its `texts` can't be read and its `complete` is None. With `kinds` it lists artifacts of these kinds
    alone. Other forms than `.json.zst` are read whole, as `load` does. Raises what `load` raises, but
    sees no cut or damage behind the head.

    Example: `[head(p).environment.versions["torch"] for p in Path("runs").glob("*.json.zst")]`
    """
    document = _head_document(path, limits)
    if document is None:
        return load(path, limits=limits)
    artifacts = document.get("artifacts") if isinstance(document, dict) else None
    if kinds is not None and isinstance(artifacts, list):
        document["artifacts"] = [a for a in artifacts if not isinstance(a, dict) or a.get("kind") in kinds]
    try:
        return LoadedBundle(check(document, limits), NoTexts(), None)
    except BundleError as e:
        raise type(e)(f"{path}: {e}") from None


def _head_document(path: str | os.PathLike[str], limits: Limits) -> Any:
    """Return the JSON of the head, or None if the file is no bundle in frames."""
    try:
        with opened(path) as file:
            data = file.read(journal.SNIFF)
            while unpack.kind(data) == "zstd" and not journal.is_journal(data):
                try:
                    parts = _Parts(data, limits, head_only=True)
                except TruncatedError:
                    more = file.read(len(data))
                    if not more:
                        raise
                    data += more
                    continue
                if not parts.framed:
                    break
                return codec.loads(parts.head, limits)
    except BundleError as e:
        raise type(e)(f"{path}: {e}") from None
    except (OSError, ValueError):
        pass  # load() says it better
    return None


def verify(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> list[str]:
    """Read all of a bundle and return what is wrong with it, a sentence each; none if it is sound.

    A file that can't be opened is one problem, not an exception.

    Example: `assert verify("run.json.zst") == []`
    """
    try:
        return problems(load(path, limits=limits))
    except BundleError as e:
        return [str(e)]


def _load_file(path: str | Path, file: IO[bytes], limits: Limits) -> LoadedBundle:
    data = file.read(journal.SNIFF)
    if isinstance(path, Path) and journal.is_journal(data) and path.is_file():
        return _load_journal(path, limits)
    kind = unpack.kind(data)
    if kind is None:  # not worth reading further
        return _load(data, limits)
    most = limits.document if kind == "json" else limits.compressed
    if size(file) <= most:
        data += file.read(max(0, most - len(data)) + 1)
        if len(data) <= most:
            return _load(data, limits)
    raise LimitError(f"the file is larger than {most:,} bytes; {TRUST}")


def _load(data: bytes, limits: Limits, *, packed: bool = False) -> LoadedBundle:
    kind = unpack.kind(data)
    if kind == "zstd":
        if journal.is_journal(data):
            return _load_journal(data, limits)
        return _load_zstd(data, limits)
    if kind == "json":
        if len(data) > limits.document:
            raise LimitError(f"the JSON is larger than {limits.document:,} bytes")
        return _load_json(data, limits)
    if kind == "gzip":
        return _load_json(unpack.gunzip(data, limits), limits)
    if kind == "zip" and not packed:
        return _load(unpack.unzip(data, limits), limits, packed=True)
    if not data:
        raise NotABundleError("the file is empty")
    raise NotABundleError("this is no bundle; one is a .json.zst, .json, .json.gz, .zip or .journal file")


class _Parts:
    """The frames of a bundle, taken apart: the head's JSON, and where the texts are.

    `framed` is False for a document that some other program compressed; its JSON is `head` then.
    """

    def __init__(self, data: bytes, limits: Limits, *, head_only: bool = False):
        self.meter = Meter(limits, len(data))
        self.framed = False
        self.texts: list[Frame] = []
        pieces: list[bytes] = []
        held = 0
        for number, frame in enumerate(codec.frames(data)):
            if number >= limits.frames:
                raise LimitError(f"the file has more than {limits.frames:,} frames")
            if self.framed:
                self.texts.append(frame)
                continue
            piece = codec.inflate(data, frame, self.meter)
            self.framed = piece == OPENING
            if self.framed and head_only:
                break
            held += len(piece)
            if held > limits.document:
                raise LimitError(f"the JSON is larger than {limits.document:,} bytes")
            pieces.append(piece)
        if self.framed and not head_only:
            pieces.pop()
        self.head = b"".join(pieces)
        if not self.framed:
            return
        if len(self.head) > limits.head:
            raise LimitError(f"the bundle's head is larger than {limits.head:,} bytes")
        if self.head[-1:] != b",":
            raise CorruptError("the bundle's head does not end where its texts begin")
        self.head = self.head[:-1] + b"}"


def _load_zstd(data: bytes, limits: Limits) -> LoadedBundle:
    parts = _Parts(data, limits)
    if not parts.framed:
        return _load_json(parts.head, limits)
    last = parts.texts.pop() if parts.texts else None
    end = codec.inflate(data, last, parts.meter) if last else b""
    if end not in (closing(complete=True), closing(complete=False)):
        raise TruncatedError("the file ends before the bundle does: it was cut while copied; get it again")
    bundle = check(codec.loads(parts.head, limits), limits)
    return LoadedBundle(bundle, FrameTexts(data, parts.texts, parts.meter), end == closing(complete=True))


def _load_json(data: bytes, limits: Limits) -> LoadedBundle:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data[: journal.SNIFF].lstrip()[:1] != b"{":
        raise NotABundleError("this is no bundle: there is no JSON object in it")
    document = codec.loads(data, limits)
    texts = document.pop("texts", None) if isinstance(document, dict) else None
    bundle = check(document, limits)
    if not isinstance(texts, dict) or not all(isinstance(t, str) for t in texts.values()):
        raise CorruptError("the bundle's texts are not a mapping from digest to text")
    return LoadedBundle(bundle, texts, bundle.complete)


def _load_journal(source: Path | bytes, limits: Limits) -> LoadedBundle:
    reader = JournalReader(source, limits)
    bundle = assemble.from_journal(reader)
    used = {a.digest for a in bundle.artifacts}

    def texts() -> dict[str, str]:
        found: dict[str, str] = {}
        held = 0
        for line in reader.lines():
            text = reader.text(line)
            if text is not None and text[0] in used and text[0] not in found:
                held += len(text[1])
                if held > limits.document:
                    raise LimitError(
                        f"the journal holds texts of more than {limits.document:,} bytes; {TRUST}"
                    )
                found[text[0]] = codec.loads_text(text[1])
        return found

    return LoadedBundle(bundle, LateTexts(texts), bundle.complete)


def check(document: Any, limits: Limits) -> Bundle:
    """Return a parsed document as a bundle. Raises what `load` raises of what is no bundle."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NotABundleError("this is JSON, but no bundle of structdump")
    _check_version(document)
    _check_artifacts(document.get("artifacts"), limits)
    try:
        return Bundle.model_validate(document)
    except ValidationError as e:
        if document["version"] != VERSION and isinstance(document.get("artifacts"), list):
            return assemble.from_newer(document)
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CorruptError(f"the bundle breaks the format at {where}: {first['msg']}") from None


def _check_version(document: dict[str, Any]) -> None:
    version = document.get("version")
    if not isinstance(version, str) or not version.partition(".")[0].isdigit():
        raise CorruptError("the bundle does not say in which version of the format it is written")
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        producer = document.get("producer")
        by = producer.get("version") if isinstance(producer, dict) else None
        raise UnsupportedVersionError(
            f"the bundle is in format {version[:20]} and this structdump reads {VERSION[0]}.x; "
            f"open it with structdump {str(by)[:20] if by else 'of its time'} or newer"
        )


def _check_artifacts(artifacts: Any, limits: Limits) -> None:
    if isinstance(artifacts, list) and len(artifacts) > limits.artifacts:
        raise LimitError(f"the bundle lists more than {limits.artifacts:,} artifacts")
