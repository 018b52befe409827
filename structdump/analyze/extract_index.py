"""README.md of an extracted tree: what ran, what was compiled, and where each part of it lies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from structdump.analyze.extract_kernels import KernelFile, settings
from structdump.analyze.repro_script import comment
from structdump.analyze.summary import cures
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Compile

_LONG = 120  # characters of a name or a reason in the index
_ABOUT = """
- `compiles/`: per compile, direction and piece, the stages of its graph in order, `passes/` and `events/`
- `kernels/`: one file per kernel, with its configuration and what it was made from in a comment
- `compiles.json`, `environment.json`: the same facts for programs
- `run/`: what differs each time, such as times; to compare two runs: `diff -r -x run A B`
"""


def index(bundle: LoadedBundle, placed: dict[int, str], kernels: list[KernelFile]) -> str:
    """Return the index in Markdown. `placed` maps the number of an artifact to its file."""
    lines = [f"# {_code(bundle.run.program or 'a bundle')}", ""]
    versions = bundle.environment.versions
    known = [f"{name} {versions[name]}" for name in ("torch", "triton", "python") if versions.get(name)]
    known += [d.name for d in bundle.environment.devices[:8]]
    lines += [f"{', '.join(map(_code, known)) or 'versions unknown'}; level {bundle.level}.", ""]
    facts = bundle.completeness
    said = [f"- {_code(reason)}" for reason in (*facts.reasons, *facts.hints)]
    lines += [f"Caches: {facts.verdict}.", *said]
    if bundle.complete is False:
        lines += ["", "**The process that was watched did not end: what it had written is here.**"]
    lines += [_ABOUT.rstrip(), ""]
    of: dict[str | None, list[ArtifactView]] = {}
    for artifact in bundle.artifacts:
        of.setdefault(artifact.compile_id, []).append(artifact)
    for record in bundle.compiles:
        lines += _compile(record, of.pop(record.id, []), placed)
    for artifacts in of.values():
        title = f"## {_code(artifacts[0].compile_id or 'no compile id')}"
        stages = list(_stages(artifacts, placed))
        lines += [title, "", *stages, ""] if stages else []
    lines += _kernels(kernels)
    if missing := cures(bundle):
        lines += ["## What was not kept", ""]
        for reason, count, cure in missing:
            help_ = f"; to have it: {_code(cure)}" if cure else ""
            lines.append(f"- {_code(reason)}: {count.indexed} listed, {count.dropped} counted{help_}")
        lines.append("")
    return "\n".join(lines)


def _compile(record: Compile, artifacts: list[ArtifactView], placed: dict[int, str]) -> Iterator[str]:
    where = record.function
    yield f"## {record.id if _plain(record.id) else _code(record.id)} {_code(where.name) if where else ''}"
    yield ""
    if where and where.file:
        yield f"- {_code(f'{where.file}:{where.line}')}"
    yield f"- {record.status}"
    if record.error:
        yield f"- error: {_code(f'{record.error.type}: {record.error.message}')}"
    if record.recompile:
        again = record.recompile
        yield f"- recompiled, as this failed: {_code(again.guard or again.reason)}"
    for graph_break in record.graph_breaks:
        after = f", resumed by {_code(graph_break.resumed_by)}" if graph_break.resumed_by else ""
        yield f"- graph break: {_code(graph_break.reason)}{after}"
    yield ""
    stages = list(_stages(artifacts, placed))
    if stages:
        yield from (*stages, "")


def _stages(artifacts: list[ArtifactView], placed: dict[int, str]) -> Iterator[str]:
    shown = [
        a
        for a in artifacts
        if a.seq in placed
        and (a.kind not in ("event", "cache", "pass") or (a.kind == "pass" and a.changed))
        and placed[a.seq].startswith("compiles/")
    ]
    if shown:
        yield "| file | nodes |"
        yield "|---|---|"
    for path, a in sorted({placed[a.seq]: a for a in shown}.items()):
        nodes = "" if a.nodes is None else a.nodes
        yield f"| [{path.removeprefix('compiles/')}]({path}) | {nodes} |"


def _kernels(kernels: list[KernelFile]) -> Iterator[str]:
    used = [k for k in kernels if k.kernel.role == "used"]
    if not used:
        return
    yield "## Kernels that run"
    yield ""
    yield "| kernel | backend | calls | config | ops |"
    yield "|---|---|---|---|---|"
    for file in used:
        calls = sum(user.kernel.calls for user in file.users if user.kernel)
        config, ops = settings(file.config), ", ".join(file.kernel.ops)
        name = file.path.removeprefix("kernels/").rpartition(".")[0]
        yield (
            f"| [{name}]({file.path}) | {_code(file.kernel.backend)} | {calls} "
            f"| {_code(config) if config else ''} | {_code(ops) if ops else ''} |"
        )
    yield ""


def _plain(text: str) -> bool:
    return re.fullmatch(r"[\w/!]+", text) is not None


def _code(text: str) -> str:
    """Return text that Markdown shows as it is: one line, no end of a table's cell, no HTML."""
    line = comment(text.strip().split("\n", 1)[0])
    line = line if len(line) <= _LONG else f"{line[: _LONG - 1]}…"
    return "`" + line.replace("`", "'").replace("|", "¦") + "`" if line else "–"
