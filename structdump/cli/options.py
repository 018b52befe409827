"""The settings of a capture as command-line options, made from the one model that describes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from structdump.config import DumpConfig

#: Settings that a command takes in another way, or that make no sense for one run.
ELSEWHERE = frozenset({"output"})


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add one option per setting to `command`, which gets those that were given as `settings`.

    Each value is text, as in the environment: lists are separated by commas.

    Example::

        @with_settings
        def pack(source: Path, settings: dict[str, str]) -> None: ...
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "settings"]
    options = [_option(name) for name in DumpConfig.model_fields if name not in ELSEWHERE]
    options.append(_text("config", "a TOML or JSON file with settings"))

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:
        names = {option.name for option in options}
        settings = {k: v for k, v in given.items() if k in names and v not in (None, False)}
        if settings.pop("no_redact", False):
            settings["redact"] = "0"
        settings = {k: str(v) if v is True else v for k, v in settings.items()}
        rest = {k: v for k, v in given.items() if k not in names}
        return command(settings=settings, **rest)

    parameters = [*own, *options]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by inspect.signature
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def read_settings(settings: dict[str, str]) -> dict[str, Any]:
    """Return what `DumpConfig.resolve` takes as keywords, the file of `--config` included."""
    from structdump.config import read_file

    given: dict[str, Any] = dict(settings)
    path = given.pop("config", None)
    return {**(read_file(Path(path)) if path else {}), **given}


def _option(name: str) -> inspect.Parameter:
    field = DumpConfig.model_fields[name]
    if name == "redact":
        return _flag("no_redact", "keep private values as they are")
    if name == "every_pass":
        return _flag(name, "record each Inductor pass at any level")
    if name == "keep_raw":
        return _flag(name, field.description or "")
    return _text(name, field.description or "")


def _text(name: str, text: str) -> inspect.Parameter:
    annotation = Annotated[str | None, typer.Option(f"--{name.replace('_', '-')}", help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(name: str, text: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(f"--{name.replace('_', '-')}", help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
