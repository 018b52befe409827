"""Kernels and library calls out of C++ output code (`cpp_wrapper=True` and AOTInductor).

The text is what `torch/_inductor/codegen/cpp_wrapper_{cpu,gpu}.py` write, torch 2.9 to 2.13: plain C++, or a
Python module that holds it in `cpp_wrapper_src`, the Triton kernels in a compile-time tuning block.
"""

from __future__ import annotations

import re

from structdump.bundle.model import Kernel
from structdump.sources.kernel_sources import KernelSource, describe, find_definitions
from structdump.sources.provenance import Provenance, read_comments

_PYTHON = re.compile(r"^cpp_wrapper_src = ", re.MULTILINE)
_CPP = re.compile(r"^#include <torch/csrc/inductor/(?:cpp_wrapper|aoti_)", re.MULTILINE)
_PYTHON_CALL = re.compile(r"^(?:class Runner:|def call\(args)", re.MULTILINE)
_BODY = re.compile(
    r'^(?:extern "C"\s+)?(?:\w+\s+)*?void\s+(?P<name>\w*fused\w*|\w*kernel\w*)\([^;{]*\)\s*\{', re.MULTILINE
)
_CLOSE = re.compile(r"^\}", re.MULTILINE)
_INCLUDE = re.compile(r"^#include [^\n]*cpp_prefix[^\n]*\n", re.MULTILINE)
_DEVICES = "cpu|cuda|xpu|mps|mtia|meta"
_SHIM = re.compile(rf"\b(?P<shim>aoti_torch_(?:{_DEVICES})_(?P<op>\w+))\(")
_DISPATCH = re.compile(r'\baoti_torch_call_dispatcher\("(?P<op>[\w:]+)", "(?P<overload>\w*)"')
_TRITON = re.compile(
    r"\b(?:call_|launch_)?(?P<name>triton_\w+?)(?:_result)?\(|launchKernel\(\s*(?:kernels_?\.)?(?P<launched>\w+)"
)


def is_cpp_wrapper(source: str) -> bool:
    """Tell whether `source` is C++ output code, plain or held in a Python module."""
    return bool(_PYTHON.search(source) or (_CPP.search(source) and not _PYTHON_CALL.search(source)))


def parse_cpp_wrapper(source: str) -> tuple[list[KernelSource], list[Kernel]]:
    """Find the kernels with a body in `source`, and the library calls, with how often each is called.

    Library calls bear the name of their shim function (`aoti_torch_cpu_addmm_out`).

    Example::

        >>> parse_cpp_wrapper("aoti_torch_cpu_mm_out(a, b);")[1][0].name
        'aoti_torch_cpu_mm_out'
    """
    kernels = {d.item.kernel.name: d.item for d in find_definitions(source)}
    outside = source
    for match in list(_BODY.finditer(source)):
        close = _CLOSE.search(source, match.end())
        if close is None or match["name"] in kernels:
            continue
        start = match.start()
        include = list(_INCLUDE.finditer(source, max(0, start - 4096), start))
        start = include[-1].start() if include else start
        text = source[start : close.end()]
        kernels[match["name"]] = describe(match["name"], "cpp", text)
        outside = outside.replace(text, "")
    extern: dict[str, Kernel] = {}
    comments: list[str] = []
    for line in outside.splitlines():
        stripped = line.lstrip()
        if stripped.startswith("//"):
            comments.append(stripped)
            continue
        name = _called(stripped, kernels)
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
    return list(kernels.values()), list(extern.values())


def _called(line: str, kernels: dict[str, KernelSource]) -> str | None:
    if match := _SHIM.search(line):
        return match["shim"]
    if match := _DISPATCH.search(line):
        return f"{match['op']}.{match['overload']}".rstrip(".")
    if line.startswith(("extern ", "static ", "template", "void ")):
        return None
    head = re.match(r"(\w+)\(", line)
    if head and head[1] in kernels:
        return head[1]
    if match := _TRITON.search(line):
        name = match["name"] or match["launched"]
        return name if name in kernels else None
    return None
