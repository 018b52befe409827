"""`structdump run`: a program under capture, as if Python had run it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from structdump.cli.options import with_settings


@with_settings
def run(
    program: Annotated[str, typer.Argument(help="a script, or with -m a module")],
    arguments: Annotated[list[str] | None, typer.Argument(help="its arguments")] = None,
    module: Annotated[bool, typer.Option("-m", help="run a module, as `python -m` does")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="a directory or file name for the bundle")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="pass over caches, so that everything is compiled and seen")
    ] = False,
    settings: dict[str, Any] = {},  # noqa: B006 # never changed
) -> None:
    """Run a Python program and write a bundle of what it compiles."""
    from structdump.sources.launch import launch

    if output is not None:
        settings = {**settings, "output": output}
    launch(program, arguments or [], module=module, fresh=fresh, settings=settings)
