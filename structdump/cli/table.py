"""`structdump table`: kernels, configs, passes and more of many bundles, for other tools."""

from __future__ import annotations

import json
import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Name(str, Enum):
    """The tables."""

    compiles = "compiles"
    artifacts = "artifacts"
    kernels = "kernels"
    configs = "configs"
    passes = "passes"
    breaks = "breaks"


def table(
    name: Annotated[Name, typer.Argument(help="which table")],
    bundles: Annotated[list[str], typer.Argument(help="bundles, directories, URLs, globs of them in quotes")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=".parquet, .csv or .jsonl; default: JSON lines, printed"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite")] = False,
    workers: Annotated[int | None, typer.Option("--workers", help="processes; default: one per core")] = None,
) -> None:
    """Write one table of all these bundles. Those that can't be read are named, and the exit code is 4."""
    from rich.console import Console

    from structdump.bundle.scan import scan
    from structdump.errors import UsageError
    from structdump.report.printable import printable

    found = scan(bundles, workers=workers)
    rows = 0
    if output is None:
        for row in found.rows(name.value):
            typer.echo(json.dumps(row))  # ASCII: nothing in it can steer a terminal
            rows += 1
    else:
        with Console(stderr=True).status(f"Writing {output.name}"):
            rows = found.write(name.value, output, overwrite=force)
        typer.echo(os.fspath(output))
    for error in found.errors.values():
        typer.echo(f"structdump: left out: {printable(error, multiline=True)}", err=True)
    typer.echo(f"structdump: {rows:,} rows of {found.count:,} bundles", err=True)
    if found.count == 0:
        raise UsageError("there are no such bundles")
    if found.errors:
        raise typer.Exit(4)
