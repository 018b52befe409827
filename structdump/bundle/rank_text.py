"""What the ranks of one job print differently though they compiled the same.

Each rank has a device of its own, and Inductor writes its index into graphs and wrapper code, and with it
into the hashes that name its cache files (torch/_inductor/codegen/wrapper.py and codecache.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from structdump.bundle import codec
from structdump.bundle.model import Artifact, Compile
from structdump.bundle.normal import normalise

_TYPES = ("cuda", "xpu", "hip", "hpu", "npu", "mtia", "privateuseone")
_DEVICE = re.compile(rf"\b((?:{'|'.join(_TYPES)}):\d+)\b")
# All ways in which the index of a device is written; it must not be any number, so each has its words.
_BEFORE = (
    *(f"{name}:" for name in _TYPES), *(f"type='{name}', index=" for name in _TYPES),
    "DeviceGuard(", "set_device(", "get_raw_stream(", "get_cuda_stream(", "get_xpu_stream(", "stream",
    "default_generators[", "device_guard(", "set_index(", ", device=",
)  # fmt: skip
_HASHED = re.compile(r"(?:\b[a-z2-7]{2}/)?\b[a-z][a-z2-7]{50,52}\b")
_QUOTED_HASH = re.compile(r'"[a-z][a-z2-7]{50,52}"')
_TOKEN = re.compile(r"<([a-z]+(?:[_-][a-z]+)*)-\d+>")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
#: Kinds that tell of time: their numbers differ in every process.
CLOCKS = frozenset({"metrics", "cache", "autotune"})
_UNHASHED = frozenset({"graph", "pass"})  # most texts, and looking for hashes is slow


def first_device(text: str) -> str | None:
    """Return the first device with an index that a text names.

    Example::

        >>> first_device('x: "f32[8]cuda:3", y: "f32[8]cuda:0"')
        'cuda:3'
    """
    if not any(f"{name}:" in text for name in _TYPES):
        return None
    found = _DEVICE.search(text)
    return found[1] if found else None


@lru_cache(maxsize=64)
def _index(own: str) -> re.Pattern[str]:
    """Return a pattern of a device's index; the number comes first, by which the search is fast."""
    places = "|".join(f"(?<={re.escape(before + own)})" for before in _BEFORE)
    return re.compile(rf"{own}(?!\d)(?:{places})")


def canonical(text: str, device: str | None = None, *, hashes: bool = True) -> str:
    """Return `text` as a rank prints it whose own device has no number; other devices keep theirs.

    With the number go the hashes that it went into, if there may be `hashes`; numbers of redaction tokens
    and addresses go always.

    Example::

        >>> canonical('x: "f32[8]cuda:3", y: "f32[8]cuda:0"', "cuda:3")
        'x: "f32[8]cuda:@", y: "f32[8]cuda:0"'
    """
    text = _TOKEN.sub(r"<\1>", normalise(text))
    own = (device or "").rpartition(":")[2]
    if not own.isdecimal() or not own.isascii():  # a merged bundle of unknown origin may say anything
        return text
    text = _index(own).sub("@", text)
    return _HASHED.sub("<hash>", text) if hashes else text


def canonical_text(kind: str, text: str, device: str | None) -> str:
    """Return what an artifact's text is known by: telemetry without its numbers, the rest as `canonical`."""
    if kind == "trace":
        return ""
    text = canonical(text, device, hashes=kind not in _UNHASHED)
    return _NUMBER.sub("0", text) if kind in CLOCKS else text


def compile_key(record: Compile, device: str | None) -> bytes:
    """Return what makes a compile of one rank that of another: all but its times."""
    fields = record.model_dump(
        exclude={"seconds", "phases", "metrics", "ranks", "seconds_by_rank"}, exclude_none=True
    )
    return _key(fields, device)


def artifact_key(artifact: Artifact, content: str, device: str | None) -> bytes:
    """Return what makes an artifact of one rank that of another; `content` stands for its text."""
    values = artifact.__dict__
    plain = [values[name] for name in _PLAIN]
    rest = {name: values[name] for name in _NESTED if values[name]}
    if rest:  # by itself, as most artifacts have little of it and a model is slow to take apart
        dumped = artifact.model_dump(include=set(rest), exclude_none=True)
        rest = _timeless(dumped) if artifact.kind in CLOCKS or artifact.kind == "best_config" else dumped
    return _key([plain, rest, content, artifact.omitted and artifact.omitted.reason], device)


_OWN = frozenset({"seq", "digest", "bytes", "files", "ranks", "varies", "omitted"})
_NESTED = ("subgraph", "inferred", "data", "kernel", "autotune")
_PLAIN = tuple(name for name in Artifact.model_fields if name not in {*_OWN, *_NESTED})


def _key(value: Any, device: str | None) -> bytes:
    # Structured content has hashes in the keys of caches alone, and those stand between quotes.
    text = canonical(codec.dumps(value).decode(), device, hashes=False)
    return codec.digest_bytes(_QUOTED_HASH.sub("<hash>", text).encode() if device else text.encode()).encode()


def _timeless(value: Any) -> Any:
    """Drop times, wherever they stand in structured content."""
    if isinstance(value, Mapping):
        return {k: _timeless(v) for k, v in value.items() if not _tells_time(str(k))}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


def _tells_time(name: str) -> bool:
    return name in ("seconds", "performance") or name.endswith(("_us", "_ms", "_ns", "_time"))
