"""`structdump doctor`: whether a capture would work here, and what the settings mean."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from structdump.sources.doctor import Diagnosis


def doctor(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Check versions, hooks, settings and the output directory; exit 1 if something is wrong."""
    from structdump.sources.doctor import examine

    found = examine()
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        _print(found)
    if found.problems:
        raise typer.Exit(1)


def _print(found: Diagnosis) -> None:
    from rich.console import Console
    from rich.text import Text

    from structdump.report.lines import Line, labelled, print_lines, say, table

    lines = [
        labelled("versions", say(", ".join(f"{k} {v or 'not installed'}" for k, v in found.versions.items())))
    ]
    fit = [name for name, state in found.hooks.items() if state == "installed"]
    if found.hooks:
        style = "green" if len(fit) == len(found.hooks) else "yellow"
        lines.append(
            labelled("hooks", say((f"{len(fit)} of {len(found.hooks)} fit", style), f": {', '.join(fit)}"))
        )
    on = (
        "on: programs that use torch.compile are captured"
        if found.active
        else "off: STRUCTDUMP_LEVEL is not set"
    )
    lines.append(labelled("capture", say(on)))
    place = "writable" if found.writable else "not writable"
    lines.append(labelled("output", say(found.output, (f"  ({place})", "dim" if found.writable else "red"))))
    if found.settings:
        rows = [[say(s.name), say(s.value or "–"), say((s.origin, "dim"))] for s in found.settings]
        lines += [Line(Text("")), *table(("setting", "value", "from"), rows)]
    if found.journals:
        lines.append(Line(Text("")))
        lines += [labelled("journal", say(path)) for path in found.journals]
        lines.append(
            labelled("", say(("left by a process that was killed; structdump recover makes bundles", "dim")))
        )
    lines.append(Line(Text("")))
    lines += [labelled("note", say(note)) for note in found.notes]
    lines += [Line(say(("✗ ", "bold red"), problem), "", "  ") for problem in found.problems]
    if not found.problems:
        lines.append(Line(say(("✓ ", "green"), "all is well")))
    print_lines(lines, Console())
