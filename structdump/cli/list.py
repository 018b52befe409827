"""`structdump list`: the artifacts of a bundle as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def list_artifacts(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    kind: Annotated[str | None, typer.Option("--kind", help="graph, pass, kernel, output_code, …")] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="post_grad, joint, …")] = None,
    name: Annotated[str | None, typer.Option("--name", help="the artifact's name, or a kernel's")] = None,
    pass_: Annotated[str | None, typer.Option("--pass", help="an Inductor pass by name")] = None,
    function: Annotated[str | None, typer.Option("--function", help="the compiled function")] = None,
    compile_id: Annotated[str | None, typer.Option("--compile", help="a compile id, such as 0/0")] = None,
    kept: Annotated[bool, typer.Option("--kept", help="only those whose text is here")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List artifacts; filters are shell globs. The first column is the number that `cat` takes."""
    from structdump.cli.opening import opened

    loaded = opened(bundle)
    found = loaded.artifacts_like(
        kind="pass" if pass_ is not None else kind,
        stage=stage,
        name=pass_ if pass_ is not None else name,
        function=function,
        compile_id=compile_id,
    )
    if kept:
        found = [a for a in found if a.omitted is None]
    if as_json:
        typer.echo(json.dumps([a.model_dump(mode="json", exclude_none=True) for a in found], indent=2))
        return

    from rich.console import Console

    from structdump.report.lines import print_lines
    from structdump.report.listing import listing

    if found:
        screen = Console()
        print_lines(listing(found), screen, wrap=screen.is_terminal)
    else:
        typer.echo("no artifact matches", err=True)
