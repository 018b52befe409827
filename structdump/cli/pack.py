"""`structdump pack`: bundles of dump directories and TORCH_TRACE logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from structdump.cli.options import read_settings, with_settings


@with_settings
def pack(
    sources: Annotated[list[Path], typer.Argument(help="directories of depyf or vLLM, or TORCH_TRACE logs")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="a directory or file name for the bundle")
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace", help="the TORCH_TRACE log of the same run, joined with the directory by content"
        ),
    ] = None,
    inductor_cache: Annotated[
        Path | None, typer.Option("--inductor-cache", help="an Inductor cache, for its best configs")
    ] = None,
    merge: Annotated[bool, typer.Option("--merge", help="one bundle of all ranks, each text once")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite")] = False,
    settings: dict[str, Any] = {},  # noqa: B006 # never changed
) -> None:
    """Turn what you already have into bundles: one per rank. Prints their paths."""
    from structdump.sources.pack import pack as pack_sources

    for path in pack_sources(
        sources,
        output,
        trace=trace or (),
        inductor_cache=inductor_cache,
        merge=merge,
        overwrite=force,
        **read_settings(settings),
    ):
        typer.echo(str(path))
