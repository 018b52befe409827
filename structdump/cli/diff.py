"""`structdump diff`: what two runs compiled differently, and from which stage on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def diff(
    a: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    b: Annotated[Path, typer.Argument(help="another")],
    ignore: Annotated[
        str,
        typer.Option(
            help="parts that do not count, with commas: env, compiles, graphs, kernels, configs, autotune, "
            "guards, recompiles, breaks, times"
        ),
    ] = "",
    times: Annotated[bool, typer.Option("--times", help="compile times count too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Compare two bundles, from the environment down to the kernels; exit 1 if they differ.

    Names of values, numbers of kernels, paths and clocks do not count; nor does what one bundle left out.
    """
    from rich.console import Console

    from structdump.analyze.diff import diff as compare
    from structdump.analyze.diff import side_of
    from structdump.cli.opening import opened
    from structdump.report.diff_terminal import lines_of, lines_of_sides, print_lines

    console = Console()
    progress = Console(stderr=True)
    with progress.status("Reading"):
        left, right = opened(a), opened(b)
    if not as_json:
        print_lines(lines_of_sides(side_of(left), side_of(right)), console)  # the rest may take seconds
    parts = [part.strip() for part in ignore.split(",") if part.strip()]
    with progress.status("Comparing"):
        found = compare(left, right, ignore=parts, times=times)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_lines(lines_of(found), console)
    if not found.same:
        raise typer.Exit(1)
