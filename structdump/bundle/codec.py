"""JSON and zstd, with their traps dealt with once: the only module that imports orjson and zstandard.

Traps (orjson 3.13, zstandard 0.25):

- orjson raises on integers over 64 bits, lone surrogates, bytes and keys that are no strings, and
  takes the last of duplicate keys; `dumps` and `loads` here do neither.
- `ZstdDecompressor.decompress()` returns the first frame only and ignores `max_output_size` when
  the frame states its size; `stream_reader` and `read_to_iter` end quietly when the data is cut.
  So `frames` walks the frames itself and `inflate` decompresses them one at a time.
- `stream_reader` loses output that is still in the decoder when the input ends; `read_to_iter` doesn't.
- `threads=` changes the bytes; frames are compressed with one thread each, several side by side.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import orjson
import zstandard

from structdump.bundle import plain
from structdump.bundle.limits import DEFAULT, OWN, Limits, Meter
from structdump.bundle.plain import clean as clean
from structdump.bundle.structure import is_whole
from structdump.errors import CorruptError, LimitError, TruncatedError

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
LEVEL = 3  # of bundles; the zstd command's default
JOURNAL_LEVEL = 1
MAX_WINDOW = 1 << 27  # bytes; what the zstd command accepts without --long
_CHUNK = 1 << 20
_SLICE = 2048  # bytes; each 4 of them can inflate to 128 KiB

# --- JSON -----------------------------------------------------------------------------------


def digest(text: str) -> str:
    """Return the first 32 hex digits of the SHA-256 of the text's UTF-8 bytes as stored.

    Example: `digest("") == "e3b0c44298fc1c149afbf4c8996fb924"`.
    """
    return digest_bytes(clean(text).encode())


def digest_bytes(data: bytes) -> str:
    """`digest` of a text that is UTF-8 bytes already."""
    return hashlib.sha256(data).hexdigest()[:32]


def dumps(obj: Any) -> bytes:
    """Return `obj` as compact JSON in UTF-8. Never raises, and the same value gives the same bytes.

    Integers over 64 bits become strings, NaN and infinities null, bytes and lone surrogates escaped
    text, other keys strings, sets sorted lists, cycles `"<cycle>"`, what is nested deeper than a
    reader accepts `"<cut>"`, and unknown objects their `str()` without memory addresses.

    Example: `dumps({1: {"b", "a"}, "x": float("nan")}) == b'{"1":["a","b"],"x":null}'`.
    """
    try:
        data = orjson.dumps(obj, default=plain.leaf)
        if not isinstance(obj, str):
            is_whole(data, OWN)
    except (TypeError, RecursionError, LimitError):  # orjson.JSONEncodeError is a TypeError
        return orjson.dumps(plain.rebuilt(obj), default=plain.leaf)
    return data


def loads(data: bytes, limits: Limits = DEFAULT) -> Any:
    """Parse JSON strictly and within bounds.

    Raises TruncatedError when the text ends before the value does, CorruptError on anything that is
    no JSON (duplicate keys, NaN, lone surrogates and invalid UTF-8 among it), and LimitError on
    nesting or sizes beyond `limits`, before memory is spent on them.

    Example: `loads(b'{"a": 1}') == {"a": 1}`.
    """
    whole = is_whole(data, limits)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as e:
        if not whole:
            raise TruncatedError("the JSON ends in the middle: the file was cut; copy it again") from None
        raise CorruptError(f"this is not valid JSON: {e}") from None
    if orjson.dumps(value) == data:  # written as we write: nothing was lost, so no key stood twice
        return value
    return json.loads(data, object_pairs_hook=_unique, parse_int=_integer)


def parse_record(data: bytes) -> Any:
    """Parse JSON of a foreign program fast and leniently: of duplicate keys the last one counts.

    What orjson refuses and Python writes (NaN, lone surrogates) is read as well; CorruptError on
    anything else, and on nesting too deep to read.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data, parse_int=_integer)
    except (ValueError, RecursionError) as e:
        raise CorruptError(f"this is not valid JSON: {e}") from None


def loads_text(data: bytes | memoryview) -> str:
    """Parse one JSON string; CorruptError if it is anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as e:
        raise CorruptError(f"a text is not valid JSON: {e}") from None
    if not isinstance(value, str):
        raise CorruptError("a text is not a string")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise CorruptError("an object holds the same key twice")
    return result


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= 40 else float(digits)


# --- zstd -----------------------------------------------------------------------------------

_local = threading.local()


def compress(data: bytes) -> bytes:
    """Return `data` as one zstd frame with its size and a checksum; the same bytes on every machine."""
    compressor = getattr(_local, "compressor", None)
    if compressor is None:  # one per thread: a compressor must not be used by two at once
        compressor = _local.compressor = zstandard.ZstdCompressor(
            level=LEVEL, write_checksum=True, write_content_size=True
        )
    result: bytes = compressor.compress(data)
    return result


class FlushingCompressor:
    """One zstd frame that can be read up to the last `add`, whenever the process dies."""

    def __init__(self) -> None:
        self._frame = zstandard.ZstdCompressor(level=JOURNAL_LEVEL).compressobj()

    def add(self, *parts: bytes) -> bytes:
        """Return the compressed bytes of `parts`, complete in themselves."""
        out = [self._frame.compress(part) for part in parts]
        out.append(self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        return b"".join(out)

    def finish(self) -> bytes:
        """Return what ends the frame."""
        return self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)


class Frame(NamedTuple):
    """Where one zstd frame lies in the data, and the size that it says it has (None: not said)."""

    start: int
    end: int
    size: int | None


def frames(data: bytes | memoryview) -> Iterator[Frame]:
    """Walk the zstd frames by their headers, without decompressing; skippable frames are left out.

    Raises TruncatedError where the data ends within a frame, CorruptError where no frame begins.
    """
    view, at = memoryview(data), 0
    while at < len(view):
        head = bytes(view[at : at + 18])  # a frame's header has at most 18 bytes
        if head[:4] == ZSTD_MAGIC:
            frame = _frame(view, at, head)
            yield frame
            at = frame.end
        elif len(head) >= 4 and (head[1:4] != b"\x2a\x4d\x18" or head[0] & 0xF0 != 0x50):
            raise CorruptError(f"there is no zstd frame at byte {at:,} where one must begin")
        else:
            at += 8 + int.from_bytes(head[4:8], "little")
            if len(head) < 8 or at > len(view):
                raise TruncatedError(_CUT)


def _frame(view: memoryview, start: int, head: bytes) -> Frame:
    try:
        at = start + zstandard.frame_header_size(head)
        params = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError as e:
        if len(head) < 18:
            raise TruncatedError(_CUT) from None
        raise CorruptError(f"the zstd frame at byte {start:,} has a bad header: {e}") from None
    last = 0
    while not last and at < len(view):
        block = int.from_bytes(view[at : at + 3], "little")
        last, kind = block & 1, block >> 1 & 3
        if kind == 3 and at + 3 <= len(view):
            raise CorruptError(f"the zstd frame at byte {start:,} holds a damaged block")
        at += 3 + (1 if kind == 1 else block >> 3)
    at += 4 * params.has_checksum
    if not last or at > len(view):
        raise TruncatedError(_CUT)
    unknown = params.content_size == zstandard.CONTENTSIZE_UNKNOWN
    return Frame(start, at, None if unknown else params.content_size)


_CUT = "the file ends before the bundle does: it was cut while copied or uploaded; get it again"


def inflate(data: bytes | memoryview, frame: Frame, meter: Meter) -> bytes:
    """Decompress one frame of `data`. Raises CorruptError on damage, LimitError through the meter."""
    piece = memoryview(data)[frame.start : frame.end]
    try:
        if frame.size is not None:
            meter.add(frame.size)
            result: bytes = zstandard.ZstdDecompressor().decompress(piece)
            return result
        out = bytearray()
        for chunk in _decompressed(piece):
            meter.add(len(chunk))
            out += chunk
        return bytes(out)
    except zstandard.ZstdError as e:
        raise CorruptError(f"the compressed data is damaged: {e}; get the file again") from None


def stream(file: IO[bytes] | bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of one frame, up to where the data is cut, 256 KiB at a time.

    The caller limits what it takes. Ends quietly at a cut; raises CorruptError on damage.
    """
    try:
        yield from _decompressed(file)
    except zstandard.ZstdError as e:
        raise CorruptError(f"the compressed data is damaged: {e}") from None


def stream_all(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the decompressed bytes of all frames of a foreign file, at most 64 MiB at a time.

    The caller limits what it takes. Ends quietly at a cut; raises CorruptError on damage.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    frames = decompressor.decompressobj(read_across_frames=True)
    try:
        while piece := file.read(_SLICE):
            if chunk := frames.decompress(piece):
                yield chunk
    except zstandard.ZstdError as e:
        raise CorruptError(f"the compressed data is damaged: {e}") from None


def _decompressed(source: IO[bytes] | bytes | memoryview) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    yield from decompressor.read_to_iter(source, write_size=_CHUNK // 4)
