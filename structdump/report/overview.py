"""The first screen of a bundle: what ran, whether all of it is here, what failed, what was compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from structdump.analyze.summary import cures, parts
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Environment
from structdump.report.failure import failure_lines, place
from structdump.report.lines import Line, labelled, plural, say, size
from structdump.report.ranks import ranks_lines
from structdump.report.tree import MARKS, tree

VERDICTS = {
    "cold": ("everything was compiled anew", "green"),
    "warm": ("caches answered; what they skip is not here", "yellow"),
    "partial": ("some of it is not here", "yellow"),
    "empty": ("nothing was compiled", "dim"),
}
_VERSIONS = ("torch", "triton", "vllm", "sglang", "python", "depyf")
_REASONS = 4
_CONFIGS = 8
_BLANK = Line(Text(""))


def overview(
    bundle: LoadedBundle, *, full: bool = False, whole: LoadedBundle | None = None
) -> Iterator[Line]:
    """Yield the lines of `structdump show`, most important first.

    `whole` is the merged bundle that `bundle` is one rank of, if it is.

    Example::

        print_lines(overview(structdump.load("run.json.zst")), Console())
    """
    yield from _title(bundle, full=full)
    if whole is not None and whole.runs is not None:
        yield from ranks_lines(whole)
    yield from _failures(bundle)
    if bundle.compiles or bundle.artifacts:
        yield _BLANK
        yield from tree(parts(bundle), full=full)
    yield _BLANK
    yield from _kept(bundle)
    for error in bundle.hook_errors:
        times = f" ×{error.count}" if error.count > 1 else ""
        yield labelled("hook error", say((f"{error.hook}{times}: ", "yellow"), error.error))


def _title(bundle: LoadedBundle, *, full: bool) -> Iterator[Line]:
    run = bundle.run
    of = f" of {run.world_size}" if run.world_size else ""
    rank = f"  rank {run.rank}{of}" if run.rank is not None else ""
    origin = {"directory": "a dump directory", "trace_log": "a TORCH_TRACE log", "merge": "merged bundles"}
    source = origin.get(bundle.producer.source)
    program = run.program or source or "bundle"
    when = (run.started or "")[:16].replace("T", " ")
    yield Line(
        say((program, "bold"), (rank, "bold"), (f"  level {bundle.level}", "")),
        right=say((f"{when} UTC" if when else "", "dim")),
    )
    if len(run.argv) > 1:
        yield labelled("arguments", say(" ".join(run.argv[1:])))
    if source and run.program:
        yield labelled("packed from", say(source))
    yield from _environment(bundle.environment, full=full)
    facts = bundle.completeness
    sentence, style = VERDICTS[facts.verdict]
    yield labelled("verdict", say((facts.verdict, f"bold {style}"), f", {sentence}"))
    if bundle.complete is False:
        yield labelled("", say(("unfinished: the program ended before its capture did", "yellow")))
    for reason in facts.reasons[:_REASONS]:
        yield labelled("", say((reason, "dim")))
    if len(facts.reasons) > _REASONS:
        yield labelled("", say((f"… and {len(facts.reasons) - _REASONS} more (--json)", "dim")))
    for hint in facts.hints:
        yield labelled("cure", say(hint))


def _environment(environment: Environment, *, full: bool) -> Iterator[Line]:
    versions = environment.versions
    words = [f"{name} {versions[name]}" for name in _VERSIONS if versions.get(name)]
    if words:
        yield labelled("versions", say(", ".join(words)))
    devices = [_device(d.name, d.memory) for d in environment.devices]
    if devices:
        count = f"{len(devices)} × " if len(devices) > 1 else ""
        drivers = ", ".join(f"{name} {version}" for name, version in environment.drivers.items())
        yield labelled("devices", say(count, devices[0], (f"  {drivers}" if drivers else "", "dim")))
    elif environment.cpu:
        cores = f", {plural(environment.cpu_count, 'core')}" if environment.cpu_count else ""
        yield labelled("devices", say(f"no accelerator in use; {environment.cpu}{cores}"))
    changed = [
        f"{module.removeprefix('torch.').removesuffix('.config').replace('_', '')}.{key}={_short(value)}"
        for module, values in environment.configs.items()
        for key, value in values.items()
    ]
    if changed:
        most = len(changed) if full else _CONFIGS
        more = f", … {len(changed) - most} more (--full)" if len(changed) > most else ""
        yield labelled("configs", say(", ".join(changed[:most]), (more, "dim")))


def _device(name: str, memory: int | None) -> str:
    return f"{name} ({size(memory)})" if memory else name


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "…"


def _failures(bundle: LoadedBundle) -> Iterator[Line]:
    told: dict[str, str] = {}
    for record in bundle.compiles:
        if record.error is None or record.status not in ("failed", "fell_back"):
            continue
        yield _BLANK
        mark, style = MARKS[record.status]
        function = record.function
        name = function.name if function else ""
        where = place(function.file, function.line) if function and function.file else ""
        word = "failed" if record.status == "failed" else "fell back to eager"
        yield Line(
            say((mark, style), " ", (record.id, "bold cyan"), " ", (name, "bold"), " ", (word, style)),
            rest="  ",
            tail=say((where, "dim")),
        )
        same = told.setdefault(record.error.message, record.id)
        if same == record.id:
            yield from failure_lines(record.error)
        else:
            yield Line(say("with the same error as ", (same, "cyan")), "  ", "  ")


def _kept(bundle: LoadedBundle) -> Iterator[Line]:
    facts = bundle.completeness
    counts = f"{facts.kept:,} kept, {facts.indexed:,} listed, {facts.dropped:,} counted"
    yield labelled("artifacts", say(f"{facts.seen:,} seen: {counts}"))
    for reason, count, cure in cures(bundle):
        amount = count.indexed + count.dropped
        told = f", {size(count.bytes)}" if count.bytes else ""
        help_ = f" → {cure}" if cure else ""
        yield labelled("", say((f"{amount:,} without text ({reason}{told}){help_}", "dim")))
    if bundle.redactions:
        words = ", ".join(plural(count, rule) for rule, count in bundle.redactions.items())
        yield labelled("redacted", say(words))
    elif bundle.config.get("redact") is False:
        yield labelled("redacted", say(("nothing: made with redaction off", "yellow")))
