"""When each phase of each compile ran: from torch's own trace events, or from the durations alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Compile

# The phases that `torch._dynamo.utils.CompilationMetrics` times (torch 2.9 to 2.13), in the order
# in which they run, with how many others each lies in.
_DEPTH = {
    "dynamo": 0,
    "backward": 0,
    "pre_grad_pass": 1,
    "aot_autograd": 1,
    "joint_graph_pass": 2,
    "inductor": 2,
    "post_grad_pass": 3,
    "inductor_code_gen": 3,
    "triton_compile": 4,
}
_ORDER = {name: place for place, name in enumerate(_DEPTH)}


class Span(NamedTuple):
    """One phase of a compile.

    `start` is in seconds since the first event of the bundle, or None where only durations are known;
    `seconds` is None for a phase that never ended. `depth` is how many phases it lies in.
    """

    compile_id: str | None
    name: str
    start: float | None
    seconds: float | None
    depth: int


def timeline(bundle: LoadedBundle) -> list[Span]:
    """Return the phases of all compiles of a bundle, in the order in which they began.

    Starts are known where the bundle holds torch's trace events (level full); else the phases are those
    that compilation metrics give durations of, longest first within a compile.

    Example::

        >>> timeline(structdump.load("run.json.zst"))[0]
        Span(compile_id='0/0', name='dynamo', start=0.0, seconds=8.9, depth=0)
    """
    spans = list(_from_events(_events(bundle)))
    timed = {span.compile_id for span in spans}
    if spans:
        zero = min(span.start for span in spans if span.start is not None)
        spans = [span._replace(start=(span.start or 0.0) - zero) for span in spans]
        spans.sort(key=lambda span: (span.start, span.depth))
    for record in bundle.compiles:
        if record.id not in timed:
            spans.extend(_from_phases(record))
    return spans


def _events(bundle: LoadedBundle) -> Iterator[dict[str, Any]]:
    for artifact in bundle.artifacts:
        if artifact.kind != "trace" or artifact.digest is None or "chromium" not in artifact.name:
            continue
        try:
            event = json.loads(artifact.text or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("ts"), (int, float)):
            args = event.get("args")
            stated = args.get("compile_id") if isinstance(args, dict) else None
            known = isinstance(stated, str) and stated != "None"  # torch writes str(None) outside a compile
            yield {**event, "compile": artifact.compile_id or (stated if known else None)}


def _from_events(events: Iterable[dict[str, Any]]) -> Iterator[Span]:
    """Pair begin and end events; microseconds in, seconds out."""
    open_spans: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        stack = open_spans.setdefault((str(event.get("pid")), str(event.get("tid"))), [])
        if event.get("ph") == "B":
            stack.append(event)
        elif event.get("ph") == "E":
            name = event.get("name")
            depth = next((i for i in reversed(range(len(stack))) if stack[i].get("name") == name), None)
            if depth is None:
                continue
            begin = stack[depth]
            for lost in stack[depth + 1 :]:
                yield _span(lost, None, stack.index(lost))
            del stack[depth:]
            yield _span(begin, event["ts"] - begin["ts"], depth)
    for stack in open_spans.values():
        for depth, begin in enumerate(stack):
            yield _span(begin, None, depth)


def _span(begin: dict[str, Any], micros: float | None, depth: int) -> Span:
    seconds = None if micros is None else max(0.0, micros / 1e6)
    return Span(begin["compile"], str(begin.get("name")), begin["ts"] / 1e6, seconds, depth)


def _from_phases(record: Compile) -> Iterator[Span]:
    for direction in ("", "backward_"):
        mine = [
            (name.removeprefix(direction) if direction else name, seconds)
            for name, seconds in record.phases.items()
            if name.startswith("backward") == bool(direction)
        ]
        for name, seconds in sorted(mine, key=lambda item: (_ORDER.get(item[0], len(_ORDER)), -item[1])):
            label = name if not direction or name == "backward" else f"backward {name}"
            yield Span(record.id, label, None, seconds, _DEPTH.get(name, 1))
