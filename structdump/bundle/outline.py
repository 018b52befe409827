"""The cheapest look at a bundle: what its first frame says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from structdump.bundle import codec, journal, unpack
from structdump.bundle.layout import OPENING
from structdump.bundle.limits import DEFAULT, Limits, Meter
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Bundle
from structdump.bundle.places import opened
from structdump.bundle.reader import check, load
from structdump.bundle.texts import NoTexts
from structdump.errors import BundleError, CorruptError, LimitError, TruncatedError

_COMPILES = re.compile(rb',"compiles":(?=\[)')
_ARTIFACTS = re.compile(rb',"artifacts":\[')


def outline(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> dict[str, Any]:
    """Return what a bundle says before its compiles and artifacts, and under these keys how many there are.

    Reads no more of a `.json.zst` than that, so it takes a millisecond however many artifacts follow, and
    sees no cut or damage behind it. Other forms are read whole. Raises what `structdump.load` raises.

    Example: `outline("run.json.zst")["environment"]["versions"]["torch"]`
    """
    bundle = without_artifacts(path, limits=limits)
    excluded = {"texts", "compiles", "artifacts", "complete"}
    facts = bundle.bare().model_dump(by_alias=True, mode="json", exclude=excluded)
    listed = bundle.completeness.kept + bundle.completeness.indexed
    return {**facts, "compiles": len(bundle.compiles), "artifacts": listed}


def without_artifacts(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> LoadedBundle:
    """Open a bundle by its first frame: what `outline` reads, and the compiles. Raises what `outline` raises.

    Example: `[c.status for c in without_artifacts("run.json.zst").compiles]`
    """
    try:
        found = _quick(path, limits)
    except BundleError as e:
        raise type(e)(f"{os.fspath(path)}: {e}") from None
    except (OSError, ValueError):
        found = None  # load() says it better
    if found is None:
        found = load(path, limits=limits).bare()
    return LoadedBundle(found.model_copy(update={"artifacts": [], "texts": {}}), NoTexts(), None)


def _quick(path: str | os.PathLike[str], limits: Limits) -> Bundle | None:
    """Return a bundle that is laid out as this package does it, without artifacts; else None."""
    with opened(path) as file:
        data = file.read(journal.SNIFF)
        if unpack.kind(data) != "zstd" or journal.is_journal(data):
            return None
        while True:
            try:
                return _of(data, limits)
            except TruncatedError:
                more = file.read(len(data))
                if not more:
                    raise
                data += more


def _of(data: bytes, limits: Limits) -> Bundle | None:
    start = b""
    meter = Meter(limits, len(data))
    for frame in codec.frames(data):
        piece = codec.inflate(data, frame, meter)
        if piece == OPENING:
            raise CorruptError("the bundle's head lists no artifacts")
        start += piece
        if len(start) > limits.head:
            raise LimitError(f"the bundle's head is larger than {limits.head:,} bytes")
        for document, compiles in _cut(start, limits):
            return check({**document, "compiles": compiles, "artifacts": []}, limits)
    return None


def _cut(start: bytes, limits: Limits) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield what stands before the compiles, and the compiles.

    The words may occur within a value too, but there, what is before them is no whole object.
    """
    for one in _COMPILES.finditer(start):
        try:
            document = codec.loads(start[: one.start()] + b"}", limits)
        except (TruncatedError, CorruptError):
            continue
        for other in _ARTIFACTS.finditer(start, one.end()):
            try:
                compiles = codec.loads(start[one.end() : other.start()], limits)
            except (TruncatedError, CorruptError):
                continue
            if isinstance(document, dict) and isinstance(compiles, list):
                yield document, compiles
        return
