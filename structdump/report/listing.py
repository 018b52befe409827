"""Artifacts as a table, one line each, and one artifact in full."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.text import Text

from structdump.analyze.summary import why_not_kept
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.rank_view import spelled
from structdump.report.lines import Line, say, size, table

LEXERS = {"python": "python", "cpp": "cpp", "json": "json", "ptx": "ptx", "llir": "llvm"}


def listing(artifacts: Sequence[ArtifactView]) -> list[Line]:
    """Lay artifacts out in a table; the first column is the number by which `cat` takes them.

    Those without text are dim, and say why in place of their size.
    """
    rows = []
    for a in artifacts:
        style = "" if a.digest else "dim"
        stage = f"{a.phase} {a.stage}" if a.phase == "before" and a.stage else a.stage or ""
        piece = a.subgraph.name or "" if a.subgraph else ""
        what = [(stage if stage != a.name else "", "bold" if a.digest else "dim"), (a.name, style)]
        what += [(piece, "dim"), ("changed" if a.changed else "", "yellow")]
        rows.append(
            [
                say(str(a.seq)),
                say((a.compile_id or "", "cyan")),
                say((a.direction or "", "dim")),
                say((a.kind, style)),
                say(str(a.nodes) if a.nodes is not None else ""),
                say(("" if a.ranks is None else spelled(a.ranks), "dim")),
                say(size(a.bytes) if a.digest else (a.omitted.reason if a.omitted else "", "dim")),
                Text("  ").join(say(part) for part in what if part[0]),
            ]
        )
    header = ("seq", "compile", "direction", "kind", "nodes", "ranks", "size", "stage and name")
    return table(header, rows, frozenset({0, 4, 6}))


def find(bundle: LoadedBundle, which: str) -> list[ArtifactView]:
    """Return the artifacts that `which` names: by number, by the start of a digest, or by name.

    A kernel's name names the kernel. Of several prints of the same text one is returned, after its stage
    rather than before.
    """
    if which.isdigit() and (found := [a for a in bundle.artifacts if a.seq == int(which)]):
        return found
    named = [a for a in bundle.artifacts if which in (a.name, a.kernel.name if a.kernel else None, a.stage)]
    named = [a for a in named if a.kind == "kernel"] or named  # not its config, nor its IR
    kept = [a for a in named if a.digest or a.data is not None or a.autotune is not None] or named
    if not kept and len(which) >= 4:
        kept = [a for a in bundle.artifacts if a.digest and a.digest.startswith(which)]
    unlike: dict[object, ArtifactView] = {}
    for a in sorted(kept, key=lambda a: a.phase == "before"):
        unlike.setdefault(a.digest or a.seq, a)
    return sorted(unlike.values(), key=lambda a: a.seq)


def content(artifact: ArtifactView) -> tuple[str, str] | None:
    """Return an artifact's text and the language to highlight it in; None if it has none.

    Structured content, of a best config or a table of choices, is given as JSON.
    """
    text = artifact.text
    if text is not None:
        return text, LEXERS.get(artifact.language, "text")
    value = artifact.data if artifact.omitted is None else None
    if artifact.autotune is not None:
        value = artifact.autotune.model_dump(exclude_none=True)
    elif (
        artifact.kernel is not None
        and artifact.kernel.best_config is not None
        and artifact.kind == "best_config"
    ):
        value = artifact.kernel.best_config
    if value is None:
        return None
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n", "json"


def absent(artifact: ArtifactView, level: str) -> str:
    """Say why an artifact has no text, and what to set to have it."""
    return f"{artifact.seq} {artifact.name}: {why_not_kept(artifact, level)}"
