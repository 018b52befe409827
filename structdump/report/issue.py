"""A bundle as the text of an issue: what compiled, what failed, where, and the line that names the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from structdump.analyze.summary import Part, config, parts
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Environment, Failure
from structdump.report.failure import place
from structdump.report.printable import printable

#: GitHub takes 65,536 characters; the reporter has something to say as well.
LIMIT = 60_000
_ROWS = 20
_CELL = 100
_FAILURES = 3
_TRACEBACK = 6_000
_ENVIRONMENT = 8_000
_PACKAGES = (
    "torch",
    "triton",
    "vllm",
    "sglang",
    "numpy",
    "transformers",
    "torchao",
    "torchvision",
    "depyf",
    "structdump",
)


def issue_text(bundle: LoadedBundle, attachment: str, size: int) -> str:
    """Return Markdown to paste into an issue: at most 60,000 characters, and nothing in it but text.

    What the bundle says stands in code, where no mention, link, HTML or table of a stranger's comes to life.
    `attachment` is the file's name and `size` its bytes.

    Example::

        print(issue_text(structdump.load("run.json.zst"), "run.zip", 28_400))
    """
    whole = parts(bundle)
    sections = [
        _attached(bundle, attachment, size),
        _compiled(whole),
        _failed(bundle),
        _broken(bundle),
        _kernels(bundle),
        _environment(bundle.environment),
    ]
    text = "\n\n".join("\n".join(lines) for section in sections if (lines := list(section)))
    assert len(text) < LIMIT  # noqa: S101 # each section has its bounds, and they add up to less
    return text + "\n"


def code(value: object, limit: int = _CELL, *, cell: bool = False) -> str:
    """Return text as inline code of one line; with `cell`, for a table.

    Example::

        >>> code("a `b` @c")
        "`a 'b' @c`"
    """
    text = " ".join(printable(value).replace("`", "'").split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return f"`{text.replace('|', chr(92) + '|') if cell else text}`" if text else ""


def fenced(text: str, limit: int, language: str = "text") -> str:
    """Return text as a block of code that no line in it can end; of a long one, its start and its end."""
    clean = printable(text.rstrip(), multiline=True)
    if len(clean) > limit:
        clean = f"{clean[: limit // 3]}\n…\n{clean[-(2 * limit // 3) :]}"
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", clean)), 3)
    return f"{fence}{language}\n{clean}\n{fence}"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows[:_ROWS]:
        yield "| " + " | ".join(code(value, cell=True) for value in row) + " |"
    if len(rows) > _ROWS:
        yield ""
        yield f"… and {len(rows) - _ROWS:,} more."


def _attached(bundle: LoadedBundle, attachment: str, size: int) -> Iterator[str]:
    facts = bundle.completeness
    told = ", ".join(f"{count:,} × {rule}" for rule, count in list(bundle.redactions.items())[:8])
    yield "### What torch.compile did"
    yield ""
    yield (
        f"Attached: {code(attachment)} ({size / 1024:,.0f} KiB, level {code(bundle.level)}, redacted:"
        f" {code(told or 'nothing found')}). Open it with {code('structdump show ' + attachment)}."
    )
    yield ""
    yield (
        f"Verdict: {code(facts.verdict)}; {facts.kept:,} of {facts.seen:,} artifacts with text,"
        f" {facts.indexed:,} listed, {facts.dropped:,} counted."
    )
    for reason in facts.reasons[:5]:
        yield f"- {code(reason, 200)}"


def _compiled(whole: list[Part]) -> Iterator[str]:
    rows = []
    for part in _walk(whole):
        record = part.compile
        if record is None:
            continue
        function = record.function
        where = place(function.file, function.line) if function and function.file else ""
        took = f"{record.seconds:.2f} s" if record.seconds is not None else ""
        rows.append(
            (part.id, function.name if function else "", where, record.status, took,
             len(record.graph_breaks) or "", len(part.kernels) or "")
        )  # fmt: skip
    if rows:
        yield "#### Compiles"
        yield ""
        yield from _table(("id", "function", "where", "status", "time", "breaks", "kernels"), rows)


def _walk(whole: Iterable[Part]) -> Iterator[Part]:
    for part in whole:
        yield part
        yield from _walk(part.resumed)


def _failed(bundle: LoadedBundle) -> Iterator[str]:
    errors = [(c.id, c.error) for c in bundle.compiles if c.error and c.status in ("failed", "fell_back")]
    different: dict[str, tuple[str, Failure]] = {}
    for compile_id, error in errors:
        different.setdefault(error.message, (compile_id, error))
    for compile_id, error in list(different.values())[:_FAILURES]:
        yield f"#### Failed: {code(compile_id)} {code(error.type)}"
        yield ""
        yield fenced(error.traceback or error.message, _TRACEBACK, "pytb")
        yield ""
    if len(different) > _FAILURES:
        yield f"… and {len(different) - _FAILURES:,} more errors."


def _broken(bundle: LoadedBundle) -> Iterator[str]:
    rows: list[tuple[object, ...]] = []
    for record in bundle.compiles:
        if record.recompile is not None:
            rows.append((record.id, "recompile", record.recompile.guard or record.recompile.reason))
        for broke in record.graph_breaks:
            user = broke.stack[-1] if broke.stack else None
            at = f" at {place(user.file, user.line)}" if user else ""
            rows.append((record.id, "graph break" + at, broke.reason))
    if rows:
        yield "#### Graph breaks and recompiles"
        yield ""
        yield from _table(("id", "what", "reason"), rows)


def _kernels(bundle: LoadedBundle) -> Iterator[str]:
    found = bundle.kernels()
    if not found:
        return
    backends: dict[str, int] = {}
    for item in found:
        backends[_backend(item)] = backends.get(_backend(item), 0) + 1
    yield "#### Kernels that run"
    yield ""
    yield ", ".join(f"{count:,} {code(name)}" for name, count in backends.items()) + "."
    tuned = [
        (item.compile_id, item.name, " ".join(f"{k}={v}" for k, v in config(item.best_config).items()))
        for item in found
        if item.best_config
    ]
    if tuned:
        yield ""
        yield from _table(("id", "kernel", "config"), tuned)


def _backend(item: ArtifactView) -> str:
    return item.kernel.backend if item.kernel else "other"


def _environment(environment: Environment) -> Iterator[str]:
    """As torch.utils.collect_env prints it, which the bug templates of PyTorch and vLLM ask for."""
    versions, drivers = environment.versions, environment.drivers
    lines = [
        f"PyTorch version: {versions.get('torch')}",
        f"CUDA used to build PyTorch: {drivers.get('cuda')}",
        f"ROCM used to build PyTorch: {drivers.get('hip')}",
        f"OS: {environment.os}",
        f"Python version: {versions.get('python')} ({versions.get('implementation')})",
        *(f"GPU {n if d.index is None else d.index}: {d.name}" for n, d in enumerate(environment.devices)),
        f"Nvidia driver version: {drivers.get('nvidia')}",
        f"cuDNN version: {drivers.get('cudnn')}",
        f"CPU: {environment.cpu} ({environment.cpu_count} cores)",
        "",
        "Versions of relevant libraries:",
        *(f"[pip3] {name}=={versions[name]}" for name in _PACKAGES if versions.get(name)),
        "",
        "Settings that differ from their defaults:",
        *(
            f"{module}.{key} = {value}"
            for module, values in environment.configs.items()
            for key, value in values.items()
        ),
        *(f"{name}={value}" for name, value in environment.variables.items()),
    ]
    yield "#### Environment"
    yield ""
    yield "<details><summary>as collect_env prints it</summary>"
    yield ""
    yield fenced("\n".join(line[:500] for line in lines), _ENVIRONMENT)
    yield ""
    yield "</details>"
