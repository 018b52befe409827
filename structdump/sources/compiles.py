"""Assembles what is known of each compile, from facts that arrive in any order and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.model import (
    CacheState,
    Compile,
    Failure,
    Function,
    GraphBreak,
    Recompile,
    SourceFrame,
    Status,
    Subgraph,
)
from structdump.sources import reasons
from structdump.sources.metrics import Metrics, read_metrics, span
from structdump.sources.resumes import link_breaks

MAX_SYMBOLS = 10_000
MAX_BREAKS = 1_000
MAX_COMPILES = 100_000
_SKIPS = frozenset({"SkipFrame", "SkipCodeRecursiveException"})
_LIMITS = ("Dynamo recompile limit exceeded", "RecompileLimitExceeded")


@dataclass(slots=True)
class _Entry:
    """All facts of one compile id."""

    id: str
    function: Function | None = None
    stack: list[SourceFrame] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    error: Failure | None = None
    recompile: Recompile | None = None
    breaks: list[GraphBreak] = field(default_factory=list)
    symbols: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    cache_reason: str | None = None
    backend: str | None = None
    ended: bool = False
    status: Status | None = None
    seconds: float | None = None
    last_attempt: int = 0


class CompileBook:
    """Collects facts per compile id; `records()` gives the compiles in order of first sight.

    No method raises: what a hostile log puts in the wrong type is left out.

    Example::

        >>> book = CompileBook()
        >>> book.started("0/0", function=Function(name="forward"))
        >>> book.finished("0/0", seconds=1.5)
        >>> book.records()[0].status
        'ok'
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self.versions: dict[str, str] = {}
        self.framework: dict[str, Any] = {}
        self.loads: list[str] = []
        self.names: Mapping[str, str] = {}
        self.unlabelled: str | None = None
        self.piece_of: Callable[[str | None], Subgraph | None] = lambda _: None

    def resolve(self, compile_id: str | None) -> str | None:
        """Return the bundle's id of the compile that torch gives the id `compile_id` at this moment.

        torch uses an id again after `torch._dynamo.reset()`, and has none for what it compiles
        outside of Dynamo; the trace mapper keeps `names`, `unlabelled` and `piece_of` up to date.
        """
        return self.unlabelled if compile_id is None else self.names.get(compile_id, compile_id)

    def seen(self, compile_id: str, attempt: int | None = None) -> None:
        """Note that something of this compile was seen; `attempt` counts from 0."""
        entry = self._entry(compile_id)
        if isinstance(attempt, int) and 0 < attempt < 1_000_000:
            entry.last_attempt = max(entry.last_attempt, attempt)

    def started(
        self,
        compile_id: str,
        function: Function | None = None,
        stack: Iterable[SourceFrame] | None = None,
        backend: str | None = None,
    ) -> None:
        """Note the start of a compile: of which function, and where the program called it.

        What was said before is kept, and completed.
        """
        entry = self._entry(compile_id)
        entry.function = entry.function or function
        entry.stack = entry.stack or list(stack or ())
        entry.backend = entry.backend or backend

    def finished(self, compile_id: str, status: Status | None = None, seconds: float | None = None) -> None:
        """Note the end of a compile. Without a `status` it is ok, unless a failure is known."""
        entry = self._entry(compile_id)
        entry.ended = True
        entry.status = status or entry.status
        entry.seconds = seconds if isinstance(seconds, (int, float)) else entry.seconds

    def failed(
        self,
        compile_id: str,
        exc_type: str,
        message: str,
        traceback: str | None = None,
        user_frame: SourceFrame | None = None,
    ) -> None:
        """Note the exception that ended a compile; a second report only adds what the first lacks."""
        entry = self._entry(compile_id)
        failure = Failure(
            type=exc_type or "Exception", message=message, traceback=traceback, user_frame=user_frame
        )
        entry.error = failure if entry.error is None else _merged(entry.error, failure)

    def graph_broke(self, compile_id: str, broke: GraphBreak) -> None:
        """Note where Dynamo stopped a graph; the same break seen twice counts once."""
        breaks = self._entry(compile_id).breaks
        if broke not in breaks and len(breaks) < MAX_BREAKS:
            breaks.append(broke)

    def recompiled(self, compile_id: str, recompile: Recompile | None) -> None:
        """Note why a function was compiled again."""
        if recompile is not None:
            previous = recompile.previous
            named = self.names.get(previous, previous) if previous else None
            self._entry(compile_id).recompile = recompile.model_copy(update={"previous": named})

    def cache_answered(
        self, compile_id: str, cache: str, state: str, key: str | None = None, reason: str | None = None
    ) -> None:
        """Note what a cache ("fx_graph" or "aot_autograd") answered: hit, miss or bypass."""
        entry = self._entry(compile_id)
        entry.answers.setdefault(cache, []).append(state)
        entry.cache_reason = entry.cache_reason or reason
        if key and cache not in entry.keys:
            entry.keys[cache] = key

    def loaded(self, what: str) -> None:
        """Note in words that something came ready-made from a cache which names no compile."""
        if what not in self.loads and len(self.loads) < MAX_BREAKS:
            self.loads.append(what)

    def symbol(self, compile_id: str, name: str, facts: Mapping[str, Any]) -> None:
        """Note facts of one symbolic shape, such as its hint, range and source."""
        symbols = self._entry(compile_id).symbols
        if name in symbols or len(symbols) < MAX_SYMBOLS:
            symbols.setdefault(name, {}).update(facts)

    def measured(self, compile_id: str, values: Mapping[str, Any], backward: bool = False) -> None:
        """Read torch's `CompilationMetrics`, given as a mapping, of one compile."""
        entry = self._entry(compile_id)
        read_metrics(entry.metrics, values, backward)
        if entry.metrics.seconds is None and compile_id.startswith("aot/"):
            entry.metrics.seconds = span(values)  # torch reports such a compile as the program's own time
        if values.get("is_runtime") is not True and not backward:
            entry.ended = True
        if entry.recompile is None:
            self.recompiled(compile_id, reasons.recompile(values.get("recompile_reason")))
        for key, name in (("pytorch_version", "torch"), ("triton_version", "triton")):
            if isinstance(values.get(key), str) and values[key]:
                self.versions.setdefault(name, values[key])
        for key, name in (("python_version", "python"), ("cuda_version", "cuda")):
            if isinstance(values.get(key), str) and values[key]:
                self.versions.setdefault(name, values[key].split(" ", 1)[0])

    def function_of(self, compile_id: str | None) -> str | None:
        """Return the name of the function that a compile is of, if it is known."""
        entry = self._entries.get(self.resolve(compile_id) or "")
        if entry is None:
            return None
        function = entry.function or entry.metrics.function or self._function(entry)
        return function.name if function else None

    def answers(self) -> dict[str, dict[str, list[str]]]:
        """Return per compile id and cache what it answered, in order."""
        return {i: {c: list(a) for c, a in e.answers.items()} for i, e in list(self._entries.items())}

    def any_failed(self) -> bool:
        """Tell whether a compile failed, fell back to eager, or hit the recompile limit."""
        return any(c.status in ("failed", "fell_back") for c in self.records())

    def record(self, compile_id: str) -> Compile | None:
        """Return what is known of one compile by now; None if nothing is."""
        entry = self._entries.get(self.names.get(compile_id, compile_id))
        return None if entry is None else _compile(entry, self._function(entry))

    def records(self) -> list[Compile]:
        """Return the compiles in order of first sight; graph breaks point at who took over."""
        compiles = [_compile(entry, self._function(entry)) for entry in list(self._entries.values())]
        link_breaks(compiles)
        return compiles

    def _entry(self, compile_id: str) -> _Entry:
        compile_id = self.names.get(compile_id, compile_id)
        entry = self._entries.get(compile_id)
        if entry is None:
            entry = _Entry(compile_id)
            if len(self._entries) < MAX_COMPILES:
                self._entries[compile_id] = entry
        return entry

    def _function(self, entry: _Entry) -> Function | None:
        """Return what a compile is of; a recompile that never started is of its frame's function."""
        known = _joined(entry.function, entry.metrics.function)
        given, mark, number = entry.id.partition("#")
        if known is None and not given.endswith("/0"):
            first = self._entries.get(given.rpartition("/")[0] + "/0" + mark + number)
            known = _joined(first.function, first.metrics.function) if first else None
        return known


def _compile(entry: _Entry, function: Function | None) -> Compile:
    m = entry.metrics
    error = entry.error
    if m.failure is not None:
        error = m.failure if error is None else _merged(error, m.failure)
    return Compile(
        id=entry.id,
        function=function,
        status=_status(entry, error),
        seconds=entry.seconds if entry.seconds is not None else m.seconds,
        phases=dict(m.phases),
        error=error,
        recompile=entry.recompile,
        graph_breaks=[b.model_copy() for b in entry.breaks],
        stack=entry.stack,
        guards=m.guards,
        symbols=dict(entry.symbols),
        cache=CacheState(
            fx_graph=_answer(entry.answers.get("fx_graph")),
            aot_autograd=_answer(entry.answers.get("aot_autograd")),
            key=entry.keys.get("fx_graph") or entry.keys.get("aot_autograd"),
            reason=entry.cache_reason,
        ),
        backend=entry.backend,
        metrics=dict(m.values),
        attempts=max(entry.last_attempt + 1, len(m.restarts) + 1),
    )


def _joined(first: Function | None, second: Function | None) -> Function | None:
    if first is None or second is None:
        return first or second
    return Function(
        name=first.name or second.name, file=first.file or second.file, line=first.line or second.line
    )


def _merged(first: Failure, second: Failure) -> Failure:
    """Join two reports of one failure: the traceback's own words, the metrics' user frame."""
    return Failure(
        type=first.type,
        message=first.message or second.message,
        traceback=first.traceback or second.traceback,
        user_frame=first.user_frame or second.user_frame,
    )


def _status(entry: _Entry, error: Failure | None) -> Status:
    if entry.status is not None:
        return entry.status
    if error is not None:
        return _status_of(error, entry)
    if entry.metrics.guarded is False:
        return "skipped"
    return "ok" if entry.ended else "unfinished"


def _status_of(error: Failure, entry: _Entry) -> Status:
    """Tell whether the user met the exception, or Dynamo went on without this compile.

    As torch/_dynamo/convert_frame.py does (2.9 to 2.13): an Unsupported that is not wanted with
    fullgraph was reported as a graph break before, and one at the recompile limit names that limit.
    """
    kind = error.type.rsplit(".", 1)[-1]
    if entry.metrics.backward_failed:
        return "failed"
    if kind in _SKIPS:
        return "skipped"
    if entry.metrics.suppressed or kind == "RecompileLimitExceeded":
        return "fell_back"
    if kind == "Unsupported" and (entry.breaks or error.message.startswith(_LIMITS)):
        return "fell_back"
    return "failed"


def _answer(answers: list[str] | None) -> str | None:
    """Sum up the answers of one cache; forward and backward may have got different ones."""
    if not answers:
        return None
    return answers[0] if len(set(answers)) == 1 else "mixed"
