"""The real logs under tests/data/trace, and what they say, read by other means than structdump's."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from structdump.sources.compiles import CompileBook
from structdump.sources.event import Event
from structdump.sources.log_files import LogReport
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

ARCHIVE = Path(__file__).parent / "data" / "trace" / "logs.tar.zst"
CONTEXT = {"rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "has_payload", "stack"}


@functools.cache
def logs() -> dict[str, bytes]:
    """Return all logs by case name."""
    raw = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(ARCHIVE.open("rb")).read()
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {m.name.removesuffix(".log"): tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr] # all are files


@dataclass
class Told:
    """One record as the oracle reads it."""

    name: str
    values: Any
    compile_id: str | None
    payload: str | None
    md5: str | None


def oracle(data: bytes) -> list[Told]:
    """Read a log line by line, with nothing of structdump's reader."""
    told: list[Told] = []
    for line in data.decode().split("\n"):
        if line.startswith("\t"):
            last = told[-1]
            last.payload = line[1:] if last.payload is None else last.payload + "\n" + line[1:]
        elif line:
            record = json.loads(re.sub(r"^V.*?\] (?=\{)", "", line, count=1))
            name = next(k for k in record if k not in CONTEXT)
            frame = f"{record['frame_id']}/{record['frame_compile_id']}" if "frame_id" in record else None
            if "compiled_autograd_id" in record:
                frame = "!" + str(record["compiled_autograd_id"]) + (f"/{frame}" if frame else "")
            told.append(Told(name, record[name], frame, None, record.get("has_payload")))
    for one in told:
        assert (one.payload is None) == (one.md5 is None)
        assert one.payload is None or hashlib.md5(one.payload.encode()).hexdigest() == one.md5
    return told


@dataclass
class Read:
    """What structdump's reader makes of a log; texts are evaluated at once, as a recorder does."""

    events: list[Event] = field(default_factory=list)
    book: CompileBook = field(default_factory=CompileBook)
    report: LogReport | None = None

    def record(self, event: Event) -> None:
        event.text = event.text() if callable(event.text) else event.text
        self.events.append(event)


def read(path: Path, *, texts: bool = True) -> Read:
    """Read the log at `path` with structdump."""
    result = Read()
    recorder = result.record if texts else result.events.append
    result.report = read_log(path, TraceMapper(recorder, result.book))
    return result


def read_bytes(data: bytes, folder: Path, *, texts: bool = True) -> Read:
    """Read a log given as bytes, through a file in `folder`."""
    path = folder / "dedicated_log_torch_trace_x.log"
    path.write_bytes(data)
    return read(path, texts=texts)
