"""What differs between two environments, and what the differences do not concern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from structdump.analyze.canon import plain
from structdump.analyze.difference import Change
from structdump.bundle.model import Environment

# Where files go, how structdump is set up, which rank this is: they change nothing that is compiled.
_IRRELEVANT = re.compile(
    r"STRUCTDUMP_.*|PYTHONHASHSEED|TORCH_TRACE|TORCH_LOGS_OUT|.*_(?:CACHE_|DUMP_|DEBUG_|LOG_)?DIR|.*_OUT"
    r"|(?:LOCAL_)?RANK|OMPI_.*|TORCHELASTIC_.*|\w*TENSOR_DATA_PTR"
)


def diff_environments(a: Environment, b: Environment, *, known: bool = True) -> list[Change]:
    """Return versions, devices, torch settings and variables that differ, the weightiest first.

    Without `known`, one of them is a directory's or a log's, which tell little: what only one of them
    states is no difference then.

    Example: `diff_environments(x.environment, y.environment)[0].what == "torch"`
    """
    found = list(_mapping("", a.versions, b.versions, known, skip={"structdump"}))
    for what in ("os", "cpu", "cpu_count"):
        found += _values(what, getattr(a, what), getattr(b, what), known)
    found += _values("devices", _devices(a) or None, _devices(b) or None, known)
    found += _mapping("", a.drivers, b.drivers, known)
    for module in sorted(a.configs.keys() | b.configs.keys()):
        name = module.removesuffix(".config")
        found += _mapping(f"{name}: ", a.configs.get(module, {}), b.configs.get(module, {}), known)
    skip = {name for name in a.variables.keys() | b.variables.keys() if not concerns_compiling(name)}
    found += _mapping("$", a.variables, b.variables, known, skip=skip)
    for name in [*a.extra, *(k for k in b.extra if k not in a.extra)]:
        one, other = a.extra.get(name), b.extra.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            found += _mapping(f"{name} ", one, other, known)
        else:
            found += _values(name, one, other, known)
    return found


def concerns_compiling(variable: str) -> bool:
    """Tell whether an environment variable can change what is compiled.

    Example: `not concerns_compiling("TORCHINDUCTOR_CACHE_DIR")`
    """
    return _IRRELEVANT.fullmatch(variable) is None


def _devices(environment: Environment) -> list[str]:
    return [f"{d.name} ({d.capability})" if d.capability else d.name for d in environment.devices]


def _mapping(
    prefix: str,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    known: bool,
    skip: set[str] | frozenset[str] = frozenset(),
) -> Iterator[Change]:
    for key in [*a, *(k for k in b if k not in a)]:
        if key not in skip:
            yield from _values(prefix + key, a.get(key), b.get(key), known)


def _values(what: str, a: Any, b: Any, known: bool) -> Iterator[Change]:
    if comparable(a) != comparable(b) and (known or (a is not None and b is not None)):
        yield Change("env", what, a, b)


def comparable(value: Any) -> Any:
    """Return a value without what `canon.plain` takes out of texts, in all its strings.

    Example: `comparable({"dir": "/tmp/a"}) == comparable({"dir": "/home/alex/a"})`
    """
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {str(k): comparable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(v) for v in value]
    return value
