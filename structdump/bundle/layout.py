"""How a bundle lies in its file: head frames, one that opens `texts`, text frames, one that closes.

::

    {"$schema":…,"hook_errors":[…],     one frame per MiB
    "texts":{                           a frame of its own: a scan of many bundles stops here
    "digest":"text","digest":"text"     frames of about 1 MiB, most valuable first,
    ,                                   with a comma in a frame of its own between them
    },"complete":true}                  the last frame: without it, the file was cut

No frame of texts depends on another, so each is compressed once, whatever the budget keeps of them.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from structdump.bundle import assemble, codec
from structdump.bundle.model import Bundle

OPENING = b'"texts":{'
FRAME = 1 << 20  # bytes before compression
_THREADS = max(1, min(4, os.cpu_count() or 1))
_IN_MEMORY = 2 << 20  # compressed bytes held before they go to a temporary file


def closing(*, complete: bool) -> bytes:
    """Return the JSON that ends a bundle."""
    return b'},"complete":true}' if complete else b'},"complete":false}'


@dataclass(slots=True, eq=False)
class _Frame:
    """One frame of texts; `at` and `length` say where its compressed bytes lie, once they do."""

    digests: list[str]
    raw: int
    at: int = 0
    length: int = 0


@dataclass(slots=True)
class _Group:
    """The texts of one value: those that wait for their frame to fill, and the frames made."""

    parts: list[bytes | memoryview] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    size: int = 0
    frames: list[_Frame] = field(default_factory=list)

    def take_first(self, other: _Group) -> None:
        """Put what waits in `other` before what waits here."""
        self.parts = other.parts + self.parts
        self.digests = other.digests + self.digests
        self.size += other.size
        other.parts, other.digests, other.size = [], [], 0


class TextFrames:
    """Compresses texts into frames, grouped by value, on a few threads; spills beside the target.

    Holds a few MiB, however much text passes through.
    """

    def __init__(self, directory: Path, size: int = FRAME):
        self._size = size
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(directory))  # noqa: SIM115  # close() does
        self._pool = ThreadPoolExecutor(_THREADS, "structdump-write")
        self._waiting: deque[tuple[_Frame, Future[bytes]]] = deque()
        self._groups: dict[int, _Group] = {}

    def close(self) -> None:
        """Free the threads and the temporary file."""
        self._pool.shutdown()
        self._spool.close()

    def add(self, rank: int, digest: str, text: bytes | memoryview) -> None:
        """Take one text, as a JSON string."""
        group = self._groups.setdefault(rank, _Group())
        if group.size and group.size + len(text) > 2 * self._size:
            self._submit(group)
        group.parts += (b',"%b":' % digest.encode(), text)
        group.digests.append(digest)
        group.size += len(text)
        if group.size >= self._size:
            self._submit(group)

    def finish(self) -> list[_Frame]:
        """Compress what is left; return all frames, most valuable first."""
        groups = [self._groups[rank] for rank in sorted(self._groups)]
        for group, following in itertools.pairwise(groups):
            if following.frames or group.size >= self._size:
                self._submit(group)
            else:  # small rests of neighbouring values share a frame
                following.take_first(group)
        if groups:
            self._submit(groups[-1])
        while self._waiting:
            self._collect()
        return [frame for group in groups for frame in group.frames]

    def _submit(self, group: _Group) -> None:
        if not group.parts:
            return
        group.parts[0] = group.parts[0][1:]  # no comma before the first
        data = b"".join(group.parts)
        frame = _Frame(group.digests, len(data))
        group.frames.append(frame)
        group.parts, group.digests, group.size = [], [], 0
        self._waiting.append((frame, self._compress(data)))
        if len(self._waiting) > _THREADS + 1:
            self._collect()

    def _collect(self) -> None:
        frame, future = self._waiting.popleft()
        data = future.result()
        frame.at, frame.length = self._spool.tell(), len(data)
        self._spool.write(data)

    def read(self, frame: _Frame) -> bytes:
        """Return the compressed bytes of a frame, after `finish`."""
        self._spool.seek(frame.at)
        return self._spool.read(frame.length)

    def head(self, pieces: Iterable[bytes]) -> Head:
        """Compress the head, in frames like the texts."""
        parts, waiting, size, raw = [], list[bytes](), 0, 0
        for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if size >= FRAME:
                parts.append(self._compress(b"".join(waiting)))
                raw, size = raw + size, 0
                waiting.clear()
        parts.append(self._compress(b"".join(waiting)))
        return Head([part.result() for part in parts], raw + size)

    def _compress(self, data: bytes) -> Future[bytes]:
        try:
            return self._pool.submit(codec.compress, data)
        except RuntimeError:  # the interpreter is ending and starts no more threads: do it here
            future: Future[bytes] = Future()
            future.set_result(codec.compress(data))
            return future


def head(bundle: Bundle) -> Iterator[bytes]:
    """Yield the JSON of everything before the texts, up to the comma before their key."""
    fields = bundle.model_dump(by_alias=True, exclude_none=True, exclude={"artifacts", "texts", "complete"})
    start = b"{"
    for name, field_ in Bundle.model_fields.items():
        key = field_.alias or name
        if key == "artifacts":
            yield b'"artifacts":['
            # One at a time: what one holds that JSON does not must not touch the others.
            for index, artifact in enumerate(bundle.artifacts):
                one = codec.dumps(artifact.model_dump(by_alias=True, exclude_none=True))
                yield b"," + one if index else one
            yield b"],"
        elif key in fields:
            yield b'%b"%b":%b,' % (start, key.encode(), codec.dumps(fields[key]))
            start = b""


class Head(NamedTuple):
    """The head's frames, and its bytes before compression."""

    frames: list[bytes]
    raw: int


class Laid(NamedTuple):
    """A bundle ready to be written: its compressed pieces, their bytes, and bytes before compression.

    `whole` tells whether all frames fitted.
    """

    pieces: Iterator[bytes]
    size: int
    raw_size: int
    whole: bool


def lay_out(bundle: Bundle, frames: list[_Frame], texts: TextFrames, max_bytes: int | None) -> Laid:
    """Choose the frames that fit `max_bytes`, most valuable first, and settle the bundle's counts by it.

    Artifacts whose text did not fit become indexed, with the reason `budget`. The result passes
    `max_bytes` only if the head alone does.
    """
    opening, comma = codec.compress(OPENING), codec.compress(b",")
    end = codec.compress(closing(complete=bundle.complete))
    fixed = len(opening) + len(end)

    def compressed(chosen: list[_Frame]) -> int:
        commas = max(0, len(chosen) - 1) * len(comma)
        return fixed + sum(map(len, top.frames)) + sum(f.length for f in chosen) + commas

    top = texts.head(head(bundle))
    chosen = frames
    if max_bytes is not None and compressed(frames) > max_bytes:
        chosen = _fitting(frames, max_bytes - compressed([]), len(comma))
        while True:
            _keep_only(bundle, {d for f in chosen for d in f.digests})
            top = texts.head(head(bundle))
            if compressed(chosen) <= max_bytes or not chosen:
                break
            chosen.pop()

    def pieces() -> Iterator[bytes]:
        yield from top.frames
        yield opening
        for index, frame in enumerate(chosen):
            if index:
                yield comma
            yield texts.read(frame)
        yield end

    raw = sum(f.raw for f in chosen) + max(0, len(chosen) - 1)
    raw += top.raw + len(OPENING) + len(closing(complete=bundle.complete))
    return Laid(pieces(), compressed(chosen), raw, len(chosen) == len(frames))


def _fitting(frames: list[_Frame], room: int, extra: int) -> list[_Frame]:
    chosen = []
    for frame in frames:
        if frame.length + extra <= room:
            room -= frame.length + extra
            chosen.append(frame)
    return chosen


def _keep_only(bundle: Bundle, digests: set[str]) -> None:
    for artifact in bundle.artifacts:
        if artifact.digest is not None and artifact.digest not in digests:
            assemble.omit(artifact, "budget")
    assemble.count(bundle)


def frame_size(max_bytes: int | None) -> int:
    """Return the bytes of a text frame: less under a small budget, so that it can be filled."""
    return FRAME if max_bytes is None else max(16 << 10, min(FRAME, max_bytes // 4))
