"""`structdump html`: one self-contained page that shows a bundle, or two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from structdump.cli.opening import WhichRank


def html(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    other: Annotated[Path | None, typer.Argument(help="another, to stand beside it")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="the file; default: the bundle's name with .html")
    ] = None,
    rank: WhichRank = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite")] = False,
) -> None:
    """Write a report to open in a browser: no network, one file. Prints its path."""
    from rich.console import Console

    from structdump.cli.opening import opened_rank
    from structdump.errors import UsageError
    from structdump.report.html import file_name, write_html

    sources = [bundle] if other is None else [bundle, other]
    target = output or Path(file_name(bundle))
    with Console(stderr=True).status(f"Writing {target.name}"):
        loaded = [opened_rank(path, rank) for path in sources]
        try:
            write_html(target, *loaded, names=tuple(path.name for path in sources), overwrite=force)
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    typer.echo(str(target))
