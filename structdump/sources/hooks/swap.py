"""Swapping a function's code object, for functions that have been imported in many places."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from structdump.sources.hub import UnfitError

#: What trampolines ask for: handlers, and what each swapped function did before. A swapped code
#: object runs with torch's globals, so the table stands there too, under `__structdump__`.
TABLE = types.SimpleNamespace()


def swap_code(
    function: Any, trampoline: Any, needs: tuple[str, ...]
) -> tuple[Callable[..., Any], Callable[[], None]]:
    """Give `function` the code of `trampoline`; return its former self as a function, and the undo.

    Trampolines take `*args, **kwargs`, so they fit any signature; `needs` names the parameters that
    the handler reads. Raises `UnfitError` if one is missing.
    """
    parameters = inspect.signature(function).parameters
    missing = [name for name in needs if name not in parameters]
    if missing:
        raise UnfitError(f"{function.__qualname__} has no parameter {', '.join(missing)} in this release")
    before = function.__code__
    former = types.FunctionType(before, function.__globals__, function.__name__, function.__defaults__)
    former.__kwdefaults__ = function.__kwdefaults__
    function.__globals__["__structdump__"] = TABLE
    function.__code__ = trampoline.__code__

    def undo() -> None:
        # Another tool may have swapped it since; what it will restore is not ours to decide.
        if function.__code__ is trampoline.__code__:
            function.__code__ = before

    return former, undo
