"""Assembles what is known of each compile, from facts that arrive in any order and shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
)
from structdump.sources import reasons
from structdump.sources.metrics import Metrics, read_metrics

MAX_SYMBOLS = 10_000
MAX_BREAKS = 1_000
_SOFT = frozenset({"Unsupported", "SkipFrame", "SkipCodeRecursiveException", "RecompileLimitExceeded"})
"""Failures after which Dynamo runs the frame uncompiled (torch 2.9 to 2.13, convert_frame.py)."""


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
    cache_key: str | None = None
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
        self.configs: dict[str, dict[str, Any]] = {}
        self.framework: dict[str, Any] = {}
        self.loads: list[str] = []

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
        """Note the start of a compile: of which function, and where the program called it."""
        entry = self._entry(compile_id)
        entry.function = function or entry.function
        entry.stack = list(stack or entry.stack)
        entry.backend = backend or entry.backend

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
        """Note the exception that ended a compile; what is known already is not lost."""
        entry = self._entry(compile_id)
        old = entry.error
        entry.error = Failure(
            type=exc_type or (old.type if old else "Exception"),
            message=message or (old.message if old else ""),
            traceback=traceback or (old.traceback if old else None),
            user_frame=user_frame or (old.user_frame if old else None),
        )

    def graph_broke(self, compile_id: str, broke: GraphBreak) -> None:
        """Note where Dynamo stopped a graph; the same break seen twice counts once."""
        breaks = self._entry(compile_id).breaks
        if broke not in breaks and len(breaks) < MAX_BREAKS:
            breaks.append(broke)

    def recompiled(self, compile_id: str, recompile: Recompile | None) -> None:
        """Note why a function was compiled again."""
        if recompile is not None:
            self._entry(compile_id).recompile = recompile

    def cache_answered(
        self, compile_id: str, cache: str, state: str, key: str | None = None, reason: str | None = None
    ) -> None:
        """Note what a cache ("fx_graph" or "aot_autograd") answered: hit, miss or bypass."""
        entry = self._entry(compile_id)
        entry.answers.setdefault(cache, []).append(state)
        entry.cache_reason = entry.cache_reason or reason
        if key and (cache == "fx_graph" or entry.cache_key is None):
            entry.cache_key = key

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
        if values.get("is_runtime") is not True and not backward:
            entry.ended = True
        if entry.recompile is None:
            entry.recompile = reasons.recompile(values.get("recompile_reason"))
        for key, name in (("pytorch_version", "torch"), ("triton_version", "triton")):
            if isinstance(values.get(key), str) and values[key]:
                self.versions.setdefault(name, values[key])
        for key, name in (("python_version", "python"), ("cuda_version", "cuda")):
            if isinstance(values.get(key), str) and values[key]:
                self.versions.setdefault(name, values[key].split(" ", 1)[0])

    def function_of(self, compile_id: str | None) -> str | None:
        """Return the name of the function that a compile is of, if it is known."""
        entry = self._entries.get(compile_id or "")
        if entry is None:
            return None
        function = entry.function or entry.metrics.function
        return function.name if function else None

    def answers(self) -> dict[str, dict[str, list[str]]]:
        """Return per compile id and cache what it answered, in order."""
        return {i: {c: list(a) for c, a in e.answers.items()} for i, e in list(self._entries.items())}

    def records(self) -> list[Compile]:
        """Return the compiles in order of first sight; graph breaks point at who took over."""
        compiles = [_compile(entry) for entry in list(self._entries.values())]
        _link_breaks(compiles)
        return compiles

    def _entry(self, compile_id: str) -> _Entry:
        entry = self._entries.get(compile_id)
        return entry if entry is not None else self._entries.setdefault(compile_id, _Entry(compile_id))


def _compile(entry: _Entry) -> Compile:
    m = entry.metrics
    error = entry.error
    if m.failure is not None:
        error = m.failure if error is None else _merged(error, m.failure)
    return Compile(
        id=entry.id,
        function=_function(entry.function, m.function),
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
            key=entry.cache_key,
            reason=entry.cache_reason,
        ),
        backend=entry.backend,
        metrics=dict(m.values),
        attempts=max(entry.last_attempt + 1, len(m.restarts) + 1),
    )


def _function(first: Function | None, second: Function | None) -> Function | None:
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
        soft = error.type.rsplit(".", 1)[-1] in _SOFT
        return "fell_back" if soft or entry.metrics.suppressed else "failed"
    if entry.metrics.guarded is False:
        return "skipped"
    return "ok" if entry.ended else "unfinished"


def _answer(answers: list[str] | None) -> str | None:
    """Sum up the answers of one cache; forward and backward may have got different ones."""
    if not answers:
        return None
    return answers[0] if len(set(answers)) == 1 else "mixed"


def _link_breaks(compiles: list[Compile]) -> None:
    resumes: dict[tuple[str, int], list[str]] = {}
    for compile_ in compiles:
        point = reasons.resume_point(compile_.function.name) if compile_.function else None
        if point is not None:
            resumes.setdefault(point, []).append(compile_.id)
    for compile_ in compiles:
        for broke in compile_.graph_breaks:
            for frame in reversed(broke.stack):
                found = resumes.get((reasons.plain_name(frame.name), frame.line or -1))
                if found and found[0] != compile_.id:
                    broke.resumed_by = found[0]
                    break
