"""The part of an output code that one kernel's first call depends on, as a program of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from structdump.analyze.repro_graph import parsed
from structdump.analyze.repro_script import sizes
from structdump.errors import UsageError

_DEEPEST = 200  # buffers made from buffers; real code has fewer than ten
#: What makes nothing but views and numbers, so that its line can stand as it is.
_PURE = frozenset({"reinterpret_tensor", "alloc_from_pool", "get_raw_stream", "rand_strided", "max", "min"})
#: C++ and Triton types of a kernel's arguments (torch/_inductor/codegen/cpp_utils.py, triton_utils.py).
DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "at::Half": "float16",
    "at::BFloat16": "bfloat16", "bfloat16": "bfloat16", "int8_t": "int8", "int16_t": "int16",
    "int32_t": "int32", "int64_t": "int64", "uint8_t": "uint8", "uint16_t": "uint16", "bool": "bool",
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip


class _Definition(NamedTuple):
    """A value's assignment, and where it stands among the statements of its function."""

    value: ast.expr
    function: list[ast.stmt]
    at: int


class Slice:
    """What one kernel's first call depends on: its source, and the lines that make its buffers.

    Raises UsageError where the output code does not tell.

    Example: `Slice(code, "cpp_fused_relu_0", {}).script()`
    """

    def __init__(self, code: str, name: str, symbols: Mapping[str, Any]):
        self.name, self.symbols = name, symbols
        self.lines = code.split("\n")
        self.tree = parsed(code, "the output code")
        self.functions = [list(_flat(n.body)) for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]
        self.function, self.at, self.call = self._call()
        self.source = self._source()
        self.types = _types(self.source)
        stated = re.search(r"device_str='(\w+)'\)$", ast.unparse(self.source))
        self.device = stated[1] if stated else "cpu"
        self.out: list[str] = []
        self.done: set[str] = set()
        self.became: dict[str, str] = {}  # a buffer, and the first view of it

    def script(self) -> str:
        """Return the program."""
        for place in (*self.call.args, *(k.value for k in self.call.keywords)):
            self._need(place, self.function, self.at, 0)
        device = next(
            (ast.unparse(s) for s in self.function[: self.at] if _called(s).endswith(".set_device")), None
        )
        body = ([device] if device else []) + self.out + [ast.unparse(self.call)]
        if device:
            body.append("torch.accelerator.synchronize()")
        body.append(f'print("called {self.name}")')
        return (
            "".join(f"{line}\n" for line in self._prelude())
            + "from torch._dynamo.testing import rand_strided\n\n"
            + "\n".join(self.lines[self.source.lineno - 1 : self.source.end_lineno])
            + "\nasync_compile.wait(globals())\n\n\ndef main():\n    torch.manual_seed(0)\n"
            + "".join(f"    {line}\n" for line in body)
            + '\n\nif __name__ == "__main__":\n    main()\n'
        )

    def _source(self) -> ast.Assign:
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and _target(node) == self.name:
                return node
        raise UsageError(f"the output code does not define {self.name}")

    def _call(self) -> tuple[list[ast.stmt], int, ast.Call]:
        for function in self.functions:
            for at, node in enumerate(function):
                if isinstance(node, ast.Expr) and _called(node) in (self.name, f"{self.name}.run"):
                    assert isinstance(node.value, ast.Call)  # noqa: S101  # _called has seen it
                    return function, at, node.value
        raise UsageError(f"the output code does not call {self.name}")

    def _prelude(self) -> Iterator[str]:
        """Yield the imports and the short names that the output code begins with."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                return  # `class Runner`: what comes after it calls the kernels
            line = ast.unparse(node) if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign)) else ""
            if line and " = async_compile." not in line:
                yield line

    def _need(self, value: ast.expr, function: list[ast.stmt], before: int, depth: int) -> None:
        """Put what an expression needs into the script, deepest first."""
        if depth > _DEEPEST:
            raise UsageError(f"the buffers of {self.name} depend on one another too deeply")
        called = {id(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)}
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and id(node) not in called and node.id not in self.done:
                if node.id in ("torch", "math", "device", "inf", "nan"):
                    continue
                self._define(node.id, function, before, depth)
                self.done.add(node.id)

    def _define(self, name: str, function: list[ast.stmt], before: int, depth: int) -> None:
        found = self._definition(name, function, before)
        stated = self._stated(name)
        if found is not None:
            allocated = _allocation(found.value)
            if allocated is not None:
                size, stride, dtype, device = allocated
                self._need(ast.Tuple([size, stride], ast.Load()), found.function, found.at, depth + 1)
                self._put(name, size, stride, ast.unparse(dtype), device)
                return
            # `buf2 = buf1`, where an operator made buf1: the size is stated of buf2.
            if _pure(found.value) and not (isinstance(found.value, ast.Name) and stated):
                for node in ast.walk(found.value):
                    if isinstance(node, ast.Name):
                        self.became.setdefault(node.id, name)
                self._need(found.value, found.function, found.at, depth + 1)
                self.out.append(f"{name} = {ast.unparse(found.value)}")
                return
        if stated is not None:
            size, stride = stated
            self._need(ast.Tuple([size, stride], ast.Load()), function, before, depth + 1)
            self._put(name, size, stride, self._dtype(name), None)
            return
        if name in self.symbols or re.fullmatch(r"s\d+", name):
            self.out += sizes([name], self.symbols)
            return
        raise UsageError(f"the output code does not tell how large {name} is, which {self.name} is given")

    def _definition(self, name: str, function: list[ast.stmt], before: int) -> _Definition | None:
        """Find the last assignment before a place, else the one in `get_args` or another function."""
        for at in range(before - 1, -1, -1):
            node = function[at]
            if isinstance(node, ast.Assign) and _target(node) == name:
                return _Definition(node.value, function, at)
        others = [f for f in self.functions if f is not function]
        for other in sorted(others, key=lambda f: not any("rand_strided" in _imported(s) for s in f)):
            for at, node in enumerate(other):
                if isinstance(node, ast.Assign) and _target(node) == name:
                    return _Definition(node.value, other, at)
        return None

    def _stated(self, name: str) -> tuple[ast.expr, ast.expr] | None:
        """Find size and stride in `assert_size_stride(name, size, stride)`."""
        for function in self.functions:
            for node in function:
                if _called(node) == "assert_size_stride" and isinstance(node, ast.Expr):
                    call = node.value
                    assert isinstance(call, ast.Call)  # noqa: S101  # _called has seen it
                    if len(call.args) >= 3 and ast.unparse(call.args[0]) == name:
                        return call.args[1], call.args[2]
        return None

    def _put(self, name: str, size: ast.expr, stride: ast.expr, dtype: str, device: str | None) -> None:
        place = self._device(device or self.device)
        self.out.append(
            f"{name} = rand_strided({ast.unparse(size)}, {ast.unparse(stride)}, {dtype}, {place!r})"
        )

    def _device(self, kind: str) -> str:
        """Return a device with its index, which is that of the guard around the call."""
        if kind == "cpu":
            return kind
        found = next((s for s in self.function if _called(s).endswith(f"{kind}.set_device")), None)
        index = re.search(r"\((\d+)\)", ast.unparse(found)) if found else None
        return f"{kind}:{index[1] if index else 0}"

    def _dtype(self, name: str) -> str:
        """Return the dtype that the kernel expects at the first argument made from `name`."""
        names = [name]
        while (view := self.became.get(names[-1])) is not None and view not in names:
            names.append(view)
        for kind, given in zip(self.types, self.call.args, strict=False):
            if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(given)):
                bare = kind.replace("const", "").replace("*", "").strip()
                if bare in DTYPES:
                    return f"torch.{DTYPES[bare]}"
        raise UsageError(f"the output code does not tell the dtype of {name}, which {self.name} is given")


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        for inner in ("body", "orelse"):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from _flat(getattr(node, inner, []))


def _target(node: ast.Assign) -> str | None:
    first = node.targets[0]
    return first.id if isinstance(first, ast.Name) else None


def _called(node: ast.stmt) -> str:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return ""
    return ast.unparse(node.value.func)


def _imported(node: ast.stmt) -> str:
    return ast.unparse(node) if isinstance(node, ast.ImportFrom) else ""


def _allocation(value: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr, str] | None:
    """Read `empty_strided_cuda(size, stride, dtype)`; device `cuda` is that of the guard around it."""
    if not isinstance(value, ast.Call) or len(value.args) < 3:
        return None
    found = re.fullmatch(r"empty_strided_(cpu|cuda|xpu|mtia)(?:_pinned)?", ast.unparse(value.func))
    return (value.args[0], value.args[1], value.args[2], found[1]) if found else None


def _pure(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name not in _PURE and not name.startswith("math."):
                return False
        elif isinstance(node, (ast.Subscript, ast.Await, ast.Yield, ast.NamedExpr)):
            return False
    return True


def _types(source: ast.Assign) -> list[str]:
    """Return the types of a kernel's arguments: of C++ from the call, of Triton from the signature."""
    call = source.value
    arguments = call.args if isinstance(call, ast.Call) else []
    if arguments and isinstance(arguments[0], ast.List):
        return [str(e.value) for e in arguments[0].elts if isinstance(e, ast.Constant)]
    text = next((str(a.value) for a in arguments[1:] if isinstance(a, ast.Constant)), "")
    return list(signature(text).values())


def signature(triton: str) -> dict[str, str]:
    """Return the types of a Triton kernel's arguments by name, as its source states them."""
    found = re.search(r"'signature': (\{[^{}]*\})", triton)
    try:
        value = ast.literal_eval(found[1]) if found else {}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = {}
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}
