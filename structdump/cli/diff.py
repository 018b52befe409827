"""`structdump diff`: what two runs compiled differently, and from which stage on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def diff(
    a: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    b: Annotated[Path | None, typer.Argument(help="another")] = None,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="compare the ranks of one merged bundle with each other")
    ] = False,
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
    With --ranks: whether all ranks compiled the same graphs in the same order, and which differs first.
    """
    from rich.console import Console

    from structdump.analyze.diff import diff as compare
    from structdump.analyze.diff import side_of
    from structdump.cli.opening import opened
    from structdump.errors import UsageError
    from structdump.report.diff_terminal import lines_of, lines_of_sides, print_lines

    if ranks:
        if b is not None or ignore or times:
            raise UsageError("--ranks takes one merged bundle, and no other options but --json")
        _ranks(a, as_json=as_json)
        return
    if b is None:
        raise UsageError("diff takes two bundles, or --ranks and a merged one")
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


def _ranks(path: Path, *, as_json: bool) -> None:
    from rich.console import Console

    from structdump.analyze.rank_diff import diff_ranks
    from structdump.cli.opening import opened
    from structdump.report.diff_terminal import print_lines
    from structdump.report.ranks_diff import lines_of_ranks

    with Console(stderr=True).status("Comparing"):
        found = diff_ranks(opened(path))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_lines(lines_of_ranks(found), Console())
    if not found.same:
        raise typer.Exit(1)
