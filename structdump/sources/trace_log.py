"""Reads TORCH_TRACE logs: the same records that the live hook sees, from the file torch writes.

The format is that of `TorchLogsFormatter` in torch/_logging/_internal.py (torch 2.9 to 2.13): one
line `V1201 03:19:36.939000 2149 torch/_dynamo/utils.py:2126] {json}` per record, then the lines of
its payload, each after a tab.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from structdump.bundle import codec
from structdump.errors import CorruptError, SourceError
from structdump.sources.log_files import PATIENCE, LogReport, open_log, rank_of, whole_lines
from structdump.sources.trace_events import TraceMapper, TraceRecord
from structdump.sources.trace_names import NAMED

MAX_PAYLOAD = 256 << 20
"""bytes of one record's payload; a larger one is left out and counted"""
_HEAD = re.compile(rb"V\d{4} \d\d:\d\d:\d\d\.\d+ (\d{1,18}) [^\n]*?\] (?=\{)")
_V = ord("V")
_CONTEXT = frozenset(
    ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "has_payload", "stack",
     "severity", "timestamp", "pathname", "thread", "subgraph_name")
)  # fmt: skip


def read_log(path: Path, mapper: TraceMapper) -> LogReport:
    """Feed every record of one log to `mapper`, in one pass and with memory for one record.

    Payloads are neither decoded nor checked unless their text is asked for. A record that the end
    of the log cuts is left out. Raises SourceError if the file cannot be read or is no TORCH_TRACE
    log.

    Example::

        book = CompileBook()
        report = read_log(Path("trace/dedicated_log_torch_trace_abc.log"), TraceMapper(record, book))
    """
    report = LogReport(path, rank=rank_of(path))
    held: _Record | None = None
    try:
        with open_log(path) as chunks:
            for record in _records(chunks, report):
                if held is not None:
                    _feed(held, mapper, report)
                held = record
    except (OSError, EOFError, zlib.error, CorruptError) as e:
        if held is None:
            raise SourceError(f"{path} cannot be read: {getattr(e, 'strerror', None) or e}") from None
        report.cut = True
    if held is not None and not _is_cut(held, report):
        _feed(held, mapper, report)
    if held is not None and not report.records:
        raise SourceError(f"{path} ends within its first record: there is nothing in it to pack")
    if not report.records:
        raise SourceError(
            f"{path} is no TORCH_TRACE log: it holds no record of torch's structured trace; "
            "to make one, run the program with TORCH_TRACE=<directory>"
        )
    return report


class _Record(NamedTuple):
    """A record as it stands: its head parsed, its payload's lines with their tabs."""

    values: dict[str, Any]
    name: str
    block: bytes | None


def _is_cut(record: _Record, report: LogReport) -> bool:
    """Tell whether the last record of a log lacks its end, going by the checksum of its payload."""
    stated = record.values.get("has_payload")
    if not stated or report.oversized:
        return False
    data = b"" if record.block is None else _unprefixed(record.block)
    cut = record.block is None or hashlib.md5(data, usedforsecurity=False).hexdigest() != stated
    report.cut = report.cut or cut
    return cut


def _unprefixed(block: bytes) -> bytes:
    return block[1:].replace(b"\n\t", b"\n")


def _feed(record: _Record, mapper: TraceMapper, report: LogReport) -> None:
    values, name, block = record
    report.records += 1
    rank, attempt, subgraph = (values.get(k) for k in ("rank", "attempt", "subgraph_name"))
    if report.rank is None and isinstance(rank, int):
        report.rank = rank
    stated = values.get("has_payload")
    metadata = values[name]
    if stated and block is None and name not in NAMED:
        metadata = None  # what is left of a lost payload must not stand in for it
    mapper.feed(
        TraceRecord(
            name=name,
            metadata=metadata,
            payload=_Payload(block, stated, report) if block is not None and stated else None,
            compile_id=_compile_id(values),
            attempt=attempt if isinstance(attempt, int) else None,
            stack=values.get("stack"),
            subgraph_name=subgraph if isinstance(subgraph, str) else None,
        )
    )


def _compile_id(values: dict[str, Any]) -> str | None:
    """Return the id as torch prints it (`CompileId.__str__`, torch/_guards.py)."""
    graph, frame, again = (values.get(k) for k in ("compiled_autograd_id", "frame_id", "frame_compile_id"))
    own = f"{frame}/{again}" if isinstance(frame, int) and isinstance(again, int) else None
    if not isinstance(graph, int):
        return own
    return f"!{graph}/{own}" if own else f"!{graph}"


class _Payload:
    """The text of a payload, made when it is asked for."""

    __slots__ = ("_block", "_digest", "_report")

    def __init__(self, block: bytes, digest: object, report: LogReport) -> None:
        self._block = block
        self._digest = digest
        self._report = report

    def __call__(self) -> str:
        data = _unprefixed(self._block)
        if hashlib.md5(data, usedforsecurity=False).hexdigest() != self._digest:
            self._report.mismatched += 1
        return data.decode("utf-8", "backslashreplace")


def _records(chunks: Iterator[bytes], report: LogReport) -> Iterator[_Record]:
    """Yield the records; memory holds the lines of one."""
    lines: list[bytes] = []
    size = found = 0
    for chunk in whole_lines(chunks, report):
        start = 0
        while start < len(chunk):
            # Only a record's head begins with a V: payload lines begin with a tab.
            end = chunk.find(b"\nV", start) + 1 or len(chunk)
            if chunk[start] == _V and lines:
                record = _record(lines, size, report)
                if record is not None:
                    found += 1
                    yield record
                lines, size = [], 0
            size += end - start
            if size <= MAX_PAYLOAD or not lines:  # the head must stay
                lines.append(chunk[start:end])
            start = end
        report.bytes += len(chunk)
        if not found and report.bytes > PATIENCE and not (lines and _HEAD.match(lines[0])):
            return
    record = _record(lines, size, report)
    if record is not None:
        yield record


def _record(lines: list[bytes], size: int, report: LogReport) -> _Record | None:
    """Take one record apart: the head, and what follows it up to its last newline."""
    data = b"".join(lines)
    match = _HEAD.match(data)
    if match is None:
        report.foreign += data.count(b"\n")
        report.cut = report.cut or (data.startswith(b"V") and not data.endswith(b"\n"))
        return None
    head, _, block = data.removesuffix(b"\n").partition(b"\n")
    try:
        values = codec.parse_record(head[match.end() :])
    except CorruptError:
        values = None
    name = next((key for key in values if key not in _CONTEXT), None) if isinstance(values, dict) else None
    if name is None:
        report.damaged += data.endswith(b"\n")
        report.cut = report.cut or not data.endswith(b"\n")
        return None
    if report.pid is None:
        report.pid = int(match[1])
    if size > MAX_PAYLOAD:
        report.oversized += 1
        return _Record(values, name, None)
    return _Record(values, name, _own_lines(block, report) if block else None)


def _own_lines(block: bytes, report: LogReport) -> bytes | None:
    """Return the payload's lines of a block, without those that another program wrote between."""
    if block.startswith(b"\t") and block.count(b"\n") == block.count(b"\n\t"):
        return block
    lines = block.split(b"\n")
    own = [line for line in lines if line.startswith(b"\t")]
    report.foreign += len(lines) - len(own)
    return b"\n".join(own) if own else None
