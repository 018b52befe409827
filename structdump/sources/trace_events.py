"""The one mapping from torch's structured trace records to events and facts about compiles.

Live hooks and the log reader both feed it, so a bundle is the same from either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from structdump.bundle.model import Direction, Subgraph
from structdump.sources.compiles import CompileBook
from structdump.sources.event import Event
from structdump.sources.payload import Once, RecordText
from structdump.sources.trace_context import Directions, Heading, Owners, Pieces
from structdump.sources.trace_facts import Facts, mapping, string
from structdump.sources.trace_names import NAMED, Shape, shape

MAX_NAME = 500
"""Characters kept of a record's name; torch's are under 100."""


@dataclass(slots=True)
class TraceRecord:
    """One call of `torch._logging.trace_structured`, or one record of a log made by it.

    `metadata` may be a callable, `payload` is one; each is called at most once. `metadata` is what
    the record says of itself, without the ids that torch adds. `stack` is the record's own stack.
    `is_backward` and `graph_id` are known live alone.
    """

    name: str
    metadata: Callable[[], Any] | Any = None
    payload: Callable[[], Any] | None = None
    compile_id: str | None = None
    attempt: int | None = None
    stack: Any = None
    subgraph_name: str | None = None
    is_backward: bool | None = None
    graph_id: str | None = None


class TraceMapper:
    """Turns records into events for `record`, and feeds `book` with what they say of compiles.

    Payloads are evaluated when the recorder asks for the text, and else only where the book needs
    them: graph breaks, recompile reasons, errors, cache answers, versions and vLLM's own records.

    `intern` resolves torch's interned strings (file names of stack frames) by number; a log brings
    them along as `str` records and needs none.

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
        self.book = book
        self._record = record
        self._owners = Owners()
        book.names = self._owners.names
        self._directions = Directions()
        self._pieces = Pieces()
        book.piece_of = self._pieces.now
        self._facts = Facts(book, record, self._pieces.enter)
        if intern is not None:
            self._facts.intern = intern

    @property
    def output_paths(self) -> set[str]:
        """Files of the output codes that were reported so far."""
        return self._facts.output_paths

    @staticmethod
    def reads_metadata(name: str) -> bool:
        """Tell whether `feed` looks into the metadata of records of this name."""
        return name in NAMED or shape(name).fact is not None

    @staticmethod
    def bulk(name: str) -> str | None:
        """Return the stage of records of this name if they are bulk telemetry, which tells nothing else."""
        what = shape(name)
        return what.stage if what.kind == "trace" and what.fact is None and name not in NAMED else None

    def feed(self, r: TraceRecord) -> None:
        """Map one record: at most a few events, the last one being the record itself."""
        metadata = Once(r.metadata)
        if r.name == "str":
            self._learn(metadata())
            return
        payload = Once(r.payload)
        named = r.name in NAMED
        facts = mapping(metadata()) if named else {}
        subject = string(facts.get("name"))
        what = shape(r.name[:MAX_NAME], subject and subject[:MAX_NAME], string(facts.get("encoding")))
        name = (subject or r.name)[:MAX_NAME]
        compile_id = self._owners.owner(r.compile_id, what, name)
        self.book.unlabelled = self._owners.open
        if compile_id is not None:
            self.book.seen(compile_id, r.attempt)
            if r.compile_id is None and r.stack:
                self._facts.called_from(compile_id, r.stack)
        heading = self._heading(r, compile_id, what)
        piece, assumed = self._pieces.current(compile_id, what, name, heading)
        if r.subgraph_name:
            piece, assumed = Subgraph.model_construct(name=r.subgraph_name), False
        event = Event(
            kind=what.kind,
            name=name,
            stage=what.stage,
            phase=what.phase,
            compile_id=compile_id,
            attempt=r.attempt,
            graph_id=r.graph_id,
            direction=heading.direction,
            subgraph=piece,
            language=what.language,
            text=RecordText(payload, metadata, named),
            inferred=["compile_id"] * (r.compile_id is None and compile_id is not None)
            + ["direction"] * heading.inferred
            + ["subgraph"] * assumed,
        )
        if what.fact is not None:
            self._facts.read(what.fact, event, metadata, payload)
        self._record(event)

    def _learn(self, pair: object) -> None:
        if isinstance(pair, (list, tuple)) and len(pair) == 2:
            text, number = pair
            if isinstance(text, str) and isinstance(number, int):
                self._facts.strings[number] = text

    def _heading(self, r: TraceRecord, compile_id: str | None, what: Shape) -> Heading:
        heading = self._directions.direction(what, compile_id, r.attempt)
        if what.step is None or r.is_backward is None or heading.direction is None:
            return heading
        forward: Direction = "inference" if heading.direction == "inference" else "forward"
        return heading._replace(direction="backward" if r.is_backward else forward, inferred=False)
