"""A printed FX graph, or the wrapper that calls its kernels, as lines that can be compared.

What does not count is taken out: comments, and the `;  a = None` that only ends a value's life.
Signatures and returned tuples are split, one value a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LIFE_END = re.compile(r"(?:;  (?:\w+ = )+None)?(?:(?<=\S)  # [^\"'\n]*)?$", re.MULTILINE)
_WRAPPER = re.compile(
    r"^async_compile = AsyncCompile\(\).*?^async_compile\.wait\(globals\(\)\)$", re.DOTALL | re.MULTILINE
)
_WRAPPER_TAIL = re.compile(
    r"^(?:def get_args\(|def benchmark_compiled_module\(|if __name__ == ).*", re.DOTALL | re.MULTILINE
)
_KERNEL_CALL = re.compile(
    r"^( +(?:\w+ = )?(?:triton|cpp|pallas|cutlass|cutedsl)_\w+?)_\d+(?=[.(])", re.MULTILINE
)
_DELETION = re.compile(r"^ +del \w+$", re.MULTILINE)
_WHERE = re.compile(r"# File: (?P<file>[^\n]*?):(?P<line>\d+) in (?P<name>[^\n,]*)(?:, code: (?P<code>.*))?")
_SIGNATURE = re.compile(r"def forward\(self,? ?(.*?)\)(?: ?->[^\n:]*)?:$")
_PARAMETER = re.compile(r"\*{0,2}\w+(?: ?: ?(?:\"[^\"]*\"|[\w.]+))?")
_RETURN = re.compile(r"return [(\[]([\w, ]*?),?[)\]]$")
_CLASS = re.compile(r"class \S+\((?:torch\.nn\.Module|Module|nn\.Module)\):$")


INPUT = "input"
GRAPH = "def forward"  # the line that begins a graph


@dataclass(slots=True, frozen=True)
class Source:
    """A line as it counts: its text, its number in the printed graph (from 1), and the Python line above."""

    text: str
    number: int
    where: str | None = None


def source_lines(text: str) -> list[Source]:
    r"""Return the lines of a graph's text that count.

    Example::

        >>> [line.text for line in source_lines("  a = f(x);  x = None\n\n  # note\n  return (a, b)")]
        ['a = f(x)', 'return a', 'return b']
    """
    wrapper = _WRAPPER.search(text)
    if wrapper is not None:  # kernels and what tries them out are compared elsewhere
        kept = "\n" * text.count("\n", 0, wrapper.end()) + text[wrapper.end() :]
        text = _KERNEL_CALL.sub(r"\1", _DELETION.sub("", _WRAPPER_TAIL.sub("", kept)))
    out: list[Source] = []
    where: str | None = None
    returning = False
    for number, raw in enumerate(_LIFE_END.sub("", text).split("\n"), 1):
        line = raw.strip()
        if not line:
            continue
        if line[0] == "#":
            found = _WHERE.match(line)
            where = _place(found) if found else None
            continue
        if returning:
            returning = line not in (")", "]")
            if returning:
                out.append(Source(f"return {line.rstrip(',')}", number, where))
        elif line in ("return (", "return ["):
            returning = True
        elif line.startswith(("def ", "return ", "class ")):
            out += [Source(part, number, where) for part in _split(line)]
        elif line != "):":
            out.append(Source(line.rstrip(",") if line.endswith('",') else line, number, where))
    return out


def _split(line: str) -> list[str]:
    if line.startswith("class "):
        return [] if _CLASS.match(line) else [line]  # what begins a graph is its forward
    if line.startswith("return "):
        several = _RETURN.match(line)
        return [f"return {part}" for part in several[1].split(", ") if part] if several else [line]
    signature = _SIGNATURE.match(line)
    if signature is None:
        return [GRAPH] if line == "def forward(" else [line]
    parameters = _PARAMETER.findall(signature[1])
    return [GRAPH, *(p if ":" in p else f'{p.lstrip("*")}: "?"' for p in parameters)]


def _place(found: re.Match[str]) -> str:
    file = found["file"].rsplit("/", 1)[-1]
    code = f": {found['code'].strip()}" if found["code"] else ""
    return f"{file}:{found['line']} in {found['name']}{code}"


_NAME = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)(?!\w)(?! = |=)")
_TARGET = re.compile(r'^(\w+(?:, \w+)*),?(?: ?: ?("[^"]*"|[\w.]+))?(?: = (.*))?$', re.DOTALL)
_SYMBOL = re.compile(r"(?:s|u|zuf|zf)\d+$")


@dataclass(slots=True)
class Line:
    """A line taken apart: what it defines, its type, and its expression with the names masked.

    `operands` are the names in the expression and the symbols in the type, in order. `op` is what
    the expression does, without its arguments.
    """

    source: Source
    defines: tuple[str, ...]
    type: str
    expression: str
    operands: tuple[str, ...]
    op: str


def defined_names(lines: list[Source]) -> set[str]:
    """Return every name that some line defines."""
    names: set[str] = set()
    for line in lines:
        target = _target(line.text)
        if target is not None:
            names.update(target[1].split(", "))
    return names


def take_apart(line: Source, defined: set[str]) -> Line:
    """Take a line apart; only names in `defined`, and symbols of shapes, count as names."""
    target = _target(line.text)
    if target is None:
        expression, operands = _mask(line.text, defined)
        return Line(line, (), "", expression, operands, expression.split("(")[0])
    defines = tuple(target[1].split(", "))
    type_, symbols = _mask(target[2] or "", frozenset())
    if target[3] is None:
        op = INPUT if "Sym(" not in type_ else "symbol"
        return Line(line, defines, type_, op, symbols, op)
    expression, operands = _mask(target[3], defined)
    return Line(line, defines, type_, expression, operands + symbols, expression.split("(")[0])


def _target(text: str) -> re.Match[str] | None:
    found = _TARGET.match(text)
    if found is None or (found[2] is None and found[3] is None) or text.startswith("return "):
        return None
    return found


def _mask(text: str, defined: set[str] | frozenset[str]) -> tuple[str, tuple[str, ...]]:
    parts = _NAME.split(text)
    names = []
    for at in range(1, len(parts), 2):
        name = parts[at]
        if name in defined or _SYMBOL.match(name):
            names.append(name)
            parts[at] = "%"
    return "".join(parts), tuple(names)
