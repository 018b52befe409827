"""Kernels and library calls out of C++ output code (`cpp_wrapper=True` and AOTInductor).

The text is what `torch/_inductor/codegen/cpp_wrapper_{cpu,gpu}.py` write, torch 2.9 to 2.13: plain C++, or a
Python module that holds it in `cpp_wrapper_src`, the Triton kernels in a compile-time tuning block.
AOTInductor puts C++ kernels in a file of their own and Triton kernels as comments into their launchers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from structdump.bundle.model import Kernel
from structdump.sources.kernel_sources import KernelSource, describe, find_definitions
from structdump.sources.provenance import Provenance, read_comments

_HELD = re.compile(r"^cpp_wrapper_src = ", re.MULTILINE)
_INCLUDE = re.compile(r"^#include <torch/csrc/inductor/", re.MULTILINE)
_PYTHON = re.compile(r"^(?:import \w|from \w|class Runner:|def call\(args)", re.MULTILINE)
_FUNCTION = re.compile(
    r'^extern "C"\s+(?:__\w+(?:\(\S*\))?\s+)?void\s+(?P<name>\w+)\([^;{]*\)\s*(?P<end>[;{])', re.MULTILINE
)
_CLOSE = re.compile(r"^\}", re.MULTILINE)
_PREFIX = re.compile(r"^#include [^\n]*\bcpp_prefix\b[^\n]*\n", re.MULTILINE)
_EMBEDDED = re.compile(
    r"^(?P<indent>[ \t]*)async_compile\.triton\('(?P<name>\w+)', '''\n(?P<text>.*?)^[ \t]*'''",
    re.MULTILINE | re.DOTALL,
)
_LAUNCHER = re.compile(r"^static [^\n]*?\bvoid call_(?P<name>\w+)\(", re.MULTILINE)
_KERNEL_CALL = re.compile(r"(?:call_)?(?P<kernel>\w+)\(")
_EXTERN_CALL = re.compile(
    r"\b(?P<shim>aoti_torch_(?:cpu|cuda|xpu|mps|mtia|meta)_\w+|aoti_torch_proxy_executor_call_function)\("
    r'|\baoti_torch_call_dispatcher\("(?P<op>[\w:]+)", "(?P<overload>\w*)"'
    r"|PyObject_CallObject (?P<python>[\w.:]+) failed"
)
_DECLARES = ("extern ", "static ", "template", "void ", "inline ")


def is_cpp_wrapper(source: str) -> bool:
    """Tell whether `source` is C++ output code, plain or held in a Python module."""
    return bool(_HELD.search(source) or (_INCLUDE.search(source) and not _PYTHON.search(source)))


def parse_cpp_wrapper(source: str) -> tuple[list[KernelSource], list[Kernel]]:
    """Find the kernels in `source`, and the library calls, with how often each is called.

    A kernel that is only declared has an empty `source`. Library calls bear the name of their shim
    function (`aoti_torch_cpu_addmm_out`), or of the op where it is called by name.

    Example::

        >>> parse_cpp_wrapper("aoti_torch_cpu_mm_out(a, b);")[1][0].name
        'aoti_torch_cpu_mm_out'
    """
    kernels: dict[str, KernelSource] = {}
    outside: list[str] = []
    position = 0
    for start, end, item in sorted(_spans(source), key=lambda span: span[0]):
        if start < position:
            continue
        name = item.kernel.name
        if name not in kernels or not kernels[name].source:
            kernels[name] = item
        outside.append(source[position:start])
        position = end
    outside.append(source[position:])
    rest = "".join(outside)
    for match in _LAUNCHER.finditer(rest):
        kernels.setdefault(match["name"], describe(match["name"], _backend(match["name"]), ""))
    return list(kernels.values()), _count_calls(rest, kernels)


def _spans(source: str) -> Iterator[tuple[int, int, KernelSource]]:
    for definition in find_definitions(source):
        yield definition.start, definition.end, definition.item
    for match in _EMBEDDED.finditer(source):
        text = textwrap.dedent(match["text"])
        yield match.start(), match.end(), describe(match["name"], "triton", text)
    previous = 0
    for match in _FUNCTION.finditer(source):
        name = match["name"]
        if match["end"] == ";":
            yield match.start(), match.end(), describe(name, _backend(name), "")
            previous = match.end()
            continue
        close = _CLOSE.search(source, match.end())
        if close is None:
            continue
        before = list(_PREFIX.finditer(source, previous, match.start()))  # a template's helpers stand between
        start = before[-1].start() if before else match.start()
        yield start, close.end(), describe(name, _backend(name), source[start : close.end()])
        previous = close.end()


def _backend(name: str) -> str:
    return "triton" if name.startswith("triton_") else "cpp"


def _count_calls(code: str, kernels: dict[str, KernelSource]) -> list[Kernel]:
    extern: dict[str, Kernel] = {}
    comments: list[str] = []
    for line in code.splitlines():
        stripped = line.lstrip()
        if stripped.startswith("//"):
            comments.append(stripped)
            continue
        name = None if stripped.startswith(_DECLARES) else _called(stripped, kernels)
        if name is None:
            continue
        item = kernels.get(name)
        kernel = (
            item.kernel if item else extern.setdefault(name, Kernel(name=name, backend="extern", calls=0))
        )
        kernel.calls += 1
        known = Provenance(kernel.ops, kernel.nodes)
        known.add(read_comments(comments))
        kernel.ops, kernel.nodes = known.ops, known.nodes
        comments = []
    return list(extern.values())


def _called(line: str, kernels: dict[str, KernelSource]) -> str | None:
    head = _KERNEL_CALL.match(line)
    if head and head["kernel"] in kernels:
        return head["kernel"]
    match = _EXTERN_CALL.search(line)
    if match is None:
        return None
    if match["op"]:
        return f"{match['op']}.{match['overload']}".rstrip(".")
    return match["shim"] or match["python"]
