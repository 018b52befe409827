"""What is inside a bundle that is to be given away, and what redaction would take out of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from structdump.analyze.summary import cures
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.share import Private
from structdump.report.lines import Line, labelled, plural, say, size, table


def shared_lines(bundle: LoadedBundle, path: Path, count: int) -> Iterator[Line]:
    """Yield where the .zip is, its kinds with their sizes, redactions by rule, omissions by reason."""
    yield Line(say((str(path), "bold"), f"  {size(count)}, level {bundle.level}"))
    yield Line(Text(""))
    kinds: dict[str, list[int]] = {}
    for item in bundle.artifacts:
        row = kinds.setdefault(item.kind, [0, 0, 0])
        row[0] += 1
        row[1] += item.digest is not None
        row[2] += item.bytes or 0
    rows = [
        [say(kind), say(f"{n:,}"), say(f"{kept:,}"), say(size(b) if b else "")]
        for kind, (n, kept, b) in kinds.items()
    ]
    yield from table(("kind", "artifacts", "with text", "bytes"), rows, frozenset({1, 2, 3}))
    yield Line(Text(""))
    words = ", ".join(plural(number, rule) for rule, number in bundle.redactions.items())
    yield labelled("redacted", say(words or "nothing was found"))
    for reason, omitted, _ in cures(bundle):
        amount = omitted.indexed + omitted.dropped
        yield labelled(
            "left out",
            say(f"{amount:,} texts ({reason}{f', {size(omitted.bytes)}' if omitted.bytes else ''})"),
        )
    if bundle.hook_errors:
        yield labelled("hooks", say(plural(len(bundle.hook_errors), "error")))


def private_lines(found: Sequence[Private]) -> Iterator[Line]:
    """Yield each value that redaction would replace: its token, how often it stands there, where first."""
    if not found:
        yield Line(say(("nothing that redaction would change", "dim")))
        return
    rows = [
        [say(p.token), say(f"×{p.times}"), say((p.where, "dim")), say((p.value, "yellow"))] for p in found
    ]
    yield from table(("becomes", "times", "first in", "value"), rows, frozenset({1}))
