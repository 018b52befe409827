"""A bundle to a URL, when a capture ends."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from structdump.bundle.places import put
from structdump.bundle.privacy import shown
from structdump.sources.spool import warn

_SECONDS = 120.0
# In a process of its own: at the end of this one threads can't be started any more, which most stores
# need, and a store that hangs must not hang the program.
_PUT = (
    "import sys; sys.path[:] = sys.argv[3:]\n"
    "from pathlib import Path; from structdump.bundle.places import put\n"
    "try: print(put(Path(sys.argv[1]), sys.argv[2]))\n"
    "except Exception as error: sys.exit(f'{type(error).__name__}: {error}')"
)


def upload(path: Path, url: str, redact: Callable[[str], str] = str) -> str | None:
    """Copy a bundle to `url` and remove the local one; return the URL that it has then.

    An upload that fails, or takes more than two minutes, costs one warning, the file stays where it is,
    and None is returned. Nothing that is there already is overwritten. What the store says goes
    through `redact` before it is printed.
    """
    try:
        # What lies in memory:// is this process's own.
        done = put(path, url) if url.startswith("memory:") else _put_elsewhere(path, url)
    except Exception as error:  # noqa: BLE001 # the program must end as it would have
        reason = redact(str(error) or type(error).__name__)
        warn(f"not uploaded to {shown_url(url)}: {reason}; the bundle is {shown(path)}")
        return None
    with contextlib.suppress(OSError):
        path.unlink()
    return done


def shown_url(url: str) -> str:
    """Return a URL as a person may read it in a public log: without credentials.

    Example::

        >>> shown_url("s3://key:secret@bucket/run.json.zst")
        's3://…@bucket/run.json.zst'
    """
    if url.startswith("file://"):
        return shown(Path(url.removeprefix("file://")))
    return re.sub(r"//[^/@]*@", "//…@", url).partition("?")[0]


def _put_elsewhere(path: Path, url: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STRUCTDUMP_")}
    command = [sys.executable, "-c", _PUT, str(path), url, *sys.path]
    try:
        done = subprocess.run(  # noqa: S603  # our own code
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise OSError(f"it took more than {_SECONDS:.0f} s") from None
    if done.returncode != 0 or not done.stdout.strip():
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise OSError(said[-1])
    return done.stdout.strip().splitlines()[-1]
