"""What the ranks of one job print differently though they compiled the same.

Each rank has a device of its own, and Inductor writes its index into graphs and wrapper code, and with it
into the hashes that name its cache files (torch/_inductor/codegen/wrapper.py and codecache.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from structdump.bundle import codec
from structdump.bundle.model import Artifact, Compile
from structdump.bundle.normal import normalise

_TYPES = "cuda|xpu|hip|hpu|npu|mtia|privateuseone"
_DEVICE = re.compile(rf"\b((?:{_TYPES}):\d+)\b")
# All ways in which the index of a device is written; it must not be any number, so each has its words.
_INDEX = re.compile(
    rf"(\b(?:{_TYPES}):|\btype='(?:{_TYPES})', index=|\b_?DeviceGuard\(|\bset_device\("
    r"|\bget_(?:raw|cuda|xpu)_stream\(|\b(?:raw_)?stream)(\d+)\b"
)
_HASHED = re.compile(r"(?:\b[a-z2-7]{2}/)?\b[a-z][a-z2-7]{50,52}\b")
_TOKEN = re.compile(r"<([a-z]+(?:[_-][a-z]+)*)-\d+>")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
#: Kinds that tell of time: their numbers differ in every process.
CLOCKS = frozenset({"metrics", "cache", "autotune"})


def first_device(text: str) -> str | None:
    """Return the first device with an index that a text names.

    Example::

        >>> first_device('x: "f32[8]cuda:3", y: "f32[8]cuda:0"')
        'cuda:3'
    """
    found = _DEVICE.search(text)
    return found[1] if found else None


def depends_on_device(text: str) -> bool:
    """Tell whether `canonical` depends on the rank's own device."""
    return _INDEX.search(text) is not None or _HASHED.search(text) is not None


def canonical(text: str, device: str | None = None) -> str:
    """Return `text` as a rank prints it whose own device has no number; other devices keep theirs.

    With the number go the hashes that it went into; numbers of redaction tokens and addresses go always.

    Example::

        >>> canonical('x: "f32[8]cuda:3", y: "f32[8]cuda:0"', "cuda:3")
        'x: "f32[8]cuda:@", y: "f32[8]cuda:0"'
    """
    text = _TOKEN.sub(r"<\1>", normalise(text))
    if device is None:
        return text
    own = device.rpartition(":")[2]
    text = _INDEX.sub(lambda m: m[1] + ("@" if m[2] == own else m[2]), text)
    return _HASHED.sub("<hash>", text)


def canonical_text(kind: str, text: str, device: str | None) -> str:
    """Return what an artifact's text is known by: telemetry without its numbers, the rest as `canonical`."""
    if kind == "trace":
        return ""
    text = canonical(text, device)
    return _NUMBER.sub("0", text) if kind in CLOCKS else text


def compile_key(record: Compile, device: str | None) -> bytes:
    """Return what makes a compile of one rank that of another: all but its times."""
    fields = record.model_dump(
        exclude={"seconds", "phases", "metrics", "ranks", "seconds_by_rank"}, exclude_none=True
    )
    return _key(fields, device)


def artifact_key(artifact: Artifact, content: str, device: str | None) -> bytes:
    """Return what makes an artifact of one rank that of another; `content` stands for its text."""
    fields = artifact.model_dump(
        exclude={"seq", "digest", "bytes", "files", "ranks", "varies", "omitted"}, exclude_none=True
    )
    if artifact.kind in CLOCKS or artifact.kind == "best_config":
        fields = _timeless(fields)
    return _key([fields, content, artifact.omitted and artifact.omitted.reason], device)


def _key(value: Any, device: str | None) -> bytes:
    return codec.digest_bytes(canonical(codec.dumps(value).decode(), device).encode()).encode()


def _timeless(value: Any) -> Any:
    """Drop times, wherever they stand in structured content."""
    if isinstance(value, Mapping):
        return {k: _timeless(v) for k, v in value.items() if not _tells_time(str(k))}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def _tells_time(name: str) -> bool:
    return name in ("seconds", "performance") or name.endswith(("_us", "_ms", "_ns", "_time"))
