"""A printed FX graph as Python that can run again: a module, and inputs like those it was compiled for."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from structdump.errors import UsageError

#: `torch.dtype.abbr` of torch 2.13 (torch/utils/_dtype_abbrs.py), for what inputs can be made of.
DTYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "b8": "bool",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c32": "complex32", "c64": "complex64", "c128": "complex128",
    "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fnx2": "float4_e2m1fn_x2",
}  # fmt: skip
#: Functions in symbolic sizes (torch/utils/_sympy/functions.py), as Python.
FUNCTIONS = {
    "Max": "max",
    "Min": "min",
    "FloorDiv": "lambda a, b: a // b",
    "CleanDiv": "lambda a, b: a // b",
    "CeilDiv": "lambda a, b: -(-a // b)",
    "Mod": "lambda a, b: a % b",
    "PythonMod": "lambda a, b: a % b",
    "ModularIndexing": "lambda a, b, c: a // b % c",
    "IntTrueDiv": "lambda a, b: a / b",
    "TruncToInt": "int",
    "Identity": "lambda a: a",
}
_TYPE = re.compile(r"([a-z]\w*)\[([^\[\]]*)\](?:\[([^\[\]]*)\])?([a-z]+(?::\d+)?)?")
_DEVICE = re.compile(r'\]([a-z]+(?::\d+)?)"')
_SYMBOL = re.compile(r"(?:s|u|f|zf|zuf)\d+")
_CLASS = re.compile(r"^class [^\n(]*\(", re.MULTILINE)
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Call, ast.Load, ast.Tuple,
    ast.operator, ast.unaryop,
)  # fmt: skip


@dataclass(slots=True)
class Runnable:
    """A graph as Python: the class `Repro`, and what makes its inputs.

    `inputs` are pairs of a name and an expression, `constants` and `modules` what the class needs as
    attributes, by dotted path. `symbols` are the sizes that the expressions leave open, `functions`
    those of `FUNCTIONS` that they call.
    """

    code: str
    inputs: list[tuple[str, str]] = field(default_factory=list)
    constants: list[tuple[str, str]] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)


def runnable(text: str) -> Runnable:
    """Read a graph as `print_readable` prints it (torch/fx/graph_module.py).

    Raises UsageError, saying why, for a graph that cannot be rebuilt from its text: no Python, inputs
    without a type, modules or constants that stand elsewhere.

    Example::

        >>> text = '''class M(torch.nn.Module):
        ...     def forward(self, x: "f32[s0, 4][4, 1]cpu"):
        ...         return (torch.ops.aten.sin.default(x),)
        ... '''
        >>> runnable(text).inputs
        [('x', "rand_strided((s0, 4,), (4, 1,), torch.float32, 'cpu')")]
    """
    start = _CLASS.search(text)
    if start is None:
        raise UsageError("the graph's text holds no module")
    code = "class Repro(" + text[start.end() :]
    tree = parsed(code, "the graph's text")
    top = tree.body[0]
    if not isinstance(top, ast.ClassDef):  # cannot be: the text begins with "class Repro("
        raise UsageError("the graph's text holds no module")
    code = "\n".join(code.split("\n")[: top.end_lineno])
    device = _DEVICE.search(text)
    reader = _Reader(Runnable(textwrap.dedent(code)), device[1] if device else "cpu")
    reader.read(top, ())
    return reader.out


def parsed(code: str, what: str) -> ast.Module:
    """Parse Python from a bundle; UsageError names the line at which it is none."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise UsageError(f"{what} is no Python: line {error.lineno}, {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{what} is no Python: {error or type(error).__name__}") from None


class _Reader:
    def __init__(self, out: Runnable, device: str):
        self.out, self.device = out, device

    def read(self, module: ast.ClassDef, path: tuple[str, ...]) -> None:
        inner = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        forward = next(
            (n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None
        )
        if forward is None:
            raise UsageError("the graph's text holds a module without a forward")
        if not path:
            self.out.inputs = list(self._inputs(forward))
        known: dict[str, str | None] = dict.fromkeys(inner)
        for node in ast.walk(forward):
            if isinstance(node, ast.AnnAssign) and (name := _of_self(node.value)) and name not in known:
                known[name] = self._value(name, _annotation(node.annotation))
        for node in ast.walk(forward):
            name = _of_self(node) if isinstance(node, ast.Attribute) else None
            if name is not None and name not in known:
                raise UsageError(f"the graph uses self.{name}, whose content or type its text does not tell")
        self.out.constants += [(".".join((*path, n)), value) for n, value in known.items() if value]
        for name, node in inner.items():
            self.out.modules.append(".".join((*path, name)))
            self.read(node, (*path, name))

    def _inputs(self, forward: ast.FunctionDef) -> Iterator[tuple[str, str]]:
        arguments = forward.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise UsageError("the graph takes a number of inputs that its text does not tell")
        used = {n.id for part in forward.body for n in ast.walk(part) if isinstance(n, ast.Name)}
        for argument in [*arguments.posonlyargs, *arguments.args][1:]:
            if argument.annotation is None and argument.arg not in used:
                yield argument.arg, "None"
                continue
            yield argument.arg, self._value(argument.arg, _annotation(argument.annotation))

    def _value(self, name: str, annotation: str | None) -> str:
        """Return an expression for a value of this type: `f32[2, s0][s0, 1]cpu` or `Sym(2*s0)`."""
        if annotation is not None and annotation.startswith("Sym(") and annotation.endswith(")"):
            return self._sizes(name, annotation[4:-1])
        found = _TYPE.fullmatch(annotation or "")
        if found is None or found[1] not in DTYPES:
            raise UsageError(f"the type of {name} is {annotation!r}, of which no value can be made")
        size = self._sizes(name, found[2], several=True)
        dtype, device = f"torch.{DTYPES[found[1]]}", repr(found[4] or self.device)
        if found[3] is None:
            return f"rand_strided({size}, contiguous({size}), {dtype}, {device})"
        return f"rand_strided({size}, {self._sizes(name, found[3], several=True)}, {dtype}, {device})"

    def _sizes(self, name: str, text: str, *, several: bool = False) -> str:
        """Return sizes as an expression, once it is sure that they are arithmetic and nothing else."""
        expression = f"({text.strip()},)" if several and text.strip() else "()" if several else text.strip()
        try:
            tree = ast.parse(expression, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        for node in ast.walk(tree) if tree else ():
            if not isinstance(node, _ARITHMETIC):
                tree = None
                break
            if isinstance(node, ast.Name):
                if node.id in FUNCTIONS:
                    _add(self.out.functions, node.id)
                elif _SYMBOL.fullmatch(node.id):
                    _add(self.out.symbols, node.id)
                else:
                    tree = None
                    break
        if tree is None:
            raise UsageError(f"the size of {name} is {text!r}, which cannot be computed")
        return expression


def _of_self(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _annotation(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
