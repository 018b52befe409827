"""Log files: which there are, how their bytes are read, and what could not be."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from structdump.bundle import codec
from structdump.errors import SourceError

MAX_LINE = 64 << 20
"""bytes of one line; a longer one is skipped and counted"""
PATIENCE = 4 << 20
"""bytes without any record after which a file is no log of ours"""
_CHUNK = 1 << 20
_RANK = re.compile(r"rank_(\d+)_")
_PREFIX = "dedicated_log_torch_trace_"
_SUFFIXES = (".log", ".log.gz", ".log.zst")


@dataclass(slots=True)
class LogReport:
    """What was read of one log, and what could not be.

    `bytes` are uncompressed. `cut` says that the log ends within a record, as a killed process
    leaves it. `foreign` lines belong to no record, `damaged` heads are no JSON, `oversized` lines
    or payloads are beyond the limits, and `mismatched` payloads differ from the MD5 that torch
    stored of them (checked where a payload is used).
    """

    path: Path
    rank: int | None = None
    pid: int | None = None
    records: int = 0
    bytes: int = 0
    foreign: int = 0
    damaged: int = 0
    oversized: int = 0
    mismatched: int = 0
    cut: bool = False

    def problems(self) -> list[str]:
        """Return a sentence for each kind of problem, none for a clean log."""
        said = [
            (self.cut, f"{self.path.name} ends within a record: the process was killed or is still running"),
            (self.foreign, f"{self.path.name}: {self.foreign:,} lines belong to no record"),
            (self.damaged, f"{self.path.name}: {self.damaged:,} records are damaged"),
            (self.oversized, f"{self.path.name}: {self.oversized:,} lines or payloads are too large"),
            (self.mismatched, f"{self.path.name}: {self.mismatched:,} payloads differ from their checksum"),
        ]
        return [sentence for holds, sentence in said if holds]


def find_logs(source: Path) -> list[Path]:
    """Return the logs that `source` is or holds, sorted by rank and name.

    In a directory, files named as torch names them count; if there are none, every `.log`,
    `.log.gz` and `.log.zst`. Raises SourceError if there is nothing.
    """
    if not source.is_dir():
        return [source]
    try:
        files = [p for p in sorted(source.iterdir()) if p.name.endswith(_SUFFIXES) and p.is_file()]
    except OSError as e:
        raise SourceError(f"{source} cannot be listed: {e.strerror or e}") from None
    named = [p for p in files if p.name.startswith(_PREFIX)] or files
    if not named:
        raise SourceError(
            f"{source} holds no TORCH_TRACE log; they are named {_PREFIX}*.log, gzip and zstd included"
        )
    return sorted(named, key=lambda p: (rank_of(p) is None, rank_of(p) or 0, p.name))


def rank_of(path: Path) -> int | None:
    """Return the rank that a log's file name states.

    Example::

        >>> rank_of(Path("dedicated_log_torch_trace_rank_3_k2x.log"))
        3
    """
    match = _RANK.search(path.name)
    return int(match[1]) if match and len(match[1]) < 8 else None


def whole_lines(chunks: Iterator[bytes], report: LogReport) -> Iterator[bytes]:
    """Yield the bytes cut at line ends; a line over the limit is left out."""
    rest: list[bytes] = []
    size = 0
    skipping = False
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            size += len(chunk)
            skipping = skipping or size > MAX_LINE
            if not skipping:
                rest.append(chunk)
            else:
                rest.clear()
                if not report.bytes and size > PATIENCE:
                    return
            continue
        if skipping:
            report.oversized += 1
            skipping = False
            begin = chunk.find(b"\n") + 1
        else:
            begin = 0
        rest.append(chunk[begin:cut])
        yield rest[0] if len(rest) == 1 else b"".join(rest)
        rest = [chunk[cut:]] if cut < len(chunk) else []
        size = len(chunk) - cut
    if skipping:
        report.oversized += 1
    elif size:
        yield b"".join(rest)


@contextmanager
def open_log(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a log, compressed or not, going by its first bytes; yield its bytes in chunks."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as unzipped:
                yield _reads(unzipped.read)
        elif start == codec.ZSTD_MAGIC:
            yield codec.stream_all(file)
        else:
            yield _reads(file.read)


def _reads(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while chunk := read(_CHUNK):
        yield chunk
