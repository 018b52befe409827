"""What opening a file may cost."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

from structdump.errors import LimitError


@dataclass(frozen=True)
class Limits:
    """What opening a file may cost. Bytes are decompressed bytes; every excess raises LimitError.

    Example: `structdump.load(path, limits=Limits(document=4 << 30))`
    """

    decompressed: int = 4 << 30
    """bytes of the whole file; texts are inflated frame by frame, so they are never all in memory"""
    compressed: int = 512 << 20
    """bytes of the file itself"""
    document: int = 512 << 20
    """bytes of what has to be held at once: `.json`, `.json.gz`, or zstd without a bundle's frames"""
    ratio: int = 1000
    """decompressed bytes per compressed byte, once past 128 MiB; real bundles stay under 200"""
    text: int = 512 << 20
    """bytes of one frame of texts, or of one record of a journal"""
    head: int = 256 << 20
    """bytes of everything before the texts"""
    artifacts: int = 250_000
    nodes: int = 8_000_000
    """JSON values in the head, or in one record of a journal; twice as many strings"""
    nesting: int = 100
    frames: int = 200_000

    def allowed(self, compressed: int) -> int:
        """Return the bytes that a file of `compressed` bytes may inflate to."""
        return min(self.decompressed, max(128 << 20, compressed * self.ratio))


DEFAULT = Limits()
#: For what this process has written itself: nothing of it may be lost to a limit.
OWN = Limits(**{field.name: sys.maxsize for field in fields(Limits)} | {"nesting": Limits.nesting})


class Meter:
    """Counts what decompression yields and raises LimitError when it passes the limits."""

    def __init__(self, limits: Limits, compressed: int):
        self.limits = limits
        self.allowed = limits.allowed(compressed)
        self.used = 0

    def add(self, count: int) -> None:
        """Count `count` more bytes of output."""
        self.used += count
        if self.used > self.allowed:
            raise LimitError(
                f"the file inflates to more than {self.allowed:,} bytes, more than a bundle of its size "
                f"may hold; {TRUST}"
            )


TRUST = "if you trust it, load it with larger structdump.bundle.reader.Limits"
