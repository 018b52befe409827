"""Where a kernel comes from, read out of the comments that Inductor writes beside it.

The comments are those of `torch._inductor.utils.get_kernel_metadata` (torch 2.6 to 2.13), before a
kernel's definition and before each call of it, with `#` in Python and `//` in C++ code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from structdump.bundle.model import SourceFrame

_SORTED = re.compile(
    r"(?:Topologically Sorted|Unsorted) Source Nodes: \[(?P<nodes>[^\n]*?)\], "
    r"Original ATen: \[(?P<ops>[^\n]*)\]"
)
_FUSED = re.compile(r"[a-z]+(?:_[a-z]{3})?_fused_(?P<ops>\w+?)(?:_\d+)?")
_OP = re.compile(r"\b(?:torch\.ops\.)?(?P<space>aten|prims|(?<=torch\.ops\.)\w+)\.(?P<op>[A-Za-z_]\w*)")
_FRAME = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>[^\n]+?)(?:, code: (?P<code>[^\n]*))?$'
)
_FILE = re.compile(r"# File: (?P<file>.+?):(?P<line>\d{1,9}) in (?P<name>[^,]+)(?:, code: (?P<code>.*))?")
_NODE = re.compile(r"(\w+)(?:: \"[^\"]*\")? = ")
_FRAGMENT_NODE = re.compile(r"^%(\w+) .*= call_function\[", re.MULTILINE)
MAX_CUTS = 2000
"""Positions tried in one kernel name before it counts as one that cannot be cut."""


@dataclass(slots=True)
class Provenance:
    """What the comments say: ATen ops, nodes of the traced program, graph fragment, kernel file."""

    ops: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    fragment: str | None = None
    path: str | None = None
    stack: list[SourceFrame] = field(default_factory=list)

    def add(self, other: Provenance) -> None:
        """Take over what `other` knows and this does not."""
        self.ops.extend(op for op in other.ops if op not in self.ops)
        self.nodes.extend(node for node in other.nodes if node not in self.nodes)
        self.fragment = self.fragment or other.fragment
        self.path = self.path or other.path
        self.stack.extend(frame for frame in other.stack if frame not in self.stack)


def read_comments(lines: Iterable[str]) -> Provenance:
    """Read the comment lines that stand together before one definition or one call.

    `lines` keep their comment marker. A block without provenance gives an empty `Provenance`.

    Example::

        >>> p = read_comments(["# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add]"])
        >>> p.nodes, p.ops
        (['x', 'y'], ['aten.add'])
    """
    found = Provenance()
    fragment: list[str] | None = None
    for line in lines:
        text = line.strip().lstrip("#/")
        text = text.removeprefix(" ")
        if "Source Nodes: [" in text and (match := _SORTED.search(text)):
            fragment = None
            found.nodes.extend(_split(match["nodes"]))
            found.ops.extend(_split(match["ops"]))
        elif text.startswith("kernel path: "):
            found.path = text.removeprefix("kernel path: ").strip()
        elif text.startswith("Source node to ATen node mapping:"):
            fragment = None
        elif text.startswith("Graph fragment:"):
            fragment = []
        elif 'File "' in text and (match := _FRAME.search(text)):
            found.stack.append(
                SourceFrame(
                    file=match["file"], line=int(match["line"]), name=match["name"], code=match["code"]
                )
            )
        elif fragment is not None and text.startswith("  "):
            fragment.append(text[2:])
            found.fragment = "\n".join(fragment)
    return found


def source_lines(graph: str) -> dict[str, SourceFrame]:
    r"""Map the nodes of a printed graph to the Python lines that its `# File:` comments name.

    Example::

        >>> text = '        # File: m.py:3 in forward, code: x + 1\n        add: "f32[2]" = x + 1'
        >>> source_lines(text)["add"].line
        3
    """
    found: dict[str, SourceFrame] = {}
    frame: SourceFrame | None = None
    for line in graph.splitlines():
        stripped = line.strip()
        if stripped.startswith("# File: "):
            match = _FILE.fullmatch(stripped)
            frame = None
            if match:
                name, code = match["name"], match["code"]
                frame = SourceFrame(file=match["file"], line=int(match["line"]), name=name, code=code)
        elif not stripped:
            frame = None
        elif frame is not None and (node := _NODE.match(stripped)):
            found[node[1]] = frame
    return found


def lines_of(fragment: str, lines: Mapping[str, SourceFrame]) -> list[SourceFrame]:
    """Return the Python lines of the nodes in a kernel's graph fragment, each once, in order."""
    frames = (lines[node] for node in _FRAGMENT_NODE.findall(fragment) if node in lines)
    return list({(frame.file, frame.line): frame for frame in frames}.values())


def ops_from_name(name: str, known: Mapping[str, str]) -> list[str]:
    """Take the ATen ops out of the name of a fused kernel, for kernels that have no comment (C++ ones).

    Inductor joins the names of the ops, sorted, with underscores, which op names hold themselves
    (`get_fused_kernel_name`, torch/_inductor/utils.py). `known` maps bare op names to whole ones.
    Returns an empty list where the name cannot be cut into known ops.

    Example::

        >>> ops_from_name("cpp_fused__softmax_add_0", {"add": "aten.add", "_softmax": "aten._softmax"})
        ['aten._softmax', 'aten.add']
    """
    match = _FUSED.fullmatch(name[:1000])
    if match is None:
        return []
    ops = match["ops"]
    ends = [n for n, letter in enumerate(ops) if letter == "_"] + [len(ops)]
    starts = [0, *(n + 1 for n in ends[:-1])]
    # Far fewer than there are ops: what stands between any two underscores.
    parts = {ops[start:end] for start in starts for end in ends if start < end}
    possible = tuple(sorted(parts & known.keys()))
    return [known[op] for op in _cut(ops, 0, "", possible, {}) or []]


@functools.cache
def aten_ops() -> dict[str, str]:
    """Return ATen's ops by their bare names, for `ops_from_name`: what torch decomposed is in no graph."""
    text = files("structdump.sources").joinpath("aten_ops.txt").read_text(encoding="utf-8")
    return {name: f"aten.{name}" for name in text.splitlines() if not name.startswith("#")}


def known_ops(text: str) -> dict[str, str]:
    """Collect the ops that `text` (output code, a graph) names, for `ops_from_name`."""
    names = {op for match in _SORTED.finditer(text) for op in _split(match["ops"])}
    names.update(f"{match['space']}.{match['op']}" for match in _OP.finditer(text))
    # ATen last, so that it wins over an op of the same name elsewhere
    return {n.rpartition(".")[2]: n for n in sorted(names, key=lambda n: (n.startswith("aten."), n))}


def _cut(
    name: str, start: int, last: str, known: tuple[str, ...], memo: dict[tuple[int, str], list[str] | None]
) -> list[str] | None:
    if start >= len(name):
        return []
    if (start, last) in memo or len(memo) > MAX_CUTS:
        return memo.get((start, last))
    best: list[str] | None = None
    for op in known:
        end = start + len(op)
        if op > last and name.startswith(op, start) and name[end : end + 1] in ("", "_"):
            rest = _cut(name, end + 1, op, known, memo)
            if rest is not None and (best is None or len(rest) + 1 < len(best)):
                best = [op, *rest]
    memo[start, last] = best
    return best


def _split(names: str) -> list[str]:
    return list(dict.fromkeys(name for name in names.split(", ") if name))
