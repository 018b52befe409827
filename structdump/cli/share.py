"""`structdump share`: a bundle made fit to be attached to a public issue."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Lower(str, Enum):
    """The levels that a bundle can be lowered to."""

    low = "low"
    medium = "medium"


class Privacy(str, Enum):
    """What stays."""

    normal = "normal"
    shapes = "shapes"


def share(
    bundle: Annotated[Path, typer.Argument(help="a bundle, journal, dump directory or TORCH_TRACE log")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="the .zip; default: beside you, named after the bundle"),
    ] = None,
    level: Annotated[Lower | None, typer.Option(help="leave out what a lower level would not keep")] = None,
    max_size: Annotated[str, typer.Option(help="largest .zip, such as 24MB; none: no limit")] = "24MB",
    privacy: Annotated[
        Privacy,
        typer.Option(help="shapes: topology, shapes and torch's own names; no source, no other names"),
    ] = Privacy.normal,
    redact_patterns: Annotated[
        list[str] | None, typer.Option("--redact-patterns", help="one more regular expression to redact")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="print the text to paste into the issue, and nothing else")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Redact once more, write a .zip that GitHub accepts, and say what is inside."""
    from rich.console import Console

    from structdump.bundle.reader import load
    from structdump.bundle.share import share as write
    from structdump.bundle.share import shared_name
    from structdump.cli.opening import opened
    from structdump.config import DumpConfig
    from structdump.report.issue import issue_text
    from structdump.report.lines import print_lines
    from structdump.report.printable import printable
    from structdump.report.shared import shared_lines

    settings = DumpConfig.resolve(
        {"max_bytes": max_size, "redact_patterns": tuple(redact_patterns or ())}, {}
    )
    loaded = opened(bundle)
    shapes = privacy is Privacy.shapes
    target = output or Path(shared_name(bundle, shapes=shapes))
    with Console(stderr=True).status("Redacting"):
        done = write(
            loaded, target, level=level.value if level else None, max_bytes=settings.max_bytes,
            shapes=shapes, patterns=settings.redact_patterns,
        )  # fmt: skip
    inside = load(done.path)
    if as_json:
        facts = inside.head()
        told = {k: facts[k] for k in ("level", "completeness", "omitted", "redactions")}
        typer.echo(json.dumps({"path": str(done.path), "bytes": done.bytes, **told}, indent=2))
    elif markdown:
        typer.echo(issue_text(inside, done.path.name, done.bytes), nl=False)
        typer.echo(f"structdump: attach {printable(done.path)}", err=True)
    else:
        print_lines(shared_lines(inside, done.path, done.bytes), Console())
    limit = settings.max_bytes
    if limit is not None and done.bytes > limit * 1.02:
        typer.echo(
            f"structdump: {done.bytes:,} bytes are more than {limit:,}, even without any text", err=True
        )
        raise typer.Exit(1)
