"""Where bundles lie: files here, or what fsspec reaches by a URL. fsspec is imported for a URL alone."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any

from structdump.errors import NotABundleError

Place = str | os.PathLike[str]
# The second form is what pathlib leaves of a URL.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://|/(?!/))|[a-z]+::")
_MAGIC = re.compile(r"[*?[]")


def is_url(place: Place) -> bool:
    """Tell whether a place is a URL, also one that went through `pathlib.Path`.

    Example::

        >>> is_url("s3://bucket/run.json.zst"), is_url(Path("s3://bucket/a")), is_url("/tmp/a"), is_url("a:b")
        (True, True, False, False)
    """
    name = os.fspath(place)
    return _URL.match(name) is not None and not os.path.lexists(name)


def url_of(place: Place) -> str:
    """Return a URL with both of its slashes.

    Example::

        >>> url_of(Path("s3://bucket/a"))
        's3://bucket/a'
    """
    name = os.fspath(place)
    if re.match(r"(?:file|local):/(?!/)", name):  # these have a third slash, of the path itself
        return name.replace(":/", ":///", 1)
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?!/)", r"\1://", name)


def opened(place: Place) -> IO[bytes]:
    """Open a place for reading.

    Raises OSError if that fails, NotABundleError if fsspec or what it needs for this URL is not there.
    """
    if not is_url(place):
        return Path(place).open("rb")
    url = url_of(place)
    with _told(url):
        file: IO[bytes] = _fsspec().open(url, "rb").open()
        return file


def put(local: Path, url: str, *, overwrite: bool = False) -> str:
    """Copy a file to a URL, or, if something is there, to the next free name like it; return its URL.

    Raises OSError or NotABundleError if that fails.
    """
    with _told(url, "written"):
        system, path = _fsspec().core.url_to_fs(url)
        target = next(name for name in _names(path) if overwrite or not system.exists(name))
        if "/" in target:
            system.makedirs(target.rpartition("/")[0], exist_ok=True)
        system.put_file(str(local), target)
        return str(system.unstrip_protocol(target))


def _names(path: str) -> Iterator[str]:
    """`run.json.zst`, then `run-1.json.zst`, and so on."""
    yield path
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.partition(".")
    for number in count(1):
        yield f"{folder}{slash}{stem}-{number}{dot}{ending}"


def size(file: IO[bytes]) -> int:
    """Return how many bytes an opened file has."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):  # what fsspec opens may have no descriptor; what has one may be a pipe
        pass
    at = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(at)
    return end


def expand(places: Place | Iterable[Place]) -> Iterator[str]:
    """Yield the files that paths, URLs and shell globs of either name, those of one glob sorted.

    A directory stands for the bundles in it. What holds no pattern is yielded as it is.

    Example: `list(expand(["runs/*.json.zst", "s3://bucket/job/*.json.zst"]))`
    """
    for place in [places] if isinstance(places, (str, os.PathLike)) else places:
        name = os.fspath(place)
        if is_url(name):
            yield from _expand_url(url_of(name))
        elif Path(name).is_dir():
            yield from sorted(str(p) for p in Path(name).glob("*.json.zst"))
        elif _MAGIC.search(name) and not Path(name).exists():
            yield from sorted(glob.glob(name, recursive=True))  # noqa: PTH207  # pathlib takes no absolute pattern
        else:
            yield name


def _expand_url(url: str) -> Iterator[str]:
    if not _MAGIC.search(url):
        yield url
        return
    with _told(url):
        system, path = _fsspec().core.url_to_fs(url)
        yield from sorted(str(system.unstrip_protocol(found)) for found in system.glob(path))


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise NotABundleError("a URL needs fsspec: pip install fsspec") from None
    return fsspec


class _told:  # noqa: N801  # used like a function
    """Turn the many errors of remote stores into one; what is missing is said by fsspec itself."""

    def __init__(self, url: str, what: str = "read"):
        self.url, self.what = url, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError) or not isinstance(error, Exception):
            return
        raise NotABundleError(f"{self.url} cannot be {self.what}: {error}") from None
