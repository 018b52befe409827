"""What trace records say of the compile itself: the small facts that are read at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structdump.bundle.codec import digest, parse_record
from structdump.bundle.model import Function, SourceFrame, Subgraph
from structdump.errors import CorruptError
from structdump.sources import reasons
from structdump.sources.compiles import CompileBook
from structdump.sources.event import Event
from structdump.sources.metrics import CLOCKS, CONFIGS
from structdump.sources.payload import Once, to_text

MAX_FRAMES = 1_000
"""Frames kept of one stack; Python's own limit on recursion."""
Pieces = Callable[[str | None, Subgraph], None]


class Facts:
    """Reads the facts of one record into the book; `read` dispatches on the name in the table.

    What a record holds in the wrong type is left out. `emit` takes the further events that a record
    gives rise to, such as the lines of a cache key, and `enter_piece` is told when one begins.
    """

    def __init__(self, book: CompileBook, emit: Callable[[Event], None], enter_piece: Pieces) -> None:
        self.book = book
        self.strings: dict[int, str] = {}
        self.intern: Callable[[int], str | None] = self.strings.get
        self.output_paths: set[str] = set()
        self._emit = emit
        self._enter_piece = enter_piece
        self._configs: set[str] = set()
        self._stacked: set[str] = set()
        self._readers: dict[str, Callable[[Event, Once, Once], None]] = {
            "start": self._start,
            "metrics": self._metrics,
            "error": self._error,
            "graph_break": self._graph_break,
            "recompile": self._recompile,
            "cache": self._cache,
            "symbol": self._symbol,
            "output_code": self._output_code,
            "torch_version": self._torch_version,
            "framework": self._framework,
            "piece": self._piece,
            "finished": self._finished,
            "listed_piece": lambda *_: None,  # known from its name alone
        }

    def read(self, fact: str, event: Event, metadata: Once, payload: Once) -> None:
        """Read one record's facts; may refine `event` before it is recorded."""
        self._readers[fact](event, metadata, payload)

    def called_from(self, compile_id: str, stack: object) -> None:
        """Note where the program was when a compile began whose Dynamo frame is not known."""
        if compile_id in self._stacked:
            return
        self._stacked.add(compile_id)
        found = self.frames(stack)
        program = list(found)
        while program and "/torch/" in program[-1].file:
            program.pop()
        self.book.started(compile_id, stack=program)
        if any("/vllm/" in frame.file for frame in found):
            self.book.framework.setdefault("vllm", {})

    def frames(self, stack: object) -> list[SourceFrame]:
        """Return the frames of a stack as torch logs it, with file names resolved."""
        if not isinstance(stack, (list, tuple)):
            return []
        found = []
        for frame in stack[:MAX_FRAMES]:
            if isinstance(frame, dict):
                number, line = frame.get("filename"), frame.get("line")
                file = self.intern(number) if isinstance(number, int) else number
                found.append(
                    SourceFrame.model_construct(
                        file=file if isinstance(file, str) else "",
                        line=line if isinstance(line, int) and 0 <= line < 2**31 else None,
                        name=string(frame.get("name")) or "",
                        code=string(frame.get("loc")),
                    )
                )
        return found

    def _start(self, event: Event, metadata: Once, _: Once) -> None:
        stack = self.frames(mapping(metadata()).get("stack"))
        if event.compile_id is not None and stack:
            last = stack[-1]
            function = Function(name=last.name, file=last.file or None, line=last.line)
            self.book.started(event.compile_id, function=function, stack=stack[:-1])

    def _metrics(self, event: Event, metadata: Once, _: Once) -> None:
        facts = mapping(metadata())
        if event.compile_id is not None:
            self.book.measured(event.compile_id, facts, backward=event.stage == "backward")
            if not event.compile_id[0].isdigit():
                self.book.finished(event.compile_id)
        for name in CONFIGS:
            text = facts.get(name)
            if isinstance(text, str) and (known := digest(text)) not in self._configs:
                self._configs.add(known)
                self._emit(Event("event", name, stage="torch_config", language="json", text=text))
        kept = {k: v for k, v in facts.items() if k not in CONFIGS and k not in CLOCKS}
        event.text = lambda: to_text(kept)

    def _error(self, event: Event, _: Once, payload: Once) -> None:
        text = string(payload())
        if event.compile_id is not None and text:
            kind, message = reasons.exception(text)
            self.book.failed(event.compile_id, kind, message, text)

    def _graph_break(self, event: Event, _: Once, payload: Once) -> None:
        text = string(payload())
        if event.compile_id is not None and text:
            self.book.graph_broke(event.compile_id, reasons.graph_break(text))

    def _recompile(self, event: Event, _: Once, payload: Once) -> None:
        if event.compile_id is not None:
            self.book.recompiled(event.compile_id, reasons.recompile(parsed(payload())))

    def _cache(self, event: Event, _: Once, payload: Once) -> None:
        facts = mapping(parsed(payload()))
        state = event.name.rsplit("_", 1)[-1]
        key, reason = string(facts.get("key")), string(facts.get("cache_bypass_reason"))
        if event.compile_id is not None:
            self.book.cache_answered(event.compile_id, event.stage or "", state, key, reason)
        lines = facts.pop("components", None)
        if isinstance(lines, list) and lines:
            self._emit(
                Event(
                    "cache",
                    event.name,
                    stage="key_lines",
                    compile_id=event.compile_id,
                    attempt=event.attempt,
                    graph_id=event.graph_id,
                    direction=event.direction,
                    subgraph=event.subgraph,
                    text=lambda: "\n".join(map(str, lines)),
                    inferred=event.inferred,
                )
            )
        event.data = {k: v for k, v in (("state", state), ("key", key), ("reason", reason)) if v}
        event.text = lambda: to_text(facts)

    def _symbol(self, event: Event, metadata: Once, _: Once) -> None:
        facts = mapping(metadata())
        name = string(facts.get("symbol"))
        if event.compile_id is not None and name:
            said = {
                "hint": facts.get("val"),
                "range": facts.get("vr"),
                "source": facts.get("source"),
                "specialized": facts.get("value"),
                "reason": facts.get("reason"),
            }
            kept = {k: v for k, v in said.items() if isinstance(v, (str, int)) and v != ""}
            self.book.symbol(event.compile_id, name, kept)

    def _output_code(self, event: Event, metadata: Once, _: Once) -> None:
        file = string(mapping(metadata()).get("filename"))
        if file:
            event.data = {"file": file}
            self.output_paths.add(file)
        if event.compile_id is not None and event.compile_id.startswith("aot/"):
            self.book.finished(event.compile_id)

    def _torch_version(self, event: Event, _: Once, payload: Once) -> None:
        facts = mapping(parsed(payload()))
        if version := string(facts.get("pytorch_version")):
            self.book.versions.setdefault("torch", version)
        event.data = facts

    def _framework(self, _event: Event, _: Once, payload: Once) -> None:
        facts = mapping(parsed(payload()))
        if facts.get("model") == "unknown":  # vLLM's word for a config without a model
            del facts["model"]
        self.book.framework["vllm"] = {**self.book.framework.get("vllm", {}), **facts}

    def _piece(self, event: Event, _: Once, payload: Once) -> None:
        facts = mapping(parsed(payload()))
        index, name = facts.get("piecewise_index"), string(facts.get("submod_name"))
        ends = [e for k in ("start", "end") if isinstance(e := facts.get(f"compile_range_{k}"), int)]
        piece = Subgraph.model_construct(
            index=index if isinstance(index, int) else None,
            name=name,
            range=ends if len(ends) == 2 else None,
        )
        self._enter_piece(event.compile_id, piece)
        event.subgraph = piece
        event.data = facts

    def _finished(self, event: Event, _: Once, __: Once) -> None:
        if event.compile_id is not None:
            self.book.finished(event.compile_id)


def mapping(value: object) -> dict[str, Any]:
    """Return `value` if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: object) -> str | None:
    """Return `value` if it is a string that says something."""
    return value if isinstance(value, str) and value else None


def parsed(payload: object) -> Any:
    """Return a JSON payload as a value: a string is parsed, or left as it is if it is no JSON."""
    if not isinstance(payload, str):
        return payload
    try:
        return parse_record(payload.encode("utf-8", "surrogatepass"))
    except CorruptError:
        return payload
