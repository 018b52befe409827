"""A printed FX graph, or the wrapper that calls its kernels, as lines that can be compared.

What does not count is taken out: comments, and the `;  a = None` that only ends a value's life.
Signatures and returned tuples are split, one value a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from structdump.analyze.canon import plain

_TUNING = re.compile(r'^r?"""\nCompile-time auto-tuning block:.*?^"""$', re.DOTALL | re.MULTILINE)
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


_KEYWORDS = ("def ", "return ", "class ", "import ", "from ")
INPUT = "input"
GRAPH = "def forward"  # the line that begins a graph


class Source(NamedTuple):
    """A line as it counts, its number in the printed graph (from 1), and the comment above it."""

    text: str
    number: int
    comment: str = ""

    @property
    def where(self) -> str | None:
        """The Python line it comes from: `train.py:24 in forward: x = x + 1`, or None."""
        found = _WHERE.match(self.comment)
        if found is None:
            return None
        code = f": {found['code'].strip()}" if found["code"] else ""
        return f"{found['file'].rsplit('/', 1)[-1]}:{found['line']} in {found['name']}{code}"


def source_lines(text: str) -> list[Source]:
    r"""Return the lines of a graph's text that count.

    Example::

        >>> [line.text for line in source_lines("  a = f(x);  x = None\n\n  # note\n  return (a, b)")]
        ['a = f(x)', 'return a', 'return b']
    """
    if "async_compile" in text:
        text = _TUNING.sub(lambda m: "\n" * m[0].count("\n"), text)
    wrapper = _WRAPPER.search(text) if "async_compile" in text else None
    if wrapper is not None:  # kernels and what tries them out are compared elsewhere
        kept = "\n" * text.count("\n", 0, wrapper.end()) + text[wrapper.end() :]
        text = _KERNEL_CALL.sub(r"\1", _DELETION.sub("", _WRAPPER_TAIL.sub("", kept)))
    out: list[Source] = []
    comment = ""
    returning = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line:
            continue
        if line[0] == "#":
            comment = line if line.startswith("# File: ") else ""
            continue
        line = _without_ends(line)
        if returning:
            returning = line not in (")", "]")
            if returning:
                out.append(Source(f"return {line.rstrip(',')}", number, comment))
        elif line.startswith(_KEYWORDS):
            returning = line in ("return (", "return [")
            out += [Source(part, number, comment) for part in _split(line)]
        elif line not in ("self,", "):"):
            out.append(Source(line[:-1] if line.endswith('",') else line, number, comment))
    return out


def _without_ends(line: str) -> str:
    """Take away the comment at the end, and the `;  a = b = None` that ends the life of values."""
    at = line.find("  # ")
    if at > 0 and '"' not in line[at:] and "'" not in line[at:]:
        line = line[:at]
    if line.endswith(" = None"):
        at = line.rfind(";  ")
        if at > 0:
            line = line[:at]
    return plain(line) if "/" in line or "<" in line else line


def _split(line: str) -> list[str]:
    if line.startswith(("import ", "from ")) or line in ("return (", "return ["):
        return []  # depyf makes a module of each graph
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
        names.update(_parts(line.text)[0])
    return names


def take_apart(line: Source, defined: set[str]) -> Line:
    """Take a line apart; only names in `defined`, and symbols of shapes, count as names."""
    defines, type_parts, parts = _parts(line.text)
    type_, symbols = _mask(type_parts, frozenset())
    if parts is None:
        op = INPUT if "Sym(" not in type_ else "symbol"
        return Line(line, defines, type_, op, symbols, op)
    expression, operands = _mask(parts, defined)
    return Line(line, defines, type_, expression, operands + symbols, expression.split("(", 1)[0])


Parts = tuple[str, ...]


@lru_cache(maxsize=1 << 14)  # the stages of one compile share most of their lines
def _parts(text: str) -> tuple[Parts, Parts, Parts | None]:
    """Split a line into the names it defines, its type and its expression; names stand at odd places."""
    target = _target(text)
    if target is None:
        return (), (), tuple(_NAME.split(text))
    type_ = tuple(_NAME.split(target[2])) if target[2] else ()
    return tuple(target[1].split(", ")), type_, None if target[3] is None else tuple(_NAME.split(target[3]))


def _target(text: str) -> re.Match[str] | None:
    found = _TARGET.match(text)
    if found is None or (found[2] is None and found[3] is None) or text.startswith("return "):
        return None
    return found


def _mask(parts: Parts, defined: set[str] | frozenset[str]) -> tuple[str, Parts]:
    if len(parts) < 2:
        return "".join(parts), ()
    names = []
    masked = list(parts)
    for at in range(1, len(parts), 2):
        name = parts[at]
        if name in defined or _SYMBOL.match(name):
            names.append(name)
            masked[at] = "%"
    return "".join(masked), tuple(names)
