"""What of prose may stand in a shapes-only bundle: torch's own frames, kinds of errors, breaks and guards."""

from __future__ import annotations

import re
import sys
from typing import Any

from structdump.bundle.shapes_names import Names, is_exception
from structdump.bundle.torch_names import known

# Names of functions that any program has.
_ANYWHERE = frozenset({"forward", "__call__", "<lambda>", "<module>", "backward", "main", "inner", "wrapper"})
_RESUMED = re.compile(r"(torch_dynamo_resume_in_)(.+?)(_at_\d{1,6}(?:_\d{1,4})?)")
_PACKAGE = re.compile(
    r"(?:^|.*/)(?:site|dist)-packages/((?:torch|triton|depyf|functorch|structdump)/[\w/.-]+\.py)", re.DOTALL
)
_STANDARD = re.compile(r"(?:^|.*/)lib(?:64)?/(python3\.\d{1,2})/((?:\w+/)*\w+\.py)", re.DOTALL)
_FRAME = re.compile(r"  File \"([^\"\n]*)\", line (\d{1,7})(?:, in (.*))?")
_CARETS = re.compile(r" {4,}[~^ ]+")
_LINKS = (
    "Traceback (most recent call last):",
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_BREAK_CODE = re.compile(r"\bgb\d{4}\b")
_TRACED = re.compile(r"Encountered graph break when attempting to trace [A-Z_]{3,40}\b")
_TYPES = re.compile(r"((?:[\w.]+: )*)")
_WORD = (
    r"(?:-?\d{1,12}|torch\.\w{2,16}|Float|Double|Half|BFloat16|Int|Long|Short|Byte|Char|Bool|Complex\w{5,6}"
    r"|cpu|cuda|True|False|None)"
)
_MISMATCH = (
    r"(?:size|stride) mismatch at index \d{1,3}|(?:rank|dtype|requires_grad|device|dispatch key set) mismatch"
)
_STATES = (
    r"grad_mode|autocast|num_threads|deterministic_algorithms|torch_function|default_dtype|allow_tf32"
    r"|allow_fp16_reduce|allow_bf16_reduce"
)
_GUARDS = (
    re.compile(rf"(?:tensor .{{1,2000}}? )?((?:{_MISMATCH})\. expected {_WORD}, actual {_WORD})$"),
    re.compile(rf".{{0,2000}}?\b(GLOBAL_STATE changed: (?:(?:{_STATES}) ?)+)$"),
)
_ID = re.compile(r"(?:[a-z_]{2,24}/)?[!\d/_-]{1,40}(?:#\d{1,9})?")


def compile_id(value: str, names: Names) -> str:
    """Return a compile id, which is numbers and the name of a family."""
    return value if _ID.fullmatch(value) else names.token("compile", value)


def function(name: str, names: Names) -> str:
    """Return a function's name as its token; what any program has stays.

    Example: `function("torch_dynamo_resume_in_route_at_7", names)` is
    `"torch_dynamo_resume_in_<function-1>_at_7"`.
    """
    resumed = _RESUMED.fullmatch(name)
    if resumed:
        return resumed[1] + function(resumed[2], names) + resumed[3]
    return name if name in _ANYWHERE else names.token("function", name)


def file(path: str, names: Names) -> str:
    """Return the path of a file of torch's or of Python's from its package on, another's token."""
    own = public_file(path)
    if own or re.fullmatch(r"<file-\d{1,9}>\.py", path):
        return own or path
    return f"{names.token('file', path)}.py"


def public_file(path: str) -> str | None:
    """Return where in torch, triton, depyf or the standard library a file is; None for any other."""
    found = _PACKAGE.fullmatch(path) or (
        _PACKAGE.fullmatch(f"/site-packages/{path}") if path.startswith("torch/") else None
    )
    if found:
        first, *rest = found[1].split("/")
        return (
            f"site-packages/{found[1]}"
            if first != "torch" or rest[0].removesuffix(".py") in {*known("torch"), "__init__"}
            else None
        )
    found = _STANDARD.fullmatch(path)
    if found and found[2].split("/")[0].removesuffix(".py") in sys.stdlib_module_names:
        return f"lib/{found[1]}/{found[2]}"
    return None


def frame(data: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return a frame of a stack: one of torch's own as it is, any other without names and code."""
    path, name = str(data.get("file", "")), str(data.get("name", ""))
    own = public_file(path)
    found = {**data, "file": own or file(path, names), "name": name if own else function(name, names)}
    if not own:
        found.pop("code", None)
    return found


def traceback(text: str, names: Names) -> str:
    """Return a traceback with torch's own frames, the others as tokens, and types without messages."""
    lines: list[str] = []
    code = ended = False
    for line in text.splitlines():
        match = _FRAME.match(line)
        if line in _LINKS:
            ended = False
            lines.append(line)
        elif ended:
            continue
        elif match:
            own = public_file(match[1])
            name = match[3] if own or match[3] is None else function(match[3].strip(), names)
            code = own is not None
            lines.append(
                f'  File "{own or file(match[1], names)}", line {match[2]}' + (f", in {name}" if name else "")
            )
        elif line.startswith("    "):
            if code or _CARETS.fullmatch(line):
                lines.append(line)
            code = False
        elif line.strip():
            ended = True
            lines.append(exception(line.partition(":")[0].strip(), names) + _message(line.partition(":")[2]))
    return "\n".join(line for n, line in enumerate(lines) if not _stray(lines, n)) + ("\n" if lines else "")


def _stray(lines: list[str], number: int) -> bool:
    """Carets under code that is gone."""
    return bool(_CARETS.fullmatch(lines[number])) and (not number or bool(_FRAME.match(lines[number - 1])))


def _message(text: str) -> str:
    found = message(text.strip())
    return f": {found}" if found else ""


def exception(name: str, names: Names) -> str:
    """Return the type of an exception if it is torch's or Python's, else its token."""
    return name if is_exception(name) else names.token("exception", name)


def message(text: str) -> str:
    """Return of an error's message the types that it begins with, and the graph break that it names."""
    start = _TYPES.match(text)
    types = [t for t in start[1].split(": ") if t and is_exception(t)] if start else []
    broken = _broken(text)
    return (
        "".join(f"{t}: " for t in types)
        + "; ".join(broken)
        + ("" if broken else "<message omitted>" if text else "")
    )


def graph_break(reason: str, names: Names) -> str:
    """Return the kind of a graph break, as torch's own table names it."""
    return "\n".join(_broken(reason)) or names.token("reason", reason)


def _broken(text: str) -> list[str]:
    kinds = known("breaks")
    found = [line.strip() for line in text.splitlines() if line.strip() in kinds]
    traced = _TRACED.match(text)
    code = _BREAK_CODE.search(text)
    return [*([traced[0]] if traced else []), *found, *([code[0]] if code else [])]


def guard(reason: str, names: Names) -> str:
    """Return what kind of guard failed, with the sizes that differ."""
    label, colon, rest = reason.partition(": ")
    start = f"{label}: " if colon and _ID.fullmatch(label) else ""
    lines = [_guard(line, names) for line in (rest if start else reason).splitlines() if line.strip()]
    return start + "\n".join(lines)


def _guard(line: str, names: Names) -> str:
    for pattern in _GUARDS:
        match = pattern.match(line.strip())
        if match:
            return match[1].strip()
    return names.token("guard", line.strip())
