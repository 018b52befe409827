"""A difference as lines for a terminal or a pipe, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from structdump.analyze.difference import (
    Change,
    CompileDifference,
    ConfigDifference,
    Difference,
    KernelDifference,
    Side,
    StageDifference,
)
from structdump.analyze.text_diff import TextDifference
from structdump.report.printable import printable

_GRAPH_LINES = 40
_KERNEL_LINES = 14
_ITEMS = 12
_VALUE = 160
_ALIKE = 40  # characters at which two guards begin alike that are about the same
_AROUND = 30  # characters shown around what differs between them
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_lines(lines: Iterable[Text], console: Console) -> None:
    """Print lines: cut at the width of a terminal, whole in a pipe."""
    for line in lines:
        if console.is_terminal:
            console.print(line, no_wrap=True, overflow="ellipsis", highlight=False)
        else:
            console.print(line, soft_wrap=True, highlight=False)


def lines_of_sides(a: Side, b: Side) -> Iterator[Text]:
    """Yield what is compared, a line each: program, torch, level and completeness."""
    for name, side in (("A", a), ("B", b)):
        yield Text(f"{name}  {_side(side)}", style="bold")


def lines_of(difference: Difference) -> Iterator[Text]:
    """Yield what differs, a line each; control characters are escaped.

    Example: `[str(line) for line in lines_of(structdump.diff(a, b))][-1] == "no difference"`
    """
    d = difference
    yield from _section("environment", [_change(c) for c in d.environment], limit=30)
    for what, ids in (("only in A", d.only_a), ("only in B", d.only_b)):
        yield from _section(f"compiles {what}", [Text(printable(i)) for i in ids])
    for compiled in d.compiles:
        yield from compile_lines(compiled)
    yield from kernel_lines(d.kernels)
    yield from _section("tuned configurations", [_config(c) for c in d.configs])
    yield from _section("autotune winners", [_config(c) for c in d.autotune])
    yield from _section("notes", [Text(printable(n)) for n in d.notes])
    ignored = f" (ignored: {', '.join(d.ignored)})" if d.ignored else ""
    yield Text("")
    if d.same:
        yield Text(f"no difference{ignored}", style="bold green")
    else:
        yield Text(f"different{ignored}", style="bold red")


def _side(side: Side) -> str:
    rank = f" rank {side.rank}" if side.rank is not None else ""
    cut = ", cut short" if side.complete is False else ""
    torch = f"torch {side.torch or '?'}"
    return printable(f"{side.program or 'unnamed'}{rank}: {torch}, level {side.level}, {side.verdict}{cut}")


def _section(title: str, rows: Sequence[Text], limit: int = _ITEMS) -> Iterator[Text]:
    if not rows:
        return
    yield Text("")
    yield Text(title, style="bold")
    for row in rows[:limit]:
        yield Text("  ") + row
    if len(rows) > limit:
        yield Text(f"  … and {len(rows) - limit} more", style="dim")


def _change(change: Change) -> Text:
    absent = "default" if ": " in change.what else "none"
    return _arrow(f"{change.what}  ", change.a, change.b, absent)


def _arrow(before: str, a: Any, b: Any, absent: str = "none") -> Text:
    return (
        Text(printable(before))
        + Text(_short(a, absent), style="red")
        + Text(" → ")
        + Text(_short(b, absent), style="green")
    )


def _short(value: Any, absent: str) -> str:
    if isinstance(value, list):
        value = "; ".join(map(str, value)) or None
    text = absent if value is None else printable(value)
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def compile_lines(compiled: CompileDifference) -> Iterator[Text]:
    """Yield what differs between two compiles: records, where the graphs part and by which lines, guards."""
    yield Text("")
    yield Text(printable(f"{compiled.label} {compiled.function}"), style="bold")
    for change in compiled.changes:
        yield Text("  ") + _change(change)
    if compiled.first is not None:
        yield from _first(compiled.first)
    if compiled.later:
        count = len(compiled.later)
        yield Text(
            printable(f"  {count} later stages differ too, to {compiled.later[-1].label}"), style="dim"
        )
    for what, stages in (("only in A", compiled.only_a), ("only in B", compiled.only_b)):
        labels = list(dict.fromkeys(s.label for s in stages))
        if labels:
            more = f" and {len(labels) - _ITEMS} more" if len(labels) > _ITEMS else ""
            yield Text(printable(f"  stages {what}: {'; '.join(labels[:_ITEMS])}{more}"))
    if compiled.guards is not None:
        removed, added = compiled.guards.removed, compiled.guards.added
        yield Text(f"  guards: {len(removed)} only in A, {len(added)} only in B")
        yield from _marked(_apart(removed, added), _ITEMS)


def _apart(removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    """Yield guards with marks; what two long ones have in common is cut, so that one sees what differs."""
    left = list(added)
    for guard in removed:
        other = next((g for g in left if g[:_ALIKE] == guard[:_ALIKE]), None)
        if other is None:
            yield f"-{guard}"
            continue
        left.remove(other)
        head = max(0, _common(guard, other) - _AROUND)
        tail = _common(guard[head:][::-1], other[head:][::-1]) - _AROUND
        for mark, text in (("-", guard), ("+", other)):
            cut = text[: len(text) - tail] + "…" if tail > _AROUND else text
            yield mark + (f"{text[:_AROUND]}…{cut[head:]}" if head > 2 * _AROUND else cut)
    yield from (f"+{guard}" for guard in left)


def _common(a: str, b: str) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _first(first: StageDifference) -> Iterator[Text]:
    label = printable(first.stage.label)
    if first.shown is not None:
        label += " (only in A)" if first.stage.seq_b is None else " (only in B)"
    yield Text("  the graphs part at ") + Text(label, style="bold yellow")
    if first.last_same is not None:
        yield Text(printable(f"  the same up to {first.last_same.label}"))
    if first.shown is not None:
        yield Text(printable(f"  compared after {first.shown.label}"))
    for what in first.between[:_ITEMS]:
        yield Text(printable(f"  between: {what}"), style="dim")
    if first.same_as is not None:
        yield Text(printable(f"  by the same lines as {first.same_as}"))
        return
    facts = _facts(first)
    if facts:
        yield Text(printable(f"  {facts}"))
    if first.text is not None:
        yield from _marked(first.text.lines, _GRAPH_LINES, first.text.more)


def _facts(first: StageDifference) -> str:
    text: TextDifference = first.text or TextDifference()
    facts = [f"{n:+d} {op}" for op, n in (text.ops or first.ops).items()]
    if len(facts) > _ITEMS:
        facts = [*facts[:_ITEMS], f"and {len(facts) - _ITEMS} more operations"]
    if text.only_order:
        facts.append("the same nodes in another order")
    if text.types:
        facts.append(f"{text.types} nodes differ in shape or type alone")
    if first.text is None:
        facts.append("the texts were not kept")
    return ", ".join(facts)


def _marked(lines: Iterable[str], limit: int, more: int = 0) -> Iterator[Text]:
    lines = list(lines)
    for line in lines[:limit]:
        yield Text("    " + printable(line), style=_STYLES.get(line[:1], ""))
    more += max(0, len(lines) - limit)
    if more:
        yield Text(f"    … and {more} more lines", style="dim")


def kernel_lines(kernels: Sequence[KernelDifference]) -> Iterator[Text]:
    """Yield which kernels were added, removed or changed."""
    if not kernels:
        return
    yield Text("")
    counts = [f"{n} {how}" for how in ("added", "removed", "changed") if (n := _count(kernels, how))]
    yield Text(f"kernels: {', '.join(counts)}", style="bold")
    for kernel in kernels[:_ITEMS]:
        mark = {"added": "+", "removed": "-"}.get(kernel.how, "~")
        name = kernel.name_a if kernel.name_a == kernel.name_b else " → ".join(filter(None, _names(kernel)))
        where = ", ".join(filter(None, (kernel.compile, kernel.direction, kernel.backend)))
        yield Text(printable(f"  {mark} {name} ({where})"), style=_STYLES.get(mark, "yellow"))
        if kernel.ops and kernel.how != "changed":
            yield Text(printable(f"    from {', '.join(kernel.ops)}"), style="dim")
        for change in kernel.changes:
            yield Text("    ") + _change(change)
        yield from _marked(kernel.lines, _KERNEL_LINES)
    if len(kernels) > _ITEMS:
        yield Text(f"  … and {len(kernels) - _ITEMS} more", style="dim")


def _count(kernels: Sequence[KernelDifference], how: str) -> int:
    return sum(k.how == how for k in kernels)


def _names(kernel: KernelDifference) -> tuple[str | None, str | None]:
    return kernel.name_a, kernel.name_b


def _config(config: ConfigDifference) -> Text:
    a, b = config.a or {}, config.b or {}
    line = Text(printable(f"{config.kernel} ({config.compile})"))
    for key in {**a, **b}:
        line += Text("  ") + _arrow(f"{key} ", a.get(key), b.get(key))
    if config.seconds_a is not None and config.seconds_b is not None:
        line += Text(f"  ({_time(config.seconds_a)} → {_time(config.seconds_b)})", style="dim")
    return line


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
