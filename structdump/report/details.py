"""The parts of a bundle one by one, as tables: passes, kernels, configs, breaks, time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from structdump.analyze.summary import config
from structdump.bundle.loaded import LoadedBundle
from structdump.report.failure import place
from structdump.report.lines import Line, labelled, say, seconds, table
from structdump.report.timeline import timeline
from structdump.report.tree import nodes_before, operations, reason, settings

_BAR = 16


def passes(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield each run of a pass: where it ran, nodes before and after, whether it changed the graph."""
    rows = []
    for run in bundle.passes():
        if run.phase == "before":
            continue
        before = nodes_before(run)
        mark = ("changed", "yellow") if run.changed else ("", "")
        rows.append(
            [
                say(str(run.seq)),
                say(run.compile_id or ""),
                say(run.direction or ""),
                say("" if before is None else str(before)),
                say("" if run.nodes is None else str(run.nodes)),
                say(mark),
                say((run.name, "" if run.changed else "dim")),
            ]
        )
    yield from _titled(
        "Passes", "no pass was recorded; every_pass or a passes filter records them", rows
    ) or table(("seq", "compile", "direction", "before", "after", "", "pass"), rows, frozenset({0, 3, 4}))


def kernels(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield each kernel that runs: backend, calls, and below its config and the ops it was made from."""
    rows, below = [], []
    for item in bundle.kernels():
        kernel = item.kernel
        assert kernel is not None  # noqa: S101 # kernels() gives no others
        known = kernel.loads is not None
        counts = f"{kernel.loads}/{kernel.stores or 0}/{kernel.reductions or 0}" if known else ""
        rows.append(
            [
                say(str(item.seq)),
                say((item.compile_id or "", "cyan")),
                say(kernel.backend),
                say(f"×{kernel.calls}"),
                say((counts, "dim")),
                say((kernel.name, "bold" if item.digest else "")),
            ]
        )
        facts = {"config": settings(item), "from": operations(kernel.ops, 99)}
        below.append([labelled(label, say(value), 9) for label, value in facts.items() if value])
    if not rows:
        yield from _titled("Kernels that run", "none", rows)
        return
    header = ("seq", "compile", "backend", "calls", "ld/st/red", "kernel")
    top, *lines = table(header, rows, frozenset({0, 3}))
    yield top
    for line, more in zip(lines, below, strict=True):
        yield line
        for one in more:
            yield one._replace(first="     ", rest="     " + one.rest)


def configs(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield the best config of each tuned kernel, and each tuned operation with its choices."""
    rows = []
    for item in bundle.configs():
        value = (item.kernel and item.kernel.best_config) or item.data
        facts = value if isinstance(value, dict) else {}
        took = facts.get("time_taken_ms")
        found = "coordinate descent" if facts.get("found_by_coordesc") else ""
        rows.append(
            [
                say(item.compile_id or ""),
                say(item.kernel.name if item.kernel else item.name),
                say(f"{took} ms" if took is not None else ""),
                say((" ".join(f"{k}={v}" for k, v in config(facts).items()), "green"), "  ", (found, "dim")),
            ]
        )
    yield from _titled("Best configs", "none was tuned", rows) or table(
        ("compile", "kernel", "tuned in", "config"), rows, frozenset({2})
    )
    for item in bundle.artifacts_like(kind="autotune"):
        tuned = item.autotune
        if tuned is None:
            continue
        yield Line(Text(""))
        yield Line(say((tuned.operation, "bold"), "  ", (" × ".join(tuned.shapes), "dim")))
        for choice in tuned.choices:
            won = choice.name == tuned.winner
            yield labelled(
                seconds(choice.seconds) or "–",
                say((choice.name, "green" if won else ""), "  ← winner" if won else ""),
            )


def breaks(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield each graph break with the program's stack, and each recompile with the guard that failed."""
    found = False
    for record in bundle.compiles:
        name = record.function.name if record.function else ""
        head = say((record.id, "bold cyan"), " ", (name, "bold"))
        if record.recompile is not None:
            again = record.recompile
            yield from [Line(Text(""))] * found
            found = True
            yield Line(say(("recompile   ", "bold"), head))
            if again.previous:
                yield labelled("guard of", say(again.previous))
            yield labelled("failed", say((again.guard or again.reason, "yellow")))
        for broke in record.graph_breaks:
            yield from [Line(Text(""))] * found
            found = True
            resumed = f"  resumed by {broke.resumed_by}" if broke.resumed_by else ""
            yield Line(say(("graph break ", "bold"), head, (resumed, "dim")))
            yield labelled("reason", say((reason(broke.reason), "yellow")))
            for frame in broke.stack:
                where = place(frame.file, frame.line)
                yield labelled(
                    "", say((where, "dim" if where.startswith("torch/") else ""), f" in {frame.name}")
                )
                if frame.code and not where.startswith("torch/"):
                    yield labelled("", say("    ", (frame.code.strip(), "dim")))
    if not found:
        yield Line(say(("no graph breaks, no recompiles", "dim")))


def times(bundle: LoadedBundle) -> Iterator[Line]:
    """Yield the phases of each compile in order, as bars; starts are known at level full."""
    spans = [s for s in timeline(bundle) if s.seconds is not None]
    longest = max((s.seconds or 0.0 for s in spans), default=0.0)
    rows = []
    for span in spans:
        share = (span.seconds or 0.0) / longest if longest else 0.0
        rows.append(
            [
                say(span.compile_id or ""),
                say("" if span.start is None else f"{span.start:.3f} s"),
                say(seconds(span.seconds)),
                say(("█" * round(share * _BAR) or "▏", "cyan")),
                say("  " * span.depth, span.name),
            ]
        )
    yield from _titled("Phases", "no times were recorded", rows) or table(
        ("compile", "start", "took", "", "phase"), rows, frozenset({1, 2})
    )


def _titled(title: str, none: str, rows: list[list[Text]]) -> list[Line]:
    return [] if rows else [Line(say((f"{title}: {none}", "dim")))]
