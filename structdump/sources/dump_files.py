"""The files of a dump directory, listed and read without trusting them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from structdump.bundle.names import DumpName, parse_file_name, parse_rank
from structdump.errors import SourceError

MAX_BYTES = 64 << 20
"""Bytes of one file that are read at most; a larger file is listed without its text."""
MAX_FILES = 100_000
_RANK_DEPTH = 3
MAX_DEPTH = 8

LINK = "link outside the directory"
SPECIAL = "not a regular file"
LARGE = "too large"
UNREADABLE = "unreadable"


@dataclass(slots=True)
class DumpFile:
    """One file: its name relative to the directory, what the name says, and why it cannot be read.

    `size` is in bytes. `name` has forward slashes; bytes that are no UTF-8 stand in it as surrogates.
    """

    name: str
    path: Path
    size: int = 0
    problem: str | None = None
    parsed: DumpName | None = None

    def read(self) -> str | None:
        r"""Return the text, or None; `problem` then says why. Bytes that are no UTF-8 become `\xNN`."""
        if self.problem is not None:
            return None
        try:
            # a pipe in the place of a file must not make this wait, nor a link lead it elsewhere
            number = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            with os.fdopen(number, "rb") as file:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    self.problem = SPECIAL
                    return None
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            self.problem = f"{UNREADABLE}: {error.strerror or error}"
            return None
        if len(data) > MAX_BYTES:
            self.problem = LARGE
            return None
        return data.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Rank:
    """A dump directory and the rank it is of, where its name says one (vLLM's `rank_3_dp_1`)."""

    path: Path
    rank: int | None = None
    dp_rank: int | None = None


def list_files(root: Path) -> list[DumpFile]:
    """List every file under `root`, sorted by name, links and special files included.

    Raises SourceError if `root` is no readable directory or holds more than 100,000 files.
    """
    files: list[DumpFile] = []
    try:
        if not root.is_dir():
            what = "is not a directory" if root.exists() else "does not exist"
            raise SourceError(f"{root} {what}; give the directory that depyf or vLLM dumped into")
        for file in _walk(root, root, root.resolve(), 0):
            files.append(file)
            if len(files) > MAX_FILES:
                raise SourceError(f"{root} holds more than {MAX_FILES:,} files: no dump directory")
    except OSError as error:
        raise SourceError(f"cannot list {root}: {error.strerror or error}") from error
    files.sort(key=lambda file: os.fsencode(file.name))
    return files


def find_ranks(path: str | os.PathLike[str]) -> list[Rank]:
    """Return the dump directories under `path`, by rank: its `rank_…` folders, or else `path` itself.

    vLLM puts one `rank_N` or `rank_N_dp_M` folder per process into its debug dump path; that may lie in
    another folder.

    Example::

        for rank in find_ranks("dump"):
            print(rank.rank, rank.dp_rank, rank.path)
    """
    root = Path(path)
    for depth in range(1, _RANK_DEPTH + 1):
        found = sorted(_ranks_at(root, depth), key=lambda r: (r.rank or 0, r.dp_rank or 0, str(r.path)))
        if found:
            return found
        if depth == 1 and _holds_files(root):
            break
    own = parse_rank(root.absolute().name)
    return [Rank(root, *own)] if own else [Rank(root)]


def _holds_files(root: Path) -> bool:
    try:
        return any(child.is_file() for child in root.iterdir())
    except OSError:
        return True


def _ranks_at(folder: Path, depth: int) -> Iterator[Rank]:
    """Yield the `rank_…` folders that many levels down; a link leads nowhere."""
    try:
        children = sorted(child for child in folder.iterdir() if not child.is_symlink() and child.is_dir())
    except OSError:
        return
    for child in children[:MAX_FILES]:
        parsed = parse_rank(child.name)
        if depth > 1:
            yield from _ranks_at(child, depth - 1)
        elif parsed is not None:
            yield Rank(child, *parsed)


def _walk(folder: Path, root: Path, real: Path, depth: int) -> Iterator[DumpFile]:
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        path = folder / entry.name
        name = path.relative_to(root).as_posix()
        if not entry.is_dir(follow_symlinks=False):
            yield _examine(path, name, real)
        elif depth >= MAX_DEPTH:
            yield DumpFile(name, path, problem="folders nested too deep")
        else:
            try:
                yield from _walk(path, root, real, depth + 1)
            except OSError as error:
                yield DumpFile(name, path, problem=f"{UNREADABLE}: {error.strerror or error}")


def _examine(path: Path, name: str, real: Path) -> DumpFile:
    file = DumpFile(name, path, parsed=parse_file_name(name))
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            target = path.resolve()
            if not target.is_relative_to(real) or not target.exists():
                file.problem = LINK
                return file
            file.path, status = target, target.stat()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links, before Python 3.13
        file.problem = f"{UNREADABLE}: {getattr(error, 'strerror', None) or error}"
        return file
    if not stat.S_ISREG(status.st_mode):
        file.problem = SPECIAL
        return file
    file.size = status.st_size
    if file.size > MAX_BYTES:
        file.problem = LARGE
    return file
