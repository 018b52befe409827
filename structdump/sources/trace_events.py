"""The one mapping from torch's structured trace records to events and facts about compiles.

Live hooks and the log reader both feed it, so a bundle is the same from either.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from structdump.bundle.model import Direction, Function, Recompile, SourceFrame, Subgraph
from structdump.sources import reasons
from structdump.sources.compiles import CompileBook
from structdump.sources.event import Event
from structdump.sources.metrics import CLOCKS, CONFIGS
from structdump.sources.trace_names import NAMED, Shape, shape


@dataclass(slots=True)
class TraceRecord:
    """One call of `torch._logging.trace_structured`, or one record of a log made by it.

    `metadata` may be a callable, `payload` is one; each is called at most once. `metadata` is what
    the record says of itself, without the ids that torch adds. `stack` is the record's own stack.
    """

    name: str
    metadata: Callable[[], Any] | Any = None
    payload: Callable[[], Any] | None = None
    compile_id: str | None = None
    attempt: int | None = None
    rank: int | None = None
    stack: Any = None
    subgraph_name: str | None = None
    is_backward: bool | None = None
    graph_id: str | None = None
    thread: int | None = None


@dataclass(slots=True)
class _Progress:
    """How far one compile is, to tell forward from backward where torch does not say."""

    forwards: int = 0
    backwards: int = 0
    inferences: int = 0
    steps: int = 0
    last_step: int = 99


class TraceMapper:
    """Turns records into events for `record`, and feeds `book` with what they say of compiles.

    `intern` resolves torch's interned strings (file names of stack frames) by number; the log
    reader's come as `str` records and need none.

    Example::

        book = CompileBook()
        mapper = TraceMapper(events.append, book)
        mapper.feed(TraceRecord("aot_joint_graph", {}, lambda: text, compile_id="0/0"))
    """

    def __init__(
        self,
        record: Callable[[Event], None],
        book: CompileBook,
        intern: Callable[[int], str | None] | None = None,
    ) -> None:
        self._record = record
        self.book = book
        self.strings: dict[int, str] = {}
        self._intern = intern or self.strings.get
        self._progress: dict[str, _Progress] = {}
        self._piece: Subgraph | None = None
        self._seen_configs: set[str] = set()
        self.output_paths: set[str] = set()

    @staticmethod
    def reads_metadata(name: str) -> bool:
        """Tell whether `feed` looks into the metadata of records of this name."""
        return name in NAMED or shape(name).fact is not None

    def feed(self, r: TraceRecord) -> None:
        """Map one record: at most a few events, the last one being the record itself."""
        if r.name == "str":
            self._learn(r)
            return
        metadata = _Once(r.metadata)
        payload = _Once(r.payload)
        subject, encoding = _subject(metadata()) if r.name in NAMED else (None, None)
        what = shape(r.name, subject, encoding)
        compile_id = r.compile_id
        if compile_id is not None:
            self.book.seen(compile_id, r.attempt)
        direction, inferred = self._direction(what, r, compile_id or "")
        event = Event(
            kind=what.kind,
            name=subject or r.name,
            stage=what.stage,
            phase=what.phase,
            compile_id=compile_id,
            attempt=r.attempt,
            graph_id=r.graph_id,
            direction=direction,
            subgraph=self._subgraph(r),
            language=what.language,
            text=_Text(r.payload is not None, payload, metadata),
            inferred=inferred,
        )
        if what.fact is not None:
            event = getattr(self, "_fact_" + what.fact)(event, compile_id, metadata, payload)
        self._record(event)

    def frames(self, stack: object) -> list[SourceFrame]:
        """Return the frames of a stack as torch logs it, with file names resolved."""
        if not isinstance(stack, (list, tuple)):
            return []
        found = []
        for frame in stack:
            if isinstance(frame, dict):
                number, line = frame.get("filename"), frame.get("line")
                file = self._intern(number) if isinstance(number, int) else number
                found.append(
                    SourceFrame(
                        file=file if isinstance(file, str) else "",
                        line=line if isinstance(line, int) and abs(line) < 2**31 else None,
                        name=_string(frame.get("name")) or "",
                        code=_string(frame.get("loc")),
                    )
                )
        return found

    def _learn(self, r: TraceRecord) -> None:
        pair = r.metadata() if callable(r.metadata) else r.metadata
        if isinstance(pair, (list, tuple)) and len(pair) == 2:
            text, number = pair
            if isinstance(text, str) and isinstance(number, int):
                self.strings[number] = text

    def _subgraph(self, r: TraceRecord) -> Subgraph | None:
        return Subgraph(name=r.subgraph_name) if r.subgraph_name else self._piece

    def _direction(self, what: Shape, r: TraceRecord, compile_id: str) -> tuple[Direction | None, list[str]]:
        if what.step is None and what.stage not in ("forward", "backward"):
            return what.direction, []
        progress = self._progress.setdefault(compile_id, _Progress())
        if what.step is None:
            progress.forwards += what.direction == "forward"
            progress.backwards += what.direction == "backward"
            progress.inferences += what.direction == "inference"
            return what.direction, []
        if what.step <= progress.last_step:
            progress.steps += 1
        progress.last_step = what.step
        if r.is_backward is not None:
            forward: Direction = "forward" if progress.forwards else "inference"
            return ("backward" if r.is_backward else forward), []
        if progress.forwards == 0:
            return ("inference" if progress.inferences else None), ["direction"] * bool(progress.inferences)
        return ("forward" if progress.steps <= progress.forwards else "backward"), ["direction"]

    def _fact_start(self, event: Event, compile_id: str | None, metadata: _Once, _: _Once) -> Event:
        facts = _mapping(metadata())
        stack = self.frames(facts.get("stack"))
        if compile_id is not None:
            function = (
                Function(name=stack[-1].name, file=stack[-1].file, line=stack[-1].line) if stack else None
            )
            self.book.started(compile_id, function=function, stack=stack[:-1])
        return event

    def _fact_metrics(self, event: Event, compile_id: str | None, metadata: _Once, _: _Once) -> Event:
        facts = _mapping(metadata())
        if compile_id is not None:
            self.book.measured(compile_id, facts, backward=event.stage == "backward")
        for name in CONFIGS:
            text = facts.get(name)
            if isinstance(text, str) and text not in self._seen_configs:
                self._seen_configs.add(text)
                self._record(Event("event", name, stage="torch_config", language="json", text=text))
        kept = {k: v for k, v in facts.items() if k not in CONFIGS and k not in CLOCKS}
        event.text = lambda: to_text(kept)
        return event

    def _fact_error(self, event: Event, compile_id: str | None, _: _Once, payload: _Once) -> Event:
        text = _string(payload())
        if compile_id is not None and text:
            kind, message = reasons.exception(text)
            self.book.failed(compile_id, kind, message, text)
        return event

    def _fact_backward_error(self, event: Event, *_: object) -> Event:
        return event

    def _fact_graph_break(self, event: Event, compile_id: str | None, _: _Once, payload: _Once) -> Event:
        text = _string(payload())
        if compile_id is not None and text:
            self.book.graph_broke(compile_id, reasons.graph_break(text))
        return event

    def _fact_recompile(self, event: Event, compile_id: str | None, _: _Once, payload: _Once) -> Event:
        found: Recompile | None = reasons.recompile(_parsed(payload()))
        if compile_id is not None:
            self.book.recompiled(compile_id, found)
        return event

    def _fact_cache(self, event: Event, compile_id: str | None, _: _Once, payload: _Once) -> Event:
        facts = _mapping(_parsed(payload()))
        state = event.name.rsplit("_", 1)[-1]
        key, reason = _string(facts.get("key")), _string(facts.get("cache_bypass_reason"))
        if compile_id is not None:
            self.book.cache_answered(compile_id, event.stage or "", state, key, reason)
        lines = facts.get("components")
        if isinstance(lines, list) and lines:
            joined = lines
            self._record(
                Event(
                    "cache",
                    event.name,
                    stage="key_lines",
                    compile_id=compile_id,
                    attempt=event.attempt,
                    direction=event.direction,
                    subgraph=event.subgraph,
                    text=lambda: "\n".join(map(str, joined)),
                    inferred=event.inferred,
                )
            )
        rest = {k: v for k, v in facts.items() if k != "components"}
        event.data = {k: v for k, v in (("state", state), ("key", key), ("reason", reason)) if v}
        event.text = lambda: to_text(rest)
        return event

    def _fact_symbol(self, event: Event, compile_id: str | None, metadata: _Once, _: _Once) -> Event:
        facts = _mapping(metadata())
        name = _string(facts.get("symbol"))
        if compile_id is not None and name:
            kept = {"hint": facts.get("val"), "range": facts.get("vr"), "source": facts.get("source")}
            self.book.symbol(compile_id, name, {k: v for k, v in kept.items() if isinstance(v, (str, int))})
        return event

    def _fact_specialization(self, event: Event, compile_id: str | None, metadata: _Once, _: _Once) -> Event:
        facts = _mapping(metadata())
        name = _string(facts.get("symbol"))
        if compile_id is not None and name:
            kept = {"specialized": facts.get("value"), "reason": facts.get("reason")}
            self.book.symbol(compile_id, name, {k: v for k, v in kept.items() if isinstance(v, (str, int))})
        return event

    def _fact_output_code(self, event: Event, _: str | None, metadata: _Once, __: _Once) -> Event:
        file = _string(_mapping(metadata()).get("filename"))
        event.data = {"file": file} if file else None
        if file:
            self.output_paths.add(file)
        return event

    def _fact_repro(self, event: Event, *_: object) -> Event:
        return event

    def _fact_torch_version(self, event: Event, _: str | None, __: _Once, payload: _Once) -> Event:
        facts = _mapping(_parsed(payload()))
        if version := _string(facts.get("pytorch_version")):
            self.book.versions.setdefault("torch", version)
        event.data = facts
        return event

    def _fact_vllm_config(self, event: Event, _: str | None, __: _Once, payload: _Once) -> Event:
        self.book.framework.setdefault("vllm", _mapping(_parsed(payload())))
        return event

    def _fact_vllm_piece(self, event: Event, _: str | None, __: _Once, payload: _Once) -> Event:
        facts = _mapping(_parsed(payload()))
        index, name = facts.get("piecewise_index"), _string(facts.get("submod_name"))
        ends = [facts.get("compile_range_start"), facts.get("compile_range_end")]
        self._piece = event.subgraph = Subgraph(
            index=index if isinstance(index, int) else None,
            name=name,
            range=ends if all(isinstance(e, int) for e in ends) else None,
        )
        event.data = facts
        return event


class _Once:
    """A value, or a callable that is called at most once, when the value is first asked for."""

    __slots__ = ("_done", "_source", "_value")

    def __init__(self, source: Any) -> None:
        self._done = not callable(source)
        self._source = source
        self._value = source if self._done else None

    def __call__(self) -> Any:
        if not self._done:
            self._done = True
            source, self._source = self._source, None
            self._value = source()
        return self._value


class _Text:
    """The text of a record: its payload, or its metadata where it has none."""

    __slots__ = ("_has_payload", "_metadata", "_payload")

    def __init__(self, has_payload: bool, payload: _Once, metadata: _Once) -> None:
        self._has_payload = has_payload
        self._payload = payload
        self._metadata = metadata

    def __call__(self) -> str | None:
        value = self._payload() if self._has_payload else None
        if value is None:
            value = self._metadata()
        return None if value is None else to_text(value)


def to_text(value: object) -> str:
    """Return a payload as torch writes it into a log: strings as they are, else JSON by line.

    The layout is that of `trace_structured` in torch 2.13, so that live text and log text are equal.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(item, default=_plain) for item in value) + "\n]"
    return json.dumps(value, default=_plain, indent=0)


def _plain(value: object) -> object:
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else repr(value)


def _subject(metadata: object) -> tuple[str | None, str | None]:
    facts = _mapping(metadata)
    return _string(facts.get("name")), _string(facts.get("encoding"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _parsed(payload: object) -> Any:
    if not isinstance(payload, str):
        return payload
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return payload
