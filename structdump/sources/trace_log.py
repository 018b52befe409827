"""Reads TORCH_TRACE logs: the same records that the live hook sees, from the file torch writes.

The format is that of `TorchLogsFormatter` in torch/_logging/_internal.py (torch 2.9 to 2.13): one
line `V1201 03:19:36.939000 2149 torch/_dynamo/utils.py:2126] {json}` per record, then the lines of
its payload, each after a tab.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structdump.bundle import codec
from structdump.errors import CorruptError, SourceError
from structdump.sources.trace_events import TraceMapper, TraceRecord

MAX_LINE = 64 << 20
"""bytes of one line; a longer one is skipped and counted"""
MAX_PAYLOAD = 256 << 20
"""bytes of one record's payload; a larger one is left out and counted"""
_CHUNK = 1 << 20
_PATIENCE = 4 << 20  # bytes without any record after which a file is no TORCH_TRACE log
_HEAD = re.compile(rb"V\d{4} \d\d:\d\d:\d\d\.\d+ (\d+) [^\n]*?\] (?=\{)")
_RANK = re.compile(r"rank_(\d+)_")
_PREFIX = "dedicated_log_torch_trace_"
_SUFFIXES = (".log", ".log.gz", ".log.zst")
_CONTEXT = frozenset(
    ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "has_payload", "stack",
     "severity", "timestamp", "pathname", "thread", "subgraph_name")
)  # fmt: skip


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


def read_log(path: Path, mapper: TraceMapper) -> LogReport:
    """Feed every record of one log to `mapper`, in one pass and with memory for one record.

    Payloads are neither decoded nor checked unless their text is asked for. Raises SourceError if
    the file cannot be read or is no TORCH_TRACE log.

    Example::

        book = CompileBook()
        report = read_log(Path("trace/dedicated_log_torch_trace_abc.log"), TraceMapper(record, book))
    """
    report = LogReport(path, rank=rank_of(path))
    try:
        with _chunks(path) as chunks:
            for head, payload in _records(chunks, report):
                _feed(head, payload, mapper, report)
    except (OSError, EOFError, zlib.error, CorruptError) as e:
        if not report.records:
            raise SourceError(f"{path} cannot be read: {getattr(e, 'strerror', None) or e}") from None
        report.cut = True
    if not report.records:
        raise SourceError(f"{path} is no TORCH_TRACE log: it holds no record of torch's structured trace")
    return report


def _feed(head: bytes, payload: bytes | None, mapper: TraceMapper, report: LogReport) -> None:
    match = _HEAD.match(head)
    if match is None:
        report.foreign += 1
        return
    try:
        record = codec.parse_record(head[match.end() :])
    except CorruptError:
        record = None
    name = next((key for key in record if key not in _CONTEXT), None) if isinstance(record, dict) else None
    if name is None:
        report.damaged += 1
        return
    report.records += 1
    if report.pid is None:
        report.pid = int(match[1][:18])
    if report.rank is None and isinstance(record.get("rank"), int):
        report.rank = record["rank"]
    text = None
    if payload is not None and record.get("has_payload"):
        text = _Payload(payload, record["has_payload"], report)
    attempt, subgraph = record.get("attempt"), record.get("subgraph_name")
    mapper.feed(
        TraceRecord(
            name=name,
            metadata=record[name],
            payload=text,
            compile_id=_compile_id(record),
            attempt=attempt if isinstance(attempt, int) else None,
            stack=record.get("stack"),
            subgraph_name=subgraph if isinstance(subgraph, str) else None,
        )
    )


def _compile_id(record: dict[str, Any]) -> str | None:
    """Return the id as torch prints it (`CompileId.__str__`, torch/_guards.py)."""
    graph, frame, again = (record.get(k) for k in ("compiled_autograd_id", "frame_id", "frame_compile_id"))
    parts = [] if graph is None else [f"!{graph}"]
    if frame is not None and again is not None:
        parts += [f"{frame}/{again}"]
    return "/".join(parts)[:100] or None


class _Payload:
    """The text of a payload, made when it is asked for."""

    __slots__ = ("_block", "_digest", "_report")

    def __init__(self, block: bytes, digest: object, report: LogReport) -> None:
        self._block = block
        self._digest = digest
        self._report = report

    def __call__(self) -> str:
        data = self._block[1:].replace(b"\n\t", b"\n")
        if hashlib.md5(data, usedforsecurity=False).hexdigest() != self._digest:
            self._report.mismatched += 1
        return data.decode("utf-8", "backslashreplace")


def _records(chunks: Iterator[bytes], report: LogReport) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield head line and payload block of each record; the block is as it stands, tabs included."""
    record: list[bytes] = []
    size = 0
    for chunk in _whole_lines(chunks, report):
        start = 0
        while start < len(chunk):
            # Only a record's head begins with a V: payload lines begin with a tab.
            end = chunk.find(b"\nV", start) + 1 or len(chunk)
            if chunk[start] == 0x56 and record:
                yield from _split(record, size, report)
                record, size = [], 0
            size += end - start
            if size <= MAX_PAYLOAD:
                record.append(chunk[start:end])
            start = end
        report.bytes += len(chunk)
        if not report.records and report.bytes > _PATIENCE:
            return
    yield from _split(record, size, report)


def _split(record: list[bytes], size: int, report: LogReport) -> Iterator[tuple[bytes, bytes | None]]:
    """Take one record apart: the head, and what follows it up to its last newline."""
    data = record[0] if len(record) == 1 else b"".join(record)
    if not data.startswith(b"V"):
        report.foreign += data.count(b"\n")
        return
    at = data.find(b"\n")
    if at < 0 or at == len(data) - 1:
        yield data.rstrip(b"\n"), None
        return
    block = data[at + 1 : -1] if data.endswith(b"\n") else data[at + 1 :]
    if size > MAX_PAYLOAD:
        report.oversized += 1
        yield data[:at], None
    elif block.startswith(b"\t") and block.count(b"\n") == block.count(b"\n\t"):
        yield data[:at], block
    else:
        lines = block.split(b"\n")
        kept = [line for line in lines if line.startswith(b"\t")]
        report.foreign += len(lines) - len(kept)
        yield data[:at], b"\n".join(kept) if kept else None


def _whole_lines(chunks: Iterator[bytes], report: LogReport) -> Iterator[bytes]:
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
                if not report.records and size > _PATIENCE:
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
        report.cut = True
        yield b"".join(rest)


@contextmanager
def _chunks(path: Path) -> Iterator[Iterator[bytes]]:
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
