"""`structdump recover`: bundles out of the journals that killed processes left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def recover(
    sources: Annotated[list[Path], typer.Argument(help="journals, or directories that hold some")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write a bundle for each journal; the journals of running processes are left alone."""
    from structdump.bundle.writer import recover as rescue

    written = [path for source in sources for path in rescue(source)]
    if as_json:
        typer.echo(json.dumps([str(path) for path in written]))
        return
    for path in written:
        typer.echo(str(path))
    if not written:
        typer.echo("no journal of an ended process there", err=True)
