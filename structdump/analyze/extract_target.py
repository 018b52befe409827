"""The directory that a bundle is extracted to: safe names, unique names, and writing that never leaves it."""

from __future__ import annotations

import contextlib
import os
import re
from hashlib import sha256
from pathlib import Path

from structdump.errors import UsageError

LONGEST = 150  # characters of one name; file systems take 255 bytes, and some tools less of a whole path
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
#: Names that Windows keeps for devices, whatever comes after a dot.
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)")


def slug(name: str) -> str:
    """Return `name` as one harmless part of a path: ASCII, at most 150 characters, no device of Windows.

    What is cut is told apart by a hash. Different names may give the same slug: see `Names`.

    Example::

        >>> slug("../../etc/passwd"), slug("<lambda>"), slug("con.py")
        ('_._etc_passwd', '_lambda_', '_con.py')
    """
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)
    safe = re.sub(r"\.\.+", ".", safe).strip(".-") or "unnamed"
    if _RESERVED.match(safe):
        safe = f"_{safe}"
    if len(safe) <= LONGEST:
        return safe
    return f"{safe[: LONGEST - 9]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


class Names:
    """Hands out paths, none twice, also where upper and lower case are the same.

    Example::

        >>> names = Names()
        >>> names.free("kernels/a", ".py"), names.free("kernels/A", ".py")
        ('kernels/a.py', 'kernels/A_2.py')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def free(self, stem: str, suffix: str) -> str:
        """Return `stem + suffix`, with a number before the suffix if that is taken."""
        path, key = stem + suffix, (stem + suffix).lower()
        while path.lower() in self._taken:
            self._next[key] = self._next.get(key, 1) + 1
            path = f"{stem}_{self._next[key]}{suffix}"
        self._taken.add(path.lower())
        return path


class Target:
    """A directory, open for writing below it. Use as a context manager.

    Every step down is taken from an open directory and refuses links, so that not even a link that
    somebody makes meanwhile leads elsewhere. The directory itself may be reached by a link.
    `files` are the paths written, in order; `taken` the same in lower case.
    """

    def __init__(self, directory: Path, *, force: bool = False):
        """Make the directory. Raises UsageError if that fails, or it holds something and not `force`."""
        self.directory = directory
        self.files: list[str] = []
        self.taken: set[str] = set()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"{directory} cannot be used: {error.strerror or error}") from None
        try:
            full = next(iter(os.scandir(self._root)), None) is not None
        except OSError as error:
            os.close(self._root)
            raise UsageError(f"{directory} cannot be read: {error.strerror or error}") from None
        if full and not force:
            os.close(self._root)
            raise UsageError(f"{directory} is not empty; --force writes into it")

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def write(self, path: str, text: str) -> None:
        """Write one file, in place of one of that name. `path` has slashes and is relative.

        Raises UsageError if a link or a directory is in the way, or the disk is full; ValueError for a
        path that is not made of slugs.
        """
        *folders, name = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in (*folders, name)):
            raise ValueError(f"no path to write to: {path!r}")
        at = os.dup(self._root)
        try:
            for folder in folders:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=at)
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=at)
                os.close(at)
                at = below
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=at)  # a link goes itself, and a file with two names keeps the other
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666, dir_fd=at)
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(
                f"{self.directory / path} cannot be written: {error.strerror or error}"
            ) from None
        finally:
            os.close(at)
        self.files.append(path)
        self.taken.add(path.lower())
