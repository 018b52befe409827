"""torch._logging._internal.trace_structured: what torch reports of itself, warm caches included."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.frameworks import identify
from structdump.sources.hooks.state import state_of
from structdump.sources.hooks.swap import TABLE, swap_code
from structdump.sources.hub import HUB
from structdump.sources.session import Session
from structdump.sources.trace_events import TraceMapper, TraceRecord


class Once:
    """A callable that runs at most once: torch then gets the same value without computing it again."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._value: tuple[Any] | None = None

    def __call__(self) -> Any:
        """Return the value, computed by the first call."""
        if self._value is None:
            self._value = (self._function(),)
        return self._value[0]


def _trace_structured(*args: Any, **kwargs: Any) -> Any:
    # This code runs in place of torch's, with torch's globals. Metadata is computed in this very
    # frame, since torch counts frames in it (torch/_dynamo/convert_frame.py, log_dynamo_start).
    table = __structdump__  # type: ignore[name-defined] # noqa: F821 # in torch's globals, see swap.py
    seen = table.trace_seen(args, kwargs)
    if seen is not None:
        if seen.eager:
            try:  # noqa: SIM105 # a context manager would add a frame
                seen.metadata()
            except Exception:  # noqa: BLE001, S110 # torch meets the same exception when it asks itself
                pass
        args, kwargs = table.trace_told(seen, args, kwargs)
    return table.trace_structured(*args, **kwargs)


class _Seen:
    __slots__ = ("alone", "bulk", "eager", "explicit", "metadata", "name", "payload")

    def __init__(
        self, name: str, metadata: Once, payload: Once | None, explicit: Any, *, alone: bool = False
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.payload = payload
        self.explicit = explicit
        self.alone = alone
        self.eager = TraceMapper.reads_metadata(name)
        self.bulk = TraceMapper.bulk(name)


def trace_seen(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Seen | None:
    """First half of the trace hook: take the call apart. None when nobody listens."""
    if not HUB.sessions or not args or not isinstance(args[0], str):
        return None
    metadata = args[1] if len(args) > 1 else kwargs.get("metadata_fn", dict)
    payload = kwargs.get("payload_fn")
    if not callable(metadata) or (payload is not None and not callable(payload)):
        return None
    return _Seen(
        args[0],
        Once(metadata),
        Once(payload) if payload else None,
        kwargs.get("compile_id"),
        alone=bool(kwargs.get("suppress_context")),
    )


def trace_told(
    seen: _Seen, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Second half: feed the sessions; return arguments that spare torch what was computed."""
    HUB.each("trace_structured", functools.partial(_feed, seen))
    kwargs = dict(kwargs)
    kwargs.pop("metadata_fn", None)
    if seen.payload is not None:
        kwargs["payload_fn"] = seen.payload
    return (args[0], seen.metadata, *args[2:]), kwargs


def _feed(seen: _Seen, session: Session) -> None:
    if seen.bulk is not None and session.skips("trace", seen.name, seen.bulk):
        return  # half of all records
    # `suppress_context` says that a record belongs to no compile, though one may be under way.
    compile_id, attempt = (None, None) if seen.alone else compile_context(seen.explicit)
    graph_id, direction = (None, None) if seen.alone else graph_context()
    record = TraceRecord(
        name=seen.name,
        metadata=seen.metadata,
        payload=seen.payload,
        compile_id=compile_id,
        attempt=attempt,
        graph_id=graph_id,
        is_backward=None if direction is None else direction == "backward",
    )
    state_of(session).mapper.feed(record)
    told = seen.name == "artifact" and seen.metadata().get("name") == "vllm_compilation_config"
    identify(session, session.book.resolve(compile_id) if told else None, walk=told)


def install_trace() -> Callable[[], None]:
    """Swap the code of `trace_structured` (torch/_logging/_internal.py); return how to undo that."""
    function = sys.modules["torch._logging._internal"].trace_structured
    former, undo = swap_code(function, _trace_structured, ("name", "metadata_fn", "payload_fn"))
    TABLE.trace_structured, TABLE.trace_seen, TABLE.trace_told = former, trace_seen, trace_told
    log = sys.modules["torch._logging._internal"].trace_log
    log.addFilter(_unframe)

    def undo_all() -> None:
        log.removeFilter(_unframe)
        undo()

    return undo_all


def _unframe(record: Any) -> bool:
    """Keep our frames out of a TORCH_TRACE log: it names the caller of trace_structured, as before."""
    if record.pathname == __file__:
        frame: types.FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not _trace_structured.__code__:
            frame = frame.f_back
        if frame is not None and frame.f_back is not None:
            record.pathname = frame.f_back.f_code.co_filename
            record.filename = os.path.basename(record.pathname)  # noqa: PTH119 # as logging does
            record.module = os.path.splitext(record.filename)[0]  # noqa: PTH122 # as logging does
            record.lineno = frame.f_back.f_lineno
            record.funcName = frame.f_back.f_code.co_name
    return True
