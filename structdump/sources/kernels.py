"""Kernels, their provenance and their number of calls out of Inductor's output code. Pure; no torch.

::

    code = parse_output_code(text)
    for item in code.kernels:
        print(item.kernel.name, item.kernel.backend, item.kernel.calls, len(item.source))
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from structdump.bundle.model import Kernel
from structdump.sources.cpp_wrapper import is_cpp_wrapper, parse_cpp_wrapper
from structdump.sources.kernel_sources import KernelSource, find_definitions
from structdump.sources.provenance import Provenance, aten_ops, known_ops, ops_from_name, read_comments

__all__ = ["KernelSource", "ModuleRole", "OutputCode", "module_role", "parse_output_code", "read_aot_id"]

ModuleRole = Literal["output_code", "kernel", "candidate", "benchmark"]

_AOT_ID = re.compile(r"^# AOT ID: \['?([^'\]\n]*)'?\]", re.MULTILINE)
_RUNS = re.compile(r"^(?:async_compile = |class Runner:|def call\(args)", re.MULTILINE)
_TAIL = re.compile(r"^(?:def get_args\(|def benchmark_compiled_module\(|if __name__ == )", re.MULTILINE)
# Lines that only manage memory or check arguments: two thirds of a call function, and never a kernel.
_CHORES = re.compile(
    r"^ +(?:del \w|assert_size_stride\(|assert_alignment\(|stream\d+ = |\w+ = empty_strided_\w+\().*\n",
    re.MULTILINE,
)
_EXTERN = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "_quantized.", "quantized.", "prims.")
_HELPERS = frozenset({"torch.ops.inductor._alloc_from_pool", "torch.ops.inductor._reinterpret_tensor"})
_CALL_LINE = re.compile(r"^ +(?:[\w, ()]+ = )?(?P<name>[A-Za-z_][\w.]*)\(", re.MULTILINE)


@dataclass(slots=True)
class OutputCode:
    """What one output code runs.

    `kernels` are those it defines, in order; `extern` the library calls (`extern_kernels.mm`,
    `torch.ops.aten.…`), one per name, with `calls`. `aot_id` is Inductor's name of the graph, such
    as `0_inference`. `problem` says why the calls had to be found by pattern, or is None.
    """

    kernels: list[KernelSource] = field(default_factory=list)
    extern: list[Kernel] = field(default_factory=list)
    aot_id: str | None = None
    language: str = "python"
    problem: str | None = None


@dataclass(slots=True)
class _Call:
    name: str
    line: int
    arguments: list[str] = field(default_factory=list)
    grid: str | None = None


def parse_output_code(source: str, known: Mapping[str, str] | None = None) -> OutputCode:
    r"""Find every kernel that Inductor's output code `source` defines, and every call it makes.

    Works on Python wrappers, on C++ wrappers (`cpp_wrapper=True`, AOTInductor) and on text that is
    neither, which gives an empty result with a `problem`; it never raises. C++ kernels have no comment
    of their own: their ops are cut from their names with the ops that `source` and `known` (bare name
    to whole name) speak of, and marked as inferred.

    Example::

        >>> code = parse_output_code("def call(args):\n    extern_kernels.mm(a, b, out=c)\n")
        >>> [(k.name, k.calls) for k in code.extern]
        [('extern_kernels.mm', 1)]
    """
    code = OutputCode(aot_id=read_aot_id(source))
    if is_cpp_wrapper(source):
        code.language = "cpp"
        code.kernels, code.extern = parse_cpp_wrapper(source)
        _infer_ops(code, source, known or {})
        return code
    tail = _TAIL.search(source)
    body = source[: tail.start()] if tail else source
    rest: list[str] = []
    position = 0
    found: dict[str, KernelSource] = {}
    for definition in find_definitions(body):
        rest.append(body[position : definition.start])
        position = definition.end
        found[definition.item.kernel.name] = definition.item  # the tuning block on top has them as well
    code.kernels = list(found.values())
    rest.append(body[position:])
    reduced = _CHORES.sub("", "".join(rest))
    names = {item.kernel.name for item in code.kernels}
    try:
        calls = list(_calls(ast.parse(reduced), names))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        code.problem = f"{type(error).__name__}: {error}"
        calls = list(_calls_by_pattern(reduced, names))
    _count(code, calls, reduced.splitlines())
    _infer_ops(code, reduced, known or {})
    return code


def read_aot_id(source: str) -> str | None:
    """Return Inductor's name of the graph that an output code is of, such as `0_inference`."""
    match = _AOT_ID.search(source)
    return match[1] if match else None


def module_role(source: str) -> ModuleRole:
    r"""Tell what a module is that Inductor loads: an output code, a kernel, or one that is only timed.

    While a template's choices are tuned they bear a placeholder for a name
    (`torch/_inductor/select_algorithm.py`); what fusions are timed with has a `benchmark_all_configs`
    (`torch/_inductor/codegen/simd.py`). Torch 2.9 to 2.13.

    Example::

        >>> module_role("import triton\n@triton.jit\ndef triton_poi_fused_add_0(): pass")
        'kernel'
    """
    if "\ndef benchmark_all_configs(" in source:
        return "benchmark"
    if _RUNS.search(source) or is_cpp_wrapper(source):
        return "output_code"
    return "candidate" if "'Placeholder.DESCRIPTIVE_NAME'" in source else "kernel"


def _infer_ops(code: OutputCode, text: str, known: Mapping[str, str]) -> None:
    bare = [item for item in code.kernels if not item.kernel.ops and item.kernel.backend == "cpp"]
    ops = {**known, **known_ops(text)} if bare else {}
    every: dict[str, str] = {}
    for item in bare:
        name = item.kernel.name
        item.kernel.ops = ops_from_name(name, ops)
        if not item.kernel.ops:
            every = every or {**aten_ops(), **ops}
            item.kernel.ops = ops_from_name(name, every)
        item.inferred += ["kernel.ops"] * bool(item.kernel.ops)


def _count(code: OutputCode, calls: Iterable[_Call], lines: list[str]) -> None:
    kernels = {item.kernel.name: item for item in code.kernels}
    extern: dict[str, tuple[Kernel, Provenance]] = {}
    previous = 0
    for call in calls:
        origin = read_comments(line for line in lines[previous : call.line] if line.lstrip().startswith("#"))
        previous = call.line
        item = kernels.get(call.name)
        if item is None:
            kernel, known = extern.setdefault(
                call.name, (Kernel(name=call.name, backend="extern", calls=0), Provenance())
            )
        else:
            kernel, known = item.kernel, Provenance(item.kernel.ops, item.kernel.nodes)
            _set_grid(item, call)
        known.add(origin)
        kernel.calls += 1
        kernel.ops, kernel.nodes = known.ops, known.nodes
    for item in code.kernels:
        if item.kernel.backend == "multi_kernel":  # its variants are chosen among at run time
            for name in re.findall(r"\w+", item.source):
                if name in kernels and name != item.kernel.name:
                    kernels[name].kernel.calls += item.kernel.calls
    code.extern = [kernel for kernel, _ in extern.values()]


def _set_grid(item: KernelSource, call: _Call) -> None:
    if call.grid is not None:
        item.kernel.grid = call.grid
    elif item.kernel.grid == "FixedGrid":
        extra = item.meta.get("extra_launcher_args")
        if isinstance(extra, (list, tuple)) and extra:
            item.kernel.grid = f"({', '.join(call.arguments[-len(extra) :])})"


def _calls(tree: ast.Module, kernels: set[str]) -> Iterator[_Call]:
    for statement in _statements(tree.body):
        if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.AugAssign)):
            yield from _calls_of(statement.value, kernels)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        inner = getattr(statement, "body", None)
        if inner is None:
            yield statement
            continue
        yield from _statements(inner)
        for part in ("orelse", "finalbody"):
            yield from _statements(getattr(statement, part, []))


def _calls_of(value: ast.expr | None, kernels: set[str]) -> Iterator[_Call]:
    if not isinstance(value, ast.Call):
        return
    name = _dotted(value.func)
    owner = name.partition(".")[0]
    if owner in kernels:
        grid = next((ast.unparse(k.value) for k in value.keywords if k.arg == "grid"), None)
        positional = [ast.unparse(a) for a in value.args[-6:]]
        yield _Call(owner, value.lineno, positional, grid)
    elif name.startswith(_EXTERN) and name not in _HELPERS:
        yield _Call(name, value.lineno)
    else:
        for argument in value.args:
            yield from _calls_of(argument, kernels)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def _calls_by_pattern(text: str, kernels: set[str]) -> Iterator[_Call]:
    for match in _CALL_LINE.finditer(text):
        name = match["name"]
        owner = name.partition(".")[0]
        line = text.count("\n", 0, match.start()) + 1
        if owner in kernels:
            yield _Call(owner, line)
        elif name.startswith(_EXTERN) and name not in _HELPERS:
            yield _Call(name, line)
