"""What stands in the way of a capture: versions, hooks, settings, the output directory."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from structdump import __version__
from structdump.bundle import journal
from structdump.config import PREFIX, DumpConfig, read_file
from structdump.errors import ConfigError
from structdump.sources.launch import entry_point_loads
from structdump.sources.target import launcher_rank, resolve

PACKAGES = ("torch", "depyf", "triton", "vllm", "sglang", "pydantic", "orjson", "zstandard")


@dataclass
class Setting:
    """One setting: its value, and where that comes from."""

    name: str
    value: str
    origin: str


@dataclass
class Diagnosis:
    """All that `structdump doctor` finds. `problems` are sentences; without any, a capture will work.

    `hooks` says of each point `installed`, or why it is not. `journals` are those of ended processes.
    """

    versions: dict[str, str | None] = field(default_factory=dict)
    hooks: dict[str, str] = field(default_factory=dict)
    entry_point: bool = False
    active: bool = False
    settings: list[Setting] = field(default_factory=list)
    output: str = ""
    writable: bool = False
    journals: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def examine(environ: Mapping[str, str] | None = None) -> Diagnosis:
    """Look at this installation and at the settings in `environ` (default: those of this process).

    Imports torch and its compiler, if they are installed, and installs each hook for a moment.
    Writes no file. Raises nothing for what it finds wrong.

    Example::

        examine().problems  # ['PyTorch is not installed']
    """
    environ = os.environ if environ is None else environ
    found = Diagnosis(versions=_versions())
    _hooks(found)
    _activation(found, environ)
    config = _settings(found, environ)
    _output(found, config, environ)
    return found


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"structdump": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            if package in ("torch", "depyf"):
                found[package] = None
    return found


def _hooks(found: Diagnosis) -> None:
    if found.versions["torch"] is None:
        found.problems.append("PyTorch is not installed; only packing and reading work")
        return
    from structdump.sources.hooks import HUB
    from structdump.sources.session import Session

    missing = {point.name: _import(point.module) for point in HUB.points}
    nobody = Session(DumpConfig(level="full"), Path, wanted=lambda: False)
    HUB.attach(nobody)
    try:
        states = HUB.installed()
    finally:
        HUB.detach(nobody)
    for name, state in states.items():
        found.hooks[name] = missing[name] or state
        if found.hooks[name] != "installed" and name != "depyf":
            found.problems.append(f"hook {name}: {found.hooks[name]}")
    if found.hooks.get("depyf") != "installed":
        found.problems.append(f"depyf: {found.hooks.get('depyf')}; sources are not decompiled")


def _import(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 # any release may lack it, and fail in any way
        return f"{module} cannot be imported: {type(error).__name__}: {error}"
    return None


def _activation(found: Diagnosis, environ: Mapping[str, str]) -> None:
    found.entry_point = entry_point_loads(environ)
    found.active = environ.get(f"{PREFIX}LEVEL", "").strip().lower() not in ("", "off")
    if found.entry_point:
        return
    if environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        why = "TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns entry points off"
    else:
        why = "the package is importable, but not installed here"
    sentence = f"{PREFIX}LEVEL has no effect: {why}; `structdump run` and structdump.capture work"
    (found.problems if found.active else found.notes).append(sentence)


def _settings(found: Diagnosis, environ: Mapping[str, str]) -> DumpConfig:
    try:
        config = DumpConfig.resolve(environ=environ)
    except ConfigError as error:
        found.problems += [f"settings: {fault}" for fault in str(error).split("; ") if fault]
        return DumpConfig()
    path = environ.get(f"{PREFIX}CONFIG")
    in_file = read_file(Path(path)) if path else {}
    for name, value in config.model_dump().items():
        variable = PREFIX + name.upper()
        if environ.get(variable):
            origin = variable
        elif name in in_file:
            origin = str(path)
        else:
            origin = "default"
        shown = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        found.settings.append(Setting(name, shown, origin))
    return config


def _output(found: Diagnosis, config: DumpConfig, environ: Mapping[str, str]) -> None:
    rank, _ = launcher_rank(environ)
    target = resolve(config.output, program="program", level=config.level, rank=rank)
    found.output = str(target)
    existing = next(p for p in (target.parent, *target.absolute().parents) if p.exists())
    found.writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    if not found.writable:
        found.problems.append(f"{existing} cannot be written; bundles would go to the temporary directory")
    if target.parent.is_dir():
        left = [p for p in sorted(target.parent.glob(f"*{journal.SUFFIX}")) if not _in_use(p)]
        found.journals = [str(p) for p in left]


def _in_use(path: Path) -> bool:
    try:
        return journal.in_use(path)
    except OSError:
        return True
