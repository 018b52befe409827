"""The kernels that an output code runs, as events beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from structdump.bundle.model import Kernel, SourceFrame
from structdump.sources.event import Event
from structdump.sources.kernels import parse_output_code
from structdump.sources.provenance import known_ops, lines_of, source_lines


def with_kernels(
    record: Callable[[Event], None], found: Callable[[Event, str | None], None] | None = None
) -> Callable[[Event], None]:
    """Return a recorder that records each output code and then each kernel that it runs.

    The post-grad graph that came before tells ops of C++ kernels, and Python lines. `found` is told of
    each kernel's event and of the file Inductor put it in, where that is stated.
    """
    graphs: dict[tuple[str | None, str | None], Event] = {}

    def recorder(event: Event) -> None:
        record(event)
        origin = event.compile_id, event.direction
        if event.kind == "graph" and event.stage == "post_grad" and event.phase == "after":
            graphs[origin] = event
        if event.kind == "output_code":
            graph = _text(graphs.pop(origin)) if origin in graphs else None
            known, lines = (known_ops(graph), source_lines(graph)) if graph else (None, None)
            for kernel, path in kernel_events(event, known, lines):
                if found is not None:
                    found(kernel, path)
                record(kernel)

    return recorder


def kernel_events(
    output_code: Event,
    known: Mapping[str, str] | None = None,
    lines: Mapping[str, SourceFrame] | None = None,
) -> Iterator[tuple[Event, str | None]]:
    """Yield an event per kernel of `output_code`, with the path of its file: defined ones, then extern calls.

    `known` are ops for `parse_output_code`; `lines` the Python lines of the post-grad graph's nodes, from
    which kernels with a graph fragment get their stack.

    Example::

        for event, path in kernel_events(output_code):
            print(event.name, event.kernel.backend, event.kernel.calls)
    """
    text = _text(output_code)
    if not text:
        return
    code = parse_output_code(text, known)
    for item in code.kernels:
        if lines and item.kernel.fragment and not item.kernel.stack:
            item.kernel.stack = lines_of(item.kernel.fragment, lines)
            item.inferred += ["kernel.stack"] * bool(item.kernel.stack)
        yield _event(output_code, item.kernel, item.language, item.source or None, item.inferred), item.path
    for kernel in code.extern:
        yield _event(output_code, kernel, "text", None), None


def _text(event: Event) -> str | None:
    return event.text() if callable(event.text) else event.text


def _event(
    output_code: Event, kernel: Kernel, language: str, source: str | None, inferred: Sequence[str] = ()
) -> Event:
    return Event(
        kind="kernel",
        name=kernel.name,
        stage=kernel.backend,
        compile_id=output_code.compile_id,
        attempt=output_code.attempt,
        graph_id=output_code.graph_id,
        direction=output_code.direction,
        subgraph=output_code.subgraph,
        language=language,
        text=source,
        kernel=kernel,
        inferred=[*output_code.inferred, *inferred],
    )
