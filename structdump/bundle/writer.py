"""Writing a bundle: beside its target under a random name, for its owner alone, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from structdump.bundle import assemble, codec, journal
from structdump.bundle.assemble import Rank, level_rank
from structdump.bundle.journal import JournalReader, read_journal
from structdump.bundle.layout import Laid, TextFrames, frame_size, lay_out
from structdump.bundle.limits import OWN
from structdump.bundle.model import Bundle, OmittedCount
from structdump.errors import NotABundleError

_WAITING = 64  # texts held until their artifact comes, which is the next record as a rule
ENDINGS = (".json.zst", ".json.gz", ".json", ".zip")


@dataclass(frozen=True)
class WriteResult:
    """What was written.

    `path` is where it lies, which differs from the target when that existed; `bytes` is the size of
    the file, `raw_bytes` that of the JSON in it; `omitted` and `redactions` are the bundle's own.
    """

    path: Path
    bytes: int
    raw_bytes: int
    omitted: dict[str, OmittedCount]
    redactions: dict[str, int]
    complete: bool


def write_bundle(
    journal_path: Path,
    target: Path,
    *,
    max_bytes: int | None,
    overwrite: bool = False,
    bundle_rank: Rank = level_rank,
) -> WriteResult:
    """Turn a journal into a bundle at `target`, and leave the journal as it is.

    `max_bytes` bounds the compressed file: texts that don't fit become index entries, the least
    valuable by `bundle_rank` first (lower is more valuable). An existing target is kept, and the
    bundle goes to `name-1.json.zst`, unless `overwrite`. Memory use does not grow with the texts.
    A journal without its end gives a bundle with `complete: false`.

    Raises OSError when it can't be written (nothing is left at the target then), NotABundleError
    when the journal isn't one.

    Example: `write_bundle(journal.path, Path("run.json.zst"), max_bytes=24 << 20).path`
    """
    return _write_journal(read_journal(journal_path, OWN), target, max_bytes, overwrite, bundle_rank)


def write_document(
    bundle: Bundle,
    target: Path,
    *,
    max_bytes: int | None = None,
    overwrite: bool = False,
    bundle_rank: Rank = level_rank,
) -> WriteResult:
    """Write a bundle that is in memory. Its counts and omissions are set to what it holds.

    The rest is as with `write_bundle`.
    """
    assemble.settle(bundle, bundle.texts)
    values = assemble.ranks(bundle, bundle_rank)
    with closing(TextFrames(target.parent, frame_size(max_bytes))) as frames:
        for digest, value in values.items():
            frames.add(value, digest, codec.dumps(bundle.texts[digest]))
        return finish(bundle, lay_out(bundle, frames.finish(), frames, max_bytes), target, overwrite)


def recover(source: Path, *, max_bytes: int | None = None) -> list[Path]:
    """Make a bundle of a journal, or of each one in a directory, and remove the journals done.

    In a directory, journals that a living process still writes are left alone, and so are those of
    which nothing can be read. Returns the bundles' paths.
    Raises NotABundleError if there is nothing to recover, OSError when writing fails.

    Example: `recover(Path("run.json.zst.journal")) == [Path("run.json.zst")]`
    """
    if not source.is_dir():
        return [_recover(source, max_bytes)]
    done = []
    for path in sorted(source.glob(f"*{journal.SUFFIX}")):
        with contextlib.suppress(NotABundleError):
            done.append(_recover(path, max_bytes))
    if not done:
        raise NotABundleError(f"{source} holds no journal that a dead process left")
    return done


def _recover(path: Path, max_bytes: int | None) -> Path:
    reader = read_journal(path)  # within the limits that any file of unknown origin is held to
    if journal.in_use(path):
        raise NotABundleError(f"{path} is still being written by a running process")
    name = path.name.removesuffix(journal.SUFFIX)
    target = path.with_name(name if name.endswith(ENDINGS) else name + ENDINGS[0])
    result = _write_journal(reader, target, max_bytes, overwrite=False, rank=level_rank)
    path.unlink()
    return result.path


def _write_journal(
    reader: JournalReader, target: Path, max_bytes: int | None, overwrite: bool, rank: Rank
) -> WriteResult:
    with closing(TextFrames(target.parent, frame_size(max_bytes))) as frames:
        bundle, filed = _file(reader, frames, rank)
        values = assemble.ranks(bundle, rank)
        if filed.keys() == values.keys():
            laid = lay_out(bundle, frames.finish(), frames, max_bytes)
            if laid.whole or filed == values:
                return finish(bundle, laid, target, overwrite)
    # A text was filed under the value of its first artifact, and a later one is worth more, which
    # decides what a budget keeps; or it stood where no journal of ours has it. Once more, exactly.
    bundle = assemble.from_journal(reader)
    with closing(TextFrames(target.parent, frame_size(max_bytes))) as frames:
        for line in reader.lines():
            text = reader.text(line)
            value = values.pop(text[0], None) if text is not None else None  # once each
            if text is not None and value is not None:
                frames.add(value, *text)
        return finish(bundle, lay_out(bundle, frames.finish(), frames, max_bytes), target, overwrite)


def _file(reader: JournalReader, frames: TextFrames, rank: Rank) -> tuple[Bundle, dict[str, int]]:
    """Read a journal once: file each text under the value of the first artifact that uses it.

    Returns the bundle, and the values by digest.
    """
    assembly = assemble.Assembly(reader.limits)
    filed: dict[str, int] = {}
    waiting: dict[str, memoryview] = {}
    present: set[str] = set()
    reader.complete = False
    for line in reader.lines():
        text = reader.text(line)
        if text is not None:
            if text[0]:
                present.add(text[0])
            if len(waiting) > _WAITING:  # texts that no artifact follows: not what a session writes
                waiting.clear()
            if text[0] and text[0] not in filed:
                waiting.setdefault(*text)
            continue
        record = reader.record(line)
        if record is None:
            break
        artifact = assembly.take(record)
        if artifact is not None and artifact.omitted is None and artifact.digest in waiting:
            filed[artifact.digest] = rank(artifact)
            frames.add(filed[artifact.digest], artifact.digest, waiting.pop(artifact.digest))
    return assembly.finish(present, complete=reader.complete), filed


def finish(bundle: Bundle, laid: Laid, target: Path, overwrite: bool) -> WriteResult:
    """Put a bundle that is laid out at its target, as `write_bundle` does."""
    path = place(laid.pieces, target, overwrite=overwrite)
    return WriteResult(path, laid.size, laid.raw_size, bundle.omitted, bundle.redactions, bundle.complete)


def place(pieces: Iterable[bytes], target: Path, *, overwrite: bool = False) -> Path:
    """Write a file whole or not at all, for its owner alone; return the name that it got.

    An existing target is kept and the next free name taken, unless `overwrite`. Raises OSError.
    """
    part = target.with_name(f".structdump-{secrets.token_hex(8)}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123  # takes over the descriptor
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        path = target
        if overwrite:
            part.replace(target)
        else:
            path = next(name for name in _names(target) if _rename(part, name))
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _sync_directory(target.parent)
    return path


def _names(target: Path) -> Iterator[Path]:
    """`run.json.zst`, then `run-1.json.zst`, and so on."""
    yield target
    ending = next((e for e in ENDINGS if target.name.endswith(e)), target.suffix)
    stem = target.name[: len(target.name) - len(ending)]
    for number in range(1, 100_000):
        yield target.with_name(f"{stem}-{number}{ending}")
    raise FileExistsError(f"{target} and 99,999 names like it exist")


def _rename(part: Path, name: Path) -> bool:
    """Give the file its name unless something has it; return whether it did."""
    try:
        os.link(part, name)  # unlike a rename, never replaces
    except FileExistsError:
        return False
    except OSError:  # no hard links on this file system: reserve the name, then replace what is ours
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        except FileExistsError:
            return False
        part.replace(name)
        return True
    part.unlink()
    return True


def _sync_directory(directory: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
