"""Reads what torch says in prose: graph breaks, recompile reasons, tracebacks. Pure, never raises."""

from __future__ import annotations

import re

from structdump.bundle.model import GraphBreak, Recompile, SourceFrame

MAX_REASON = 20_000
"""Characters kept of one reason; torch's are a few hundred."""

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9})(?:, in (?P<name>[^\n]*))?$')
_LOCATION = re.compile(r"^Graph break in user code at (?P<file>.*):(?P<line>\d{1,9})$", re.MULTILINE)
_GUARD = re.compile(r"^(?P<id>!?\d+(?:/\d+){0,2}): (?P<guard>.*)$", re.DOTALL)
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<name>.*)_at_(?P<line>\d{1,9})$")
_LAST_LINE = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
_STACK_HEADS = (
    "User code traceback:",
    "The graph break occurred in the following user code:",
    "from user code:",
)


def frames(text: str) -> list[SourceFrame]:
    r"""Return the frames that a printed Python stack names, outermost first.

    Example::

        >>> frames('  File "a.py", line 3, in f\n    x = g()\n')[0].code
        'x = g()'
    """
    found: list[SourceFrame] = []
    code_may_follow = False
    for line in text.splitlines():
        match = _FRAME.match(line)
        if match:
            found.append(
                SourceFrame(file=match["file"], line=int(match["line"]), name=(match["name"] or "").strip())
            )
            code_may_follow = True
        else:
            if code_may_follow and line.startswith("    ") and line.strip():
                found[-1].code = line.strip()
            code_may_follow = False
    return found


def graph_break(text: str) -> GraphBreak:
    """Return the reason and the user's stack out of a `dynamo_graph_break_reason` payload.

    torch 2.9 to 2.13 print "Graph Break Reason: …", then the user's stack under a heading, then
    the traceback of the internal exception, which is not part of the result.
    """
    body = text.split("\nTraceback (most recent call last):", 1)[0]
    reason, stack = body, ""
    for head in _STACK_HEADS:
        if head in body:
            reason, stack = body.split(head, 1)
            break
    reason = _LOCATION.sub("", reason)
    reason = reason.replace("Graph Break Reason: ", "", 1).strip()
    found = frames(stack) or frames(body)
    if not found and (place := _LOCATION.search(body)):
        found = [SourceFrame(file=place["file"], line=int(place["line"]))]
    return GraphBreak(reason=reason[:MAX_REASON] or "unknown", stack=found)


def recompile(reasons: object) -> Recompile | None:
    """Return why a function was compiled again, from a `recompile_reasons` payload or metric.

    `reasons` is one string or a list of them, each "0/0: guard that failed" or the bare guard.
    The first one counts for `guard` and `previous`: torch lists the newest compile first.
    """
    listed = [reasons] if isinstance(reasons, str) else reasons
    if not isinstance(listed, (list, tuple)):
        return None
    lines = [r.strip() for r in listed if isinstance(r, str) and r.strip()]
    if not lines:
        return None
    match = _GUARD.match(lines[0])
    # torch adds, after two spaces and #, where in the program the guard came from
    guard = (match["guard"] if match else lines[0]).split("\nUser stack trace:", 1)[0].split("  # ", 1)[0]
    return Recompile(
        reason="\n".join(lines)[:MAX_REASON],
        guard=guard.strip()[:MAX_REASON] or None,
        previous=match["id"] if match else None,
    )


def exception(text: str) -> tuple[str, str]:
    r"""Return type and message of the exception that a printed traceback ends with.

    Example::

        >>> exception('Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1')
        ('KeyError', '1')
    """
    tail = text.rsplit("Traceback (most recent call last):", 1)[-1].splitlines()
    for index, line in enumerate(tail):
        match = _LAST_LINE.match(line)
        if match and not line.startswith(" "):
            rest = "\n".join([match["message"] or "", *tail[index + 1 :]]).strip()
            return match["type"], rest[:MAX_REASON]
    return "Exception", text.strip()[-MAX_REASON:]


def resume_point(name: str) -> tuple[str, int] | None:
    """Return function and line that a Dynamo resume function continues, None for other functions.

    Example::

        >>> resume_point("torch_dynamo_resume_in_forward_at_12")
        ('forward', 12)
    """
    match = _RESUME.match(name)
    return (match["name"], int(match["line"])) if match else None


def plain_name(name: str) -> str:
    """Return the user's name of a function: of a resume function, the one that it continues."""
    while (point := resume_point(name)) is not None:
        name = point[0]
    return name
