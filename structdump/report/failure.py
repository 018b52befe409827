"""An exception that ended a compile, in full: its traceback as one line per frame, its message as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structdump.bundle.model import Failure
from structdump.report.lines import Line, say

_FRAME = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_PACKAGES = re.compile(r"^.*[/\\\\](?:site|dist)-packages[/\\\\]")
_LEAD = "  │ "


def failure_lines(error: Failure) -> Iterator[Line]:
    """Yield the error's first line, where the user's program stood, and all of its traceback.

    Code is shown of frames outside torch only: inside, file and line say the same for a known version.
    """
    first = next((line for line in error.message.splitlines() if line.strip()), "")
    yield Line(say((error.type.rpartition(".")[2], "bold red"), ": ", (first, "red")), "  ", "  ")
    frame = error.user_frame
    if frame is not None and frame.file:
        code = f"  {frame.code.strip()}" if frame.code else ""
        yield Line(say("at ", place(frame.file, frame.line), f" in {frame.name}", (code, "dim")), "  ", "  ")
    if error.traceback:
        yield from _traceback(error.traceback)
    else:
        for line in error.message.rstrip().splitlines()[1:]:
            yield Line(say(line), _LEAD, _LEAD + "  ")


def place(file: str | None, line: int | None) -> str:
    """Write file and line as editors take them; a file of an installed package from the package on.

    Example::

        >>> place("/opt/venv/lib/python3.11/site-packages/torch/_dynamo/output_graph.py", 7)
        'torch/_dynamo/output_graph.py:7'
    """
    short = _PACKAGES.sub("", file) if file else "?"
    return f"{short}:{line}" if line is not None else short


def _traceback(text: str) -> Iterator[Line]:
    frames = in_torch = blank = False
    for line in text.rstrip().splitlines():
        frames = line.startswith("Traceback (") or (frames and (line.startswith("  ") or not line.strip()))
        frame = _FRAME.match(line) if frames else None
        if not line.strip():
            blank = True  # many become one
            continue
        if frames and frame is None and line.startswith("    ") and (in_torch or not line.strip(" ^~")):
            continue
        if blank:
            yield Line(say(""), _LEAD.rstrip())
        blank = False
        if frame is None:
            yield Line(say((line, "dim" if frames and line.startswith(" ") else "")), _LEAD, _LEAD + "    ")
            continue
        where = place(frame["file"], int(frame["line"]))
        in_torch = where.startswith("torch/")
        caller = f" in {frame['name']}" if frame["name"] else ""
        yield Line(say("  ", (where + caller, "dim" if in_torch else "bold")), _LEAD, _LEAD + "    ")
