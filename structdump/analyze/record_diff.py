"""What differs in how two compiles of one function went, and in what they guard on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from structdump.analyze import canon
from structdump.analyze.difference import Change, GuardDifference
from structdump.analyze.environment_diff import comparable
from structdump.bundle.loaded import ArtifactView
from structdump.bundle.model import Compile, GraphBreak

_SLOWER = 1.5  # ratio of compile times from which on they differ
_NOTICEABLE = 0.1  # seconds
_GUARD_STAGES = ("cpp_guards", "guards")


def diff_records(a: Compile, b: Compile, *, known: bool = True) -> Iterator[Change]:
    """Yield what differs in how two compiles went: function, status, error, reasons, breaks, times.

    Without `known`, one of them is a directory's, which tells little: nothing is compared then but what
    both state.
    """
    for change in _changes(a, b):
        if known or (change.a is not None and change.b is not None):
            yield change


def _changes(a: Compile, b: Compile) -> Iterator[Change]:
    if a.function and b.function and a.function.name.split("_at_")[0] != b.function.name.split("_at_")[0]:
        yield Change("compiles", "function", a.function.name, b.function.name)
    if a.status != b.status:
        yield Change("compiles", "status", a.status, b.status)
    yield from _texts("compiles", "error", _error(a), _error(b))
    yield from _texts("recompiles", "recompile reason", _reason(a), _reason(b))
    for one, other in zip_longest(a.graph_breaks, b.graph_breaks):
        yield from _texts("breaks", "graph break", _break(one), _break(other))
    if a.backend != b.backend:
        yield Change("compiles", "backend", a.backend, b.backend)
    if comparable(a.symbols) != comparable(b.symbols):
        yield Change("graphs", "symbolic shapes", _symbols(a) or None, _symbols(b) or None)
    if a.seconds is not None and b.seconds is not None:
        fast, slow = sorted((a.seconds, b.seconds))
        if slow > _SLOWER * fast and slow - fast > _NOTICEABLE:
            yield Change("times", "seconds", a.seconds, b.seconds)


def _texts(part: str, what: str, a: str | None, b: str | None) -> Iterator[Change]:
    if canon.plain(a or "") != canon.plain(b or ""):
        yield Change(part, what, a, b)


def _error(record: Compile) -> str | None:
    return f"{record.error.type}: {record.error.message}" if record.error else None


def _reason(record: Compile) -> str | None:
    """Return why it was compiled again, without the id of the compile whose guard failed."""
    return record.recompile.reason.split(": ", 1)[-1] if record.recompile else None


def _break(graph_break: GraphBreak | None) -> str | None:
    if graph_break is None:
        return None
    at = graph_break.stack[-1] if graph_break.stack else None
    return f"{graph_break.reason} (in {at.name})" if at else graph_break.reason


def _symbols(record: Compile) -> list[str]:
    """Return each symbol with its hint, range and source: `s77 = 4 in [2, int_oo], L['x'].size()[0]`."""
    out = []
    for name, facts in record.symbols.items():
        known = facts if isinstance(facts, dict) else {"hint": facts}
        where = f" in {known['range']}" if "range" in known else ""
        source = f", {known['source']}" if "source" in known else ""
        out.append(f"{name} = {known.get('hint')}{where}{source}")
    return out


def diff_guards(a: list[ArtifactView], b: list[ArtifactView]) -> GuardDifference | None:
    """Compare the guards of two compiles, as sets; None where they are equal or not kept on both sides."""
    for stage in _GUARD_STAGES:
        texts = [[x for x in side if x.kind == "guards" and x.stage == stage and x.digest] for side in (a, b)]
        if all(texts):
            break
    else:
        return None
    if [x.digest for x in texts[0]] == [x.digest for x in texts[1]]:
        return None
    left, right = (sorted(g for x in side for g in canon.guards(x.text or "")) for side in texts)
    removed, added = _without(left, right), _without(right, left)
    return GuardDifference(removed, added) if removed or added else None


def _without(these: list[str], those: list[str]) -> list[str]:
    left = list(dict.fromkeys(these))
    known = set(those)
    return [x for x in left if x not in known]
