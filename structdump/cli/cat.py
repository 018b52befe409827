"""`structdump cat`: one artifact in full."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

#: Characters; a longer text is printed as it is, since highlighting it would take seconds.
MOST = 500_000


def cat(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    which: Annotated[str, typer.Argument(help="its number, its name, or the start of its digest")],
) -> None:
    """Print an artifact: highlighted on a terminal, to the byte in a pipe. Exit 4 if its text is not kept."""
    from structdump.cli.opening import opened
    from structdump.errors import UsageError
    from structdump.report.listing import absent, content, find
    from structdump.report.printable import printable

    loaded = opened(bundle)
    found = find(loaded, which)
    if not found:
        raise UsageError(f"no artifact {which} in {bundle.name}; `structdump list` shows them all")
    if len(found) > 1:
        from rich.console import Console

        from structdump.report.lines import print_lines
        from structdump.report.listing import listing

        typer.echo(
            f"structdump: {len(found)} artifacts are called {printable(which)}; name one by its number",
            err=True,
        )
        print_lines(listing(found), Console(stderr=True))
        raise typer.Exit(2)
    shown = content(found[0])
    if shown is None:
        typer.echo(f"structdump: {printable(absent(found[0], loaded.level))}", err=True)
        raise typer.Exit(4)
    text, language = shown
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        return
    from rich.console import Console

    safe = printable(text, multiline=True)
    screen = Console()
    if len(safe) > MOST:
        screen.print(safe, markup=False, highlight=False, emoji=False, soft_wrap=True, end="")
        return
    from rich.syntax import Syntax

    colours = Syntax("", language, theme="ansi_dark", background_color="default")
    screen.print(colours.highlight(safe), end="", soft_wrap=True)
