"""A report's texts: packed into compressed chunks that the page unpacks when one is looked at."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator

CHUNK = 256 * 1024
"""Bytes of text in a chunk: what the page inflates at least to show one text."""

LEVEL = 4
"""Of deflate: half the time of the usual 6, for a tenth more bytes."""

Place = tuple[int, int, int]
"""Where a text stands: number of the chunk, offset and length in it, in bytes of UTF-8."""


def squeeze(data: bytes) -> str:
    """Compress to the form that the page's `DecompressionStream("deflate")` takes, as base64."""
    return base64.b64encode(zlib.compress(data, LEVEL)).decode("ascii")


class TextPack:
    """Packs texts into chunks, each text once; `places` fills while `chunks` is consumed.

    Example::

        pack = TextPack()
        page = "".join(pack.chunks([("d1", "text")]))
        pack.places["d1"]  # (0, 0, 4)
    """

    def __init__(self, size: int = CHUNK) -> None:
        self.places: dict[str, Place] = {}
        self._size = size
        self._count = 0

    def chunks(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[int, str]]:
        """Yield the number and the base64 of each chunk of these (digest, text) pairs."""
        parts: list[bytes] = []
        size = 0
        for digest, text in texts:
            if digest in self.places:
                continue
            data = text.encode("utf-8", "replace")
            self.places[digest] = (self._count, size, len(data))
            parts.append(data)
            size += len(data)
            if size >= self._size:
                yield self._close(parts)
                parts, size = [], 0
        if parts:
            yield self._close(parts)

    def _close(self, parts: list[bytes]) -> tuple[int, str]:
        number = self._count
        self._count += 1
        return number, squeeze(b"".join(parts))
