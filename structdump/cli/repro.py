"""`structdump repro`: a script that compiles once more what a bundle holds."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from structdump.cli.opening import WhichRank

WARNING = "structdump: running the script, which holds code of the program that the bundle was made from"

OTHERS = 8  # graphs that are offered instead


def repro(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    compile_id: Annotated[
        str | None,
        typer.Option("--compile", help="its id, such as 0/0; default: the one that failed, or 1st"),
    ] = None,
    graph: Annotated[
        int | None, typer.Option("--graph", help="the number of a graph, as `structdump list` shows it")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", help="one Triton or C++ kernel, called once with random buffers")
    ] = None,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", help="a module or a .py file that defines operators which torch lacks"),
    ] = None,
    rank: WhichRank = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="the script; default: print it")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite")] = False,
    run: Annotated[
        bool,
        typer.Option("--run", help="run it: this executes code from the bundle; exit 1 if it ends otherwise"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Write a script that rebuilds a graph with random inputs and compiles it as it was compiled."""
    from structdump.analyze.repro import first_line
    from structdump.analyze.repro import repro as make
    from structdump.analyze.repro_kernel import kernel_repro
    from structdump.analyze.repro_run import run as run_script
    from structdump.cli.opening import opened_rank
    from structdump.errors import UsageError
    from structdump.report.printable import printable

    loaded = opened_rank(bundle, rank)
    named = [str(Path(m).resolve()) if m.endswith(".py") else m for m in modules or []]
    if kernel is not None:
        made = kernel_repro(loaded, kernel, compile_id)
    else:
        made = make(loaded, compile_id, graph=graph, modules=named)
    others = [f"--graph {other}" for other in made.others[:OTHERS]]
    more = [f"and {len(made.others) - OTHERS} more graphs"] if len(made.others) > OTHERS else []
    for note in [made.what, *made.notes, *others, *more]:
        typer.echo(f"structdump: {printable(note)}", err=True)
    with tempfile.TemporaryDirectory(prefix="structdump-") as directory:
        target = output or Path(directory, "repro.py")
        try:
            with target.open("w" if force else "x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(made.script)
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
        outcome = None
        if run:
            typer.echo(WARNING, err=True)
            outcome = run_script(target, made.expected)
    expected, got = (
        first_line(f) if f else "no failure" for f in (made.expected, outcome.failure if outcome else None)
    )
    if as_json:
        facts = {
            "what": made.what,
            "script": str(output) if output else made.script,
            "notes": made.notes,
            "others": made.others,
        }
        ran = {"same": outcome.same, "expected": expected, "got": got} if outcome else None
        typer.echo(json.dumps({**facts, "run": ran}, indent=2))
    elif outcome is None:
        typer.echo(str(output) if output else made.script, nl=output is not None)
    else:
        typer.echo(printable(f"{'same' if outcome.same else 'other'}: {got}"))
        if not outcome.same:
            typer.echo(printable(f"the bundle: {expected}"))
    if outcome is not None and not outcome.same:
        raise typer.Exit(1)
