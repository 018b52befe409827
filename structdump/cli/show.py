"""`structdump show`: a bundle on one screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from structdump.cli.opening import WhichRank


def show(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    passes: Annotated[bool, typer.Option("--passes", help="each pass, and what it changed")] = False,
    kernels: Annotated[bool, typer.Option("--kernels", help="each kernel that runs")] = False,
    configs: Annotated[bool, typer.Option("--configs", help="best configs and autotune tables")] = False,
    breaks: Annotated[
        bool, typer.Option("--breaks", help="graph breaks and recompiles, with stacks")
    ] = False,
    timeline: Annotated[bool, typer.Option("--timeline", help="phases of each compile")] = False,
    private: Annotated[bool, typer.Option("--private", help="what redaction would change in it")] = False,
    full: Annotated[bool, typer.Option("--full", help="all compiles and kernels, however many")] = False,
    rank: WhichRank = None,
    as_json: Annotated[bool, typer.Option("--json", help="the bundle's head as JSON, without texts")] = False,
) -> None:
    """Answer the first questions: versions, verdict, what failed, what was compiled, what is left out."""
    from structdump.cli.opening import opened

    loaded = opened(bundle)
    if as_json and rank is None:
        typer.echo(json.dumps(loaded.head(), indent=2))  # ASCII: nothing in it can steer a terminal
        return
    from structdump.bundle.rank_view import of_rank

    if private:
        from rich.console import Console

        from structdump.bundle.share import private_values
        from structdump.report.lines import print_lines
        from structdump.report.shared import private_lines

        print_lines(private_lines(private_values(loaded)), Console())
        return
    view = of_rank(loaded, rank)
    if as_json:
        typer.echo(json.dumps(view.head(), indent=2))
        return
    from rich.console import Console
    from rich.text import Text

    from structdump.report import details
    from structdump.report.lines import Line, print_lines
    from structdump.report.overview import overview

    sections = {
        details.passes: passes, details.kernels: kernels, details.configs: configs,
        details.breaks: breaks, details.times: timeline,
    }  # fmt: skip
    screen = Console()
    chosen = [section for section, wanted in sections.items() if wanted]
    if not chosen:
        print_lines(overview(view, full=full, whole=loaded), screen)
    for number, section in enumerate(chosen):
        if number:
            print_lines([Line(Text(""))], screen)
        print_lines(section(view), screen)
