"""A dump directory and the TORCH_TRACE log of the same run, joined by content.

vLLM's passes stand in the directory alone; compile ids, pieces and compile ranges in the log alone. Both hold
captured, split and post-grad graphs, output codes and kernels, which tell what belongs to what.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from structdump.bundle.codec import digest
from structdump.bundle.model import Direction, Subgraph
from structdump.bundle.normal import normalise
from structdump.sources.event import Event

_GRAPHS = frozenset({"graph", "pass"})
_JOINED = frozenset({*_GRAPHS, "output_code", "kernel"})
# The two print graphs with other options: the log with strides and devices, the directory without.
_ANNOTATION = re.compile(r"""(?<=\w)\s?: ?"[^"\n]*"(?=[ ,)=]|$)""", re.MULTILINE)
_COMMENT = re.compile(r"(?:^[ \t]*|[ \t]{2,})#[^\n]*", re.MULTILINE)
_NUMBER = re.compile(r"\.\d+\.py$")
_DEF = re.compile(r"^\s*def forward\(", re.MULTILINE)


class Identity(NamedTuple):
    """What the log knows of a text: which compile, graph and piece it belongs to."""

    compile_id: str | None
    attempt: int | None
    graph_id: str | None
    direction: Direction | None
    subgraph: Subgraph | None

    @property
    def piece(self) -> tuple[str | None, str | None]:
        """What tells pieces apart."""
        return self.compile_id, self.subgraph.name if self.subgraph else None


@dataclass(slots=True)
class Joined:
    """How a directory and a log fit.

    `files` are the names of the files of each event of the log, by its number, that hold the same;
    `rest` are the directory's events that the log lacks, under the log's identity; `found` counts
    the directory's events that were found in the log, `placed` those of `rest` that have an identity.
    """

    files: dict[int, list[str]] = field(default_factory=dict)
    rest: list[Event] = field(default_factory=list)
    found: int = 0
    placed: int = 0


class Catalogue:
    """What a log holds, by content. Its `record` takes the log's events; texts are not kept.

    Example::

        catalogue = Catalogue()
        read_log(path, TraceMapper(with_kernels(catalogue.record), CompileBook()))
        joined = catalogue.join(events_of_directory)
    """

    def __init__(self) -> None:
        self.count = 0
        self._same: dict[tuple[str | None, ...], list[tuple[int, Identity]]] = defaultdict(list)
        self._alike: dict[str, list[Identity]] = defaultdict(list)

    def record(self, event: Event) -> None:
        """Take one event of the log."""
        number, self.count = self.count, self.count + 1
        content = _content(event)
        if content is None:
            return
        own = Identity(event.compile_id, event.attempt, event.graph_id, event.direction, event.subgraph)
        self._same[_place(event, content)].append((number, own))
        if event.kind in _GRAPHS and all(own.piece != known.piece for known in self._alike[content]):
            self._alike[content].append(own)

    def join(self, events: Iterable[Event]) -> Joined:
        """Find the directory's events in the log, in order; the others get the identity of their content."""
        joined = Joined()
        left: list[tuple[Event, str | None]] = []
        compiles: dict[str | None, set[str | None]] = defaultdict(set)
        for event in events:
            content = _content(event)
            same = self._same.get(_place(event, content)) if content is not None else None
            if same:
                number, logged = same.pop(0)
                joined.files.setdefault(number, []).extend(event.files)
                joined.found += 1
                compiles[event.compile_id].add(logged.compile_id)
            else:
                left.append((event, content))
        turns: dict[tuple[str | None, ...], int] = {}
        identities = [self._identity(event, content, turns) for event, content in left]
        for (event, _), own in zip(left, _filled(left, identities), strict=True):
            only = compiles.get(event.compile_id, set())
            identity = own
            if own is None and len(only) == 1:
                identity = Identity(next(iter(only)), None, None, event.direction, None)
            if identity is not None:
                joined.placed += 1
                _adopt(event, identity)
            joined.rest.append(event)
        return joined

    def _identity(
        self, event: Event, content: str | None, turns: dict[tuple[str | None, ...], int]
    ) -> Identity | None:
        """Return the piece whose graph is the same at any stage; of several alike, the next one in turn."""
        alike = self._alike.get(content or "")
        if not alike or event.kind not in _GRAPHS:
            return None
        file = _NUMBER.sub("", event.files[0]) if event.files else event.name  # a pass may run twice
        place = (event.compile_id, file, *_place(event, content or ""))
        turn = turns.get(place, 0)
        turns[place] = turn + 1
        return alike[min(turn, len(alike) - 1)]


def _filled(left: list[tuple[Event, str | None]], known: list[Identity | None]) -> list[Identity | None]:
    """Give passes whose text is nowhere else the piece of the pass before or after them."""
    out = list(known)
    for order in (range(len(out)), range(len(out) - 1, -1, -1)):
        last: tuple[str | None, Identity | None] = (None, None)
        for n in order:
            event = left[n][0]
            if event.kind not in _GRAPHS or event.phase == "before":
                last = (event.compile_id, out[n])
                continue
            if out[n] is None and last[0] == event.compile_id:
                out[n] = last[1]
            last = (event.compile_id, out[n])
    return out


def _adopt(event: Event, identity: Identity) -> None:
    event.compile_id, event.attempt = identity.compile_id, identity.attempt
    event.graph_id, event.subgraph = identity.graph_id or event.graph_id, identity.subgraph
    event.direction = identity.direction or event.direction
    event.inferred = sorted({*event.inferred, "compile_id", *(["subgraph"] if identity.subgraph else [])})


def _place(event: Event, content: str) -> tuple[str | None, ...]:
    return event.kind, event.stage, event.phase, content


def _content(event: Event) -> str | None:
    """Return what an event's text says, the same for both ways of printing; None if it tells nothing."""
    if event.kind not in _JOINED:
        return None
    text = event.text() if callable(event.text) else event.text
    if not text:  # of an extern call there is its name alone
        return digest(event.name) if event.kind == "kernel" else None
    if event.kind not in _GRAPHS:
        return digest(normalise(text).strip())
    start = _DEF.search(text)
    body = _COMMENT.sub("", _ANNOTATION.sub("", text[start.start() if start else 0 :]))
    return digest("".join(body.split()).replace(",)", ")"))


def with_files(record: Callable[[Event], None], files: dict[int, list[str]]) -> Callable[[Event], None]:
    """Return a recorder that adds to each event of a log, by its number, the files that hold the same."""
    number = -1

    def recorder(event: Event) -> None:
        nonlocal number
        number += 1
        event.files = [*event.files, *files.get(number, ())]
        record(event)

    return recorder
