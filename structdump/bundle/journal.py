"""The journal: a file beside the target that holds everything seen so far, whenever the process dies.

It is one zstd frame of JSON lines, flushed after each record, so `zstd -dc x.journal` reads it too.
Records have a type `t`: `head`, `artifact` {artifact}, `text` {digest, text} (once per digest,
before its first artifact), `state` {…} (a later one replaces the keys it has), `end`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structdump.bundle import codec
from structdump.bundle.limits import DEFAULT, OWN, TRUST, Limits
from structdump.errors import CorruptError, LimitError, NotABundleError

SUFFIX = ".journal"
SNIFF = 256 << 10  # bytes; holds at least one compressed block
_FIRST_BYTES = b'{"t":"'
_TEXT_START = b'{"t":"text","digest":"'
_TEXT_AT = len(_TEXT_START) + 32 + len(b'","text":')
_DIGEST = re.compile(r"[0-9a-f]{32}")


def beside(target: Path) -> Path:
    """Return a fresh name for the journal of `target`, in its directory.

    Example: `run.json.zst` → `run.json.zst.3f9a51c2.journal`.
    """
    return target.with_name(f"{target.name[:200]}.{secrets.token_hex(4)}{SUFFIX}")


class Journal:
    """A journal being written. Not safe for two threads at once: the caller locks.

    Example::

        journal = Journal.create(journal_module.beside(target))
        journal.write({"t": "head", "level": "low"})
        journal.write({"t": "end"})
        journal.close()
    """

    def __init__(self, path: Path, fd: int):
        self.path = path
        self._fd = fd
        self._frame = codec.FlushingCompressor()

    @classmethod
    def create(cls, path: Path) -> Journal:
        """Create the file, which must not exist, for its owner alone (mode 0600).

        Raises OSError (FileExistsError, PermissionError, …) when that is not possible.
        """
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # tells `in_use` that the writer lives
        return cls(path, fd)

    def write(self, record: dict[str, Any]) -> None:
        """Append one record; once this returns, no kill of the process loses it.

        Raises OSError when the disk is full or the journal is closed. After a failed write every
        later one fails too: what was written before stays readable.
        """
        if self._fd < 0:
            raise OSError("the journal is closed")
        data = self._frame.add(*_line(record))
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            # The frame's later blocks would refer to the record that is missing: nothing may follow.
            self.abandon()
            raise

    def close(self) -> None:
        """End the frame and close the file. Harmless when closed already."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):  # a full disk: without its end the frame reads as cut
            os.write(self._fd, self._frame.finish())
        self.abandon()

    def discard(self) -> None:
        """Close the file and remove it. Raises nothing if it is gone already."""
        self.abandon()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def abandon(self) -> None:
        """Forget the file without writing to it: for a forked child, whose parent goes on with it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)  # of this process alone; the lock stays with the parent's descriptor


def in_use(path: Path) -> bool:
    """Return whether a living process still writes this journal (False where locks don't work)."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _line(record: dict[str, Any]) -> tuple[bytes, ...]:
    kind = record["t"]
    if kind == "text":
        digest = record["digest"]
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"no digest of a text: {digest!r}")
        return (_TEXT_START, digest.encode(), b'","text":', codec.dumps(record["text"]), b"}\n")
    return (codec.dumps({"t": kind, **record}), b"\n")


class JournalReader:
    """Reads a journal's records, in order, holding one at a time.

    After the iteration, `complete` tells whether the journal was ended by its writer, `cut`
    whether it stops in the middle of a record or is damaged, and `damage` how.
    Can be iterated several times.
    """

    def __init__(self, source: Path | bytes, limits: Limits = DEFAULT):
        self.source = source
        self.limits = limits
        self.complete = False
        self.cut = False
        self.damage: str | None = None

    def lines(self) -> Iterator[bytes]:
        """Yield the records as lines of JSON, without parsing them. OSError if it can't be opened."""
        self.cut, self.damage = False, None
        if isinstance(self.source, bytes):
            yield from self._split(codec.stream(self.source), len(self.source))
            return
        with self.source.open("rb") as file:
            yield from self._split(codec.stream(file), os.fstat(file.fileno()).st_size)

    def _split(self, chunks: Iterator[bytes], compressed: int) -> Iterator[bytes]:
        longest = min(self.limits.text, self.limits.allowed(compressed))
        rest: list[bytes] = []
        held = 0
        try:
            for chunk in chunks:
                first, *more = chunk.split(b"\n")
                rest.append(first)
                held += len(first)
                if held > longest:
                    raise LimitError(f"a record of the journal is larger than {longest:,} bytes; {TRUST}")
                if more:
                    yield b"".join(rest)
                    yield from more[:-1]
                    rest, held = [more[-1]], len(more[-1])
        except CorruptError as e:
            self.cut, self.damage = True, str(e)
        if held:
            self.cut = True

    def text(self, line: bytes) -> tuple[str, memoryview] | None:
        """Return digest and JSON string of a text record's line, unparsed; None for other records.

        A text that this process did not write itself must be what its digest says; the digest
        returned is empty if it isn't.
        """
        found = _split_text(line)
        if found is None or self.limits is OWN:
            return found
        try:
            sound = codec.digest(codec.loads_text(found[1])) == found[0]
        except CorruptError:
            sound = False
        return found if sound else ("", found[1])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.complete = False
        for line in self.lines():
            record = self.record(line)
            if record is None:
                return
            yield record

    def record(self, line: bytes) -> dict[str, Any] | None:
        """Parse one line; None, and `cut` set, if it is no record: nothing after it can be trusted."""
        try:
            text = _split_text(line)
            if text is not None:
                return {"t": "text", "digest": text[0], "text": codec.loads_text(text[1])}
            trusted = self.limits is OWN
            record = codec.parse_record(line) if trusted else codec.loads(line, self.limits)
        except LimitError:
            raise
        except Exception as e:  # noqa: BLE001  # damaged input, whatever the parser makes of it
            self.cut, self.damage = True, str(e)
            return None
        if not isinstance(record, dict) or not isinstance(record.get("t"), str):
            self.cut, self.damage = True, "a line is no record"
            return None
        self.complete = record["t"] == "end"
        return record


def _split_text(line: bytes) -> tuple[str, memoryview] | None:
    """Return digest and JSON string of a text record's line, unparsed; None for other records."""
    if not line.startswith(_TEXT_START):
        return None
    at = len(_TEXT_START)
    return line[at : at + 32].decode("ascii", "replace"), memoryview(line)[_TEXT_AT:-1]


def read_journal(path: Path, limits: Limits = DEFAULT) -> JournalReader:
    """Return a reader over the records of a journal, as far as they were written.

    Raises NotABundleError if the file can't be read. The iteration raises LimitError on a record
    larger than `limits` allow; what comes between records takes time, not memory.

    Example::

        reader = read_journal(path)
        kinds = [record["t"] for record in reader]
        reader.complete
    """
    try:
        with path.open("rb") as file:
            start = file.read(SNIFF)
    except OSError as e:
        raise NotABundleError(f"{path} cannot be read: {e.strerror}") from None
    if not is_journal(start):
        raise NotABundleError(f"{path} is no journal of structdump, or nothing was written to it yet")
    return JournalReader(path, limits)


def is_journal(data: bytes) -> bool:
    """Return whether the data, of which the first SNIFF bytes are enough, begins as a journal does."""
    if data[:4] != codec.ZSTD_MAGIC:
        return False
    try:
        start = next(codec.stream(data[:SNIFF]), b"")
    except CorruptError:
        return False
    return start.startswith(_FIRST_BYTES)
