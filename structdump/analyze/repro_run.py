"""Running a repro script in a fresh process, and whether it ends as the bundle says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from structdump.analyze.canon import plain
from structdump.bundle.model import Failure

# The child says by itself which exception ended it: a traceback's text does not tell where a message ends.
_CHILD = """
import json, runpy, sys, traceback
script, result = sys.argv[1:]
sys.argv = [script]
found = None
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit as stop:
    if stop.code not in (None, 0):
        found = {"type": "SystemExit", "message": str(stop.code)}
        print(stop.code, file=sys.stderr)
except BaseException as error:
    found = {"type": type(error).__name__, "message": str(error)}
    traceback.print_exc()
with open(result, "w", encoding="utf-8", errors="replace") as file:
    json.dump(found, file)
"""
_WRAPPED = re.compile(r"(?:(?:\w+\.)*[A-Z]\w+: )*")


@dataclass(slots=True)
class Outcome:
    """How a script ended. `failure` is None if it went well; `same` tells whether that was expected."""

    same: bool
    failure: Failure | None


def run(script: Path, expected: Failure | None) -> Outcome:
    """Run a script in a fresh Python process and compare how it ends with `expected`.

    This executes the script. It runs in an empty directory, its output goes to stderr, and it takes as
    long as it takes. Failures are the same if the exception's type is, and the types that its message
    begins with: what an `InductorError` wraps says more than its name.

    Example: `run(Path("repro.py"), bundle.compiles[0].error).same`
    """
    settings = {k: v for k, v in os.environ.items() if not k.startswith("STRUCTDUMP_")}
    with tempfile.TemporaryDirectory(prefix="structdump-repro-") as directory:
        result = Path(directory, "result.json")
        work = Path(directory, "work")
        work.mkdir()
        done = subprocess.run(  # noqa: S603 # running the script is what was asked for
            [sys.executable, "-c", _CHILD, str(script.resolve()), str(result)],
            cwd=work,
            env=settings,
            stdout=sys.stderr.fileno(),
            check=False,
        )
        failure = _failure(done.returncode, result)
    return Outcome(_alike(failure, expected), failure)


def _failure(code: int, result: Path) -> Failure | None:
    try:
        found = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        how = f"signal {-code}: {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
        return Failure(type="Crash", message=f"the process ended by {how}", traceback=None)
    if found is None:
        return None
    return Failure(type=found["type"], message=found["message"], traceback=None)


def _alike(a: Failure | None, b: Failure | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.type.rsplit(".", 1)[-1] == b.type.rsplit(".", 1)[-1] and _wrapped(a) == _wrapped(b)


def _wrapped(failure: Failure) -> str:
    found = _WRAPPED.match(plain(failure.message))
    return found[0] if found else ""
