"""`structdump merge`: the bundles of many ranks as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from structdump.errors import BundleError


def merge(
    bundles: Annotated[list[Path], typer.Argument(help="bundles or journals, one per process")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the file")],
    force: Annotated[bool, typer.Option("--force", help="overwrite")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write one bundle in which each text stands once, and each artifact with the ranks that have it.

    A bundle that can't be read is named and left out, and the exit code is 4.
    """
    from rich.console import Console

    from structdump.bundle.merge import merge as write
    from structdump.errors import UsageError
    from structdump.report.lines import size
    from structdump.report.printable import printable

    left_out: dict[str, str] = {}

    def leave_out(name: str, error: BundleError) -> None:
        left_out[name] = str(error)
        typer.echo(f"structdump: left out: {printable(error, multiline=True)}", err=True)

    with Console(stderr=True).status(f"Merging {len(bundles)} bundles"):
        try:
            done = write(bundles, output, overwrite=force, on_error=leave_out)
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    if as_json:
        typer.echo(json.dumps({"path": str(done.path), "bytes": done.bytes, "left_out": left_out}, indent=2))
    else:
        typer.echo(str(done.path))
        typer.echo(f"structdump: {len(bundles) - len(left_out)} bundles, {size(done.bytes)}", err=True)
    if left_out:
        raise typer.Exit(4)
