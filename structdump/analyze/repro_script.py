"""The parts that every repro script is put together from: header, settings, operators, all as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from structdump.analyze.environment_diff import concerns_compiling
from structdump.bundle.loaded import LoadedBundle

#: Namespaces of operators that torch registers by itself; others need somebody's import.
OWN_OPERATORS = frozenset(
    (
        "aten", "prims", "inductor", "higher_order", "rngprims", "debugprims", "quantized", "_quantized",
        "quantized_decomposed", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d",
        "symm_mem", "fsdp", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "profiler", "streams",
    )
)  # fmt: skip
_OPERATOR = re.compile(r"\btorch\.ops\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
_VARIABLE = re.compile(r"TORCH(?:INDUCTOR|DYNAMO|FUNCTORCH)_\w+")
_NOT_PORTABLE = re.compile(r"<[a-z]+(?:[_-][a-z]+)*-\d+>|^/|0x[0-9a-f]{6,}|^<")

_CONFIGURE = '''
def configure(module, values):
    """Set what this version of torch knows, and say what it does not."""
    module = importlib.import_module(module)
    for name, value in values.items():
        try:
            now = getattr(module, name)
            if isinstance(now, (tuple, set)) and isinstance(value, list):
                value = type(now)(value)
            takes = str(getattr(module._config.get(name), "value_type", ""))
            if now is None and isinstance(value, str) and "str" not in takes:
                raise ValueError("it was an object of the program")
            setattr(module, name, value)
        except Exception as error:
            print(f"not set: {module.__name__}.{name}: {error}", file=sys.stderr)


'''
_IMPORT = '''
def load(what):
    """Import a module, or run a file as one; it stays loaded, as what it registers must."""
    if not what.endswith(".py"):
        return importlib.import_module(what)
    spec = importlib.util.spec_from_file_location(f"structdump_import_{len(sys.modules)}", what)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


'''
_OPERATORS = """
missing = [f"{space}::{name}" for space, name in needed if not hasattr(getattr(torch.ops, space), name)]
if missing:
    sys.exit(
        f"this graph uses operators that torch does not have by itself: {', '.join(missing)}; name what"
        " defines them: structdump repro --import MODULE_OR_FILE.py"
    )
"""


def header(title: str, bundle: LoadedBundle, facts: Iterable[str]) -> str:
    """Return the comment a script begins with. Nothing in it can end the comment.

    Example: `header("kernel k", bundle, ["its failure: ValueError"])`
    """
    versions = ", ".join(f"{k} {v}" for k, v in bundle.environment.versions.items() if v)
    lines = [
        f"Made by structdump from a bundle: {title}",
        "It holds code of the program that the bundle was made from, and running it runs that code:",
        "read it first if you do not trust whoever made the bundle.",
        "",
        f"The bundle: {versions or 'versions not known'}",
        *facts,
    ]
    # A coding of its own, as Python would take one from a name in the first two lines.
    return "# coding: utf-8\n" + "".join(f"# {comment(line)}".rstrip() + "\n" for line in lines)


def comment(text: str) -> str:
    r"""Return text that stays on its line, whatever it holds.

    Example::

        >>> comment("a\nimport os")
        'a\\nimport os'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def environment(bundle: LoadedBundle) -> str:
    """Return the lines that set environment variables, to stand before torch is imported."""
    out = "import os\n\n"
    out += 'os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # a cached result would hide a failure\n'
    for name, value in sorted(bundle.environment.variables.items()):
        if _VARIABLE.fullmatch(name) and concerns_compiling(name) and _settable(value):
            out += f"os.environ.setdefault({name!r}, {value!r})\n"
    return out


def imports(modules: Iterable[str]) -> str:
    """Return the lines that import what the user named, by module or by file."""
    named = [f"load({name!r})\n" for name in modules]
    return _IMPORT.lstrip("\n") + "".join(named) if named else ""


def settings(bundle: LoadedBundle) -> tuple[str, list[str]]:
    """Return the lines that set the torch configs that differ from their defaults, and what is left out.

    Left out are values that no text can give back: paths, and objects of the program.
    """
    calls, left_out = "", []
    for module, values in sorted(bundle.environment.configs.items()):
        kept: dict[str, Any] = {}
        for name, value in sorted(values.items()):
            if _settable(value):
                kept[name] = value
            else:
                left_out.append(f"{module}.{name}")
        if kept and re.fullmatch(r"torch(?:\.\w+)+", module):
            lines = "".join(f"        {k!r}: {v!r},\n" for k, v in kept.items())
            calls += f"configure(\n    {module!r},\n    {{\n{lines}    }},\n)\n"
    return (_CONFIGURE.lstrip("\n") + calls if calls else ""), left_out


def operators(text: str) -> str:
    """Return the lines that stop a script whose graph uses operators that are not registered."""
    names = sorted({m.groups() for m in _OPERATOR.finditer(text) if m[1] not in OWN_OPERATORS})
    return f"needed = {names!r}\n" + _OPERATORS.lstrip("\n") if names else ""


def sizes(symbols: Iterable[str], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per symbolic size: the hint it was compiled with, or one within its range.

    Example::

        >>> list(sizes(["s0"], {"s0": {"hint": "12"}}))
        ['s0 = 12']
    """
    for name in symbols:
        facts = known.get(name)
        facts = facts if isinstance(facts, Mapping) else {"hint": facts}
        hint = str(facts.get("hint"))
        if re.fullmatch(r"-?\d{1,18}(?:\.\d{1,18})?", hint):
            yield f"{name} = {hint}"
            continue
        lowest = re.match(r"\[(\d{1,18}),", str(facts.get("range")))
        yield f"{name} = {max(8, int(lowest[1])) if lowest else 8}  # the bundle gives no hint"


def _settable(value: Any) -> bool:
    """Tell whether `repr(value)` gives the value back, and it means the same on another machine."""
    if isinstance(value, str):
        return _NOT_PORTABLE.search(value) is None
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(_settable, value))
    if isinstance(value, dict):
        return all(isinstance(k, str) and _settable(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int))
