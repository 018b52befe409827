"""What opening a file may cost."""

from __future__ import annotations

from dataclasses import dataclass

from structdump.errors import LimitError


@dataclass(frozen=True)
class Limits:
    """What opening a file may cost. Bytes are decompressed bytes; every excess raises LimitError."""

    decompressed: int = 4 << 30
    """bytes of the whole file; texts are inflated frame by frame, so they are never all in memory"""
    document: int = 1 << 30
    """bytes of a file that has to be held at once: `.json`, `.json.gz`, or zstd without a bundle's frames"""
    ratio: int = 1000
    """decompressed bytes per compressed byte, once past 16 MiB; real bundles stay under 200"""
    text: int = 512 << 20
    """bytes of one frame of texts, or of one record of a journal"""
    head: int = 256 << 20
    """bytes of everything before the texts"""
    artifacts: int = 250_000
    nodes: int = 8_000_000
    """JSON values in the head, or in one record of a journal"""
    nesting: int = 100
    frames: int = 200_000


DEFAULT = Limits()


class Meter:
    """Counts what decompression yields and raises LimitError when it passes the limits."""

    def __init__(self, limits: Limits, compressed: int):
        self.limits = limits
        self.allowed = min(limits.decompressed, max(16 << 20, compressed * limits.ratio))
        self.used = 0

    def add(self, count: int) -> None:
        """Count `count` more bytes of output."""
        self.used += count
        if self.used > self.allowed:
            raise LimitError(
                f"the file inflates to more than {self.allowed:,} bytes, more than a bundle of its size "
                "may hold; if you trust it, load it with larger structdump.bundle.reader.Limits"
            )
