"""The texts of an opened bundle, read when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from structdump.bundle import codec
from structdump.bundle.codec import Frame
from structdump.bundle.limits import Meter
from structdump.errors import CorruptError, LimitError, UsageError

_ENTRY = re.compile(rb'"([0-9a-f]{32})":(?=")')
_FRAMES_HELD = 8


class FrameTexts(Mapping[str, str]):
    """Texts in a bundle's frames: inflates frames in order up to the one wanted, holding the last few.

    Raises CorruptError where a frame is damaged or no frame of texts.
    """

    def __init__(self, data: bytes, frames: list[Frame], meter: Meter):
        self._data = data
        self._frames = frames
        self._meter = meter
        self._where: dict[str, tuple[int, int, int]] = {}
        self._scanned = 0
        self._inflate = lru_cache(_FRAMES_HELD)(self._inflate_uncached)

    def __getitem__(self, digest: str) -> str:
        while digest not in self._where and self._scanned < len(self._frames):
            self._scan()
        number, start, end = self._where[digest]
        return codec.loads_text(self._inflate(number)[start:end])

    def __iter__(self) -> Iterator[str]:
        while self._scanned < len(self._frames):
            self._scan()
        return iter(self._where)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, digest: object) -> bool:
        return digest in self._where or any(digest == name for name in self)

    def _inflate_uncached(self, number: int) -> bytes:
        frame = self._frames[number]
        fresh = number >= self._scanned
        meter = self._meter if fresh else Meter(self._meter.limits, len(self._data))
        if frame.size is not None and frame.size > meter.limits.text:
            raise LimitError(f"a frame of texts is larger than {meter.limits.text:,} bytes")
        return codec.inflate(self._data, frame, meter)

    def _scan(self) -> None:
        content = self._inflate(self._scanned)
        # A quote within a JSON string follows a backslash, so what matches here is a key.
        found = list(_ENTRY.finditer(content))
        if content != b",":
            if not found or found[0].start() != 0:
                raise CorruptError("a frame that must hold texts holds something else")
            ends = [m.start() - 1 for m in found[1:]] + [len(content)]
            for match, end in zip(found, ends, strict=True):
                digest = match[1].decode()
                if digest in self._where or content[end : end + 1] not in (b",", b""):
                    raise CorruptError(f"the texts are damaged at or after {digest}")
                self._where[digest] = (self._scanned, match.end(), end)
        self._scanned += 1


class LateTexts(Mapping[str, str]):
    """Texts that are all read at the first access, by a function."""

    def __init__(self, read: Callable[[], Mapping[str, str]]):
        self._read = read
        self._texts: Mapping[str, str] | None = None

    @property
    def _all(self) -> Mapping[str, str]:
        if self._texts is None:
            self._texts = self._read()
        return self._texts

    def __getitem__(self, digest: str) -> str:
        return self._all[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


class NoTexts(Mapping[str, str]):
    """The texts of a bundle of which only the head was read: asking for one is a mistake."""

    def __getitem__(self, digest: str) -> str:
        raise UsageError("only the head of this bundle was read; open it with load() to have its texts")

    def __iter__(self) -> Iterator[str]:
        raise UsageError("only the head of this bundle was read; open it with load() to have its texts")

    def __len__(self) -> int:
        return 0
