"""Kernels as Inductor's Python output code defines them: `name = async_compile.triton('name', '''…''')`.

Facts about the text are from `torch/_inductor/codegen/{wrapper,triton,cpp,multi_kernel,pallas,mps,halide}.py`
and `torch/_inductor/async_compile.py`, torch 2.9 to 2.13.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.model import Kernel
from structdump.sources.provenance import Provenance, read_comments

LANGUAGES = {
    "triton": "python",
    "pallas": "python",
    "cutedsl": "python",
    "nv_universal_gemm": "python",
    "multi_kernel": "python",
    "cpp": "cpp",
    "halide": "cpp",
    "rocm": "cpp",
    "cuda": "cpp",
    "cutlass": "cpp",
    "xpu": "cpp",
    "metal": "metal",
}
_BACKENDS = {"cpp_pybinding": "cpp", "size_hint_multi_kernel": "multi_kernel", "mps": "metal"}
_START = re.compile(r"^(?P<name>\w+) = async_compile\.(?P<method>\w+)\(", re.MULTILINE)
_LITERAL = re.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<quotes>'''|\"\"\")")
_DECORATOR = re.compile(
    r"^@(?:triton_heuristics\.)?(?P<name>\w+)\((?P<args>.*?)\)\s*^@triton\.jit", re.MULTILINE | re.DOTALL
)
_META = ("kernel_name", "extra_launcher_args", "max_autotune", "coordinate_descent_tuning")
_TRITON_META = re.compile(r"^ *triton_meta=\{.*\},?[ ]*\n", re.MULTILINE)  # half of the text, and not needed


@dataclass(slots=True)
class KernelSource:
    """One kernel with its text.

    `source` is what was compiled, to the byte: the string given to `async_compile`. `path` is the
    file Inductor put it in, where its comment says so. `meta` holds what the decorator states beyond
    `kernel`: kernel name, grid type, launcher arguments, the number of configurations to choose from.
    `inferred` names the fields of `kernel` that are worked out rather than stated.
    """

    kernel: Kernel
    source: str
    language: str
    path: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    inferred: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Definition:
    """A kernel and the span of output code that defines it, its comments included."""

    start: int
    end: int
    item: KernelSource


def find_definitions(code: str) -> Iterator[Definition]:
    """Yield the kernels that `code` defines at top level, in order.

    A statement that does not end is skipped. Only the statements themselves are looked at, so the rest
    of `code` need not be valid Python.
    """
    position = 0
    while match := _START.search(code, position):
        position = match.end()
        found = _literal(code, position)
        if found is None:
            continue
        text, end = found
        end = _line_end(code, end)
        position = end
        start, comments = _comments_before(code, match.start())
        backend = _BACKENDS.get(match["method"], match["method"])
        item = describe(match["name"], backend, text, read_comments(comments))
        yield Definition(start, end, item)


def describe(name: str, backend: str, source: str, provenance: Provenance | None = None) -> KernelSource:
    """Build the record of one kernel from its text and from where it came.

    Example::

        >>> describe("cpp_fused_add_0", "cpp", "void kernel() {}").language
        'cpp'
    """
    origin = provenance or Provenance()
    kernel = Kernel(
        name=name,
        backend=backend,
        ops=origin.ops,
        nodes=origin.nodes,
        fragment=origin.fragment,
        stack=origin.stack,
        calls=0,
    )
    item = KernelSource(kernel, source, LANGUAGES.get(backend, "text"), origin.path)
    if item.language == "python":
        _read_decorator(item)
    return item


def _literal(code: str, position: int) -> tuple[str, int] | None:
    """Value and end of the first triple-quoted string of the call that starts at `position`.

    A call without one (multi_kernel) gives the text of the call itself.
    """
    line_end = _line_end(code, position)
    match = _LITERAL.search(code, position, line_end)
    if match is None:
        end = code.find("\n]", position) if code[position:line_end].rstrip().endswith("[") else line_end
        end = _line_end(code, end + 1) if end >= 0 else line_end
        return code[code.rfind("\n", 0, position) + 1 : end], end
    end = _closing(code, match.end(), match["quotes"])
    if end < 0:
        return None
    text = code[match.end() : end]
    if "\\" in text and "r" not in match["prefix"].lower():
        try:
            text = ast.literal_eval(code[match.start() : end + 3])
        except (SyntaxError, ValueError, MemoryError):
            return None
    return text, end + 3


def _closing(code: str, position: int, quotes: str) -> int:
    while (end := code.find(quotes, position)) >= 0:
        before = end
        while code[before - 1] == "\\":
            before -= 1
        if (end - before) % 2 == 0:
            return end
        position = end + 1
    return -1


def _line_end(code: str, position: int) -> int:
    end = code.find("\n", position)
    return len(code) if end < 0 else end


def _comments_before(code: str, position: int) -> tuple[int, list[str]]:
    lines: list[str] = []
    start = position
    while start > 0:
        line_start = code.rfind("\n", 0, start - 1) + 1
        if not code.startswith("#", line_start):
            break
        lines.append(code[line_start : start - 1])
        start = line_start
    lines.reverse()
    return start, lines


def _read_decorator(item: KernelSource) -> None:
    match = _DECORATOR.search(item.source)
    if match is None:
        return
    try:
        call = ast.parse(f"f({_TRITON_META.sub('', match['args'])})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not isinstance(call, ast.Call):
        return
    arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    inductor = _entries(arguments.get("inductor_meta"))
    kernel = item.kernel
    kernel.heuristic = match["name"]
    kernel.size_hints = _size_hints(_value(arguments.get("size_hints")))
    kernel.loads = _count(_value(inductor.get("num_load")))
    kernel.stores = _count(_value(inductor.get("num_store")))
    kernel.reductions = _count(_value(inductor.get("num_reduction")))
    kernel.grid = _text(_value(inductor.get("grid_type")))
    chosen = _value(inductor.get("config_args")) if match["name"] == "template" else None
    if isinstance(chosen, dict):
        chosen |= {key: _value(arguments.get(key)) for key in ("num_warps", "num_stages")}
        kernel.best_config = {
            str(k): v if isinstance(v, (int, float, str)) else repr(v)
            for k, v in chosen.items()
            if v is not None
        }
    configs = arguments.get("configs")
    item.meta = {key: value for key in _META if (value := _value(inductor.get(key))) is not None}
    if isinstance(configs, ast.List):
        item.meta["configs"] = len(configs.elts)
    if hint := _dotted_tail(arguments.get("reduction_hint")):
        item.meta["reduction_hint"] = hint


def _entries(node: ast.expr | None) -> dict[str, ast.expr]:
    """Entries of a dict display, not yet evaluated: most are not asked for, and some are no literals."""
    if not isinstance(node, ast.Dict):
        return {}
    pairs = zip(node.keys, node.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def _value(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _size_hints(value: Any) -> dict[str, int] | None:
    if isinstance(value, (list, tuple)):  # torch before 2.6 gives no names
        value = dict(zip("xyz", value, strict=False))
    if not isinstance(value, dict):
        return None
    return {str(key): hint for key, hint in value.items() if isinstance(hint, int)}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _dotted_tail(node: ast.expr | None) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else None
