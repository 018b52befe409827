"""`structdump verify`: whether bundles are whole and consistent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    bundles: Annotated[list[Path], typer.Argument(help="bundles or journals")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check digests, references and counts; exit 1 if anything is wrong, 4 if a bundle is incomplete."""
    from structdump.bundle.reader import head
    from structdump.bundle.reader import verify as check

    found = {str(path): check(path) for path in bundles}
    whole = all(head(path).complete is not False for path in bundles)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for name, problems in found.items():
            typer.echo(f"{name}: {'ok' if not problems else f'{len(problems)} problems'}")
            for problem in problems:
                typer.echo(f"  {problem}")
    if any(found.values()):
        raise typer.Exit(1)
    if not whole:
        raise typer.Exit(4)
