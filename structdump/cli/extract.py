"""`structdump extract`: a bundle as a directory of readable files."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from structdump.cli.opening import WhichRank


class Layout(str, Enum):
    """How the files are arranged and named."""

    tree = "tree"
    depyf = "depyf"


def extract(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the directory")],
    layout: Annotated[
        Layout, typer.Option(help="tree: an index, compiles, kernels; depyf: depyf's own file names")
    ] = Layout.tree,
    force: Annotated[
        bool, typer.Option("--force", help="write into a directory that holds something")
    ] = False,
    rank: WhichRank = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write the texts of a bundle below a directory, and an index. Prints where to begin."""
    from rich.console import Console

    from structdump.analyze.extract import extract as write
    from structdump.cli.opening import opened_rank
    from structdump.report.printable import printable

    loaded = opened_rank(bundle, rank)
    with Console(stderr=True).status(f"Writing {output.name}"):
        done = write(loaded, output, layout.value, force=force)
    if as_json:
        typer.echo(json.dumps({"directory": str(output), **done._asdict()}, indent=2))
        return
    typer.echo(printable(output / "README.md" if layout is Layout.tree else output))
    left = f"; {done.left} more are of kinds that depyf has no name for" if done.left else ""
    typer.echo(f"structdump: {len(done.files)} files{left}", err=True)
