"""Starting a program under capture."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from importlib import metadata

from structdump.config import PREFIX, DumpConfig
from structdump.sources.completeness import FRESH


def launch(
    program: str, arguments: list[str], *, module: bool, fresh: bool, settings: Mapping[str, str]
) -> None:
    """Replace this process by Python on `program`, its capture set up by the environment.

    So the program runs exactly as Python runs it, and the processes that it starts are captured too.
    Only where PyTorch would not load the entry point (`TORCH_DEVICE_BACKEND_AUTOLOAD=0`, or structdump
    is importable but not installed) is the program run inside this process instead. Raises
    `ConfigError` for a bad setting before anything starts.
    """
    environment = {PREFIX + name.upper(): str(value) for name, value in settings.items()}
    combined = {**os.environ, **environment}
    config = DumpConfig.resolve(environ=combined)
    os.environ.update(environment)
    os.environ.setdefault(PREFIX + "LEVEL", config.level)
    if fresh:
        os.environ.update(FRESH)
    command = ["-m", program] if module else [program]
    if entry_point_loads(os.environ):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *command, *arguments])  # noqa: S606 # the user's own program
    _run_here(program, arguments, module)


def entry_point_loads(environ: Mapping[str, str]) -> bool:
    """Tell whether PyTorch will load structdump's entry point in a process with these variables."""
    if environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        return False
    return any(e.name == "structdump" for e in metadata.entry_points(group="torch.backends"))


def _run_here(program: str, arguments: list[str], module: bool) -> None:
    from structdump.activate import autoload

    autoload()
    sys.argv = [program, *arguments]
    if module:
        sys.path[0] = os.getcwd()  # noqa: PTH109 # as `python -m` does
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program))  # noqa: PTH100, PTH120 # as python does
        runpy.run_path(program, run_name="__main__")
