"""Tells which compile, piece and direction a trace record belongs to where torch does not say.

Ids that torch gives are kept: `0/0` (frame, compile), `!0/1/0` (compiled autograd, frame, compile).
Records without one get:

- the id of the graph that Dynamo captured just before, if its own compile never went on: strict
  export, `aot_compile`, vLLM's ahead-of-time compile, whose backends run outside of Dynamo's frame;
- `aot/N` for the N-th compile by Inductor that no Dynamo capture led to: AOTInductor,
  `standalone_compile`, a compiled artifact loaded from a cache;
- `export/N` for the N-th `torch.export` that torch reports (with TORCH_DTRACE alone).

N counts from 0 in one process. Ids given here are marked as inferred in the event.

torch counts its ids anew after `torch._dynamo.reset()`, which strict export calls as well. The second
compile that torch calls `0/0` is `0/0#2` here, the third `0/0#3`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from structdump.bundle.model import Direction, Subgraph
from structdump.sources.trace_names import ATTACHED, Shape

_OPENING = frozenset({"graph", "output_code", "repro", "cache", "autotune"})
_OF_THE_WHOLE = frozenset(
    {"captured", "split", "guards", "cpp_guards", "execution_code", "compile", "runtime"}
)
_AOT_ORDER = ("aot_autograd", "pre_grad", "joint", "aot_metadata", "forward", "backward")
_FIRST_STAGES = frozenset({"aot_autograd", "pre_grad"})


class Owners:
    """Assigns each record its compile id, in the order in which the records come.

    `open` is the compile that records without an id belong to at the moment, if there is one.
    """

    def __init__(self) -> None:
        self.open: str | None = None
        self.names: dict[str, str] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._captured: str | None = None
        self._adopted: str | None = None
        self._last: str | None = None
        self._pieced: str | None = None
        self._exporting: str | None = None
        self._stages: set[str] = set()
        self._counts: dict[str, int] = {"aot": 0, "export": 0}

    def owner(self, given: str | None, what: Shape, name: str) -> str | None:
        """Return the compile id of a record that torch gave the id `given`."""
        if given is not None:
            return self._labelled(given, what)
        if what.kind == "trace" or what.stage == "torch_version":
            return self.open
        if what.stage in ("export", "exported"):
            return self._export(what.stage)
        if self._captured is not None:
            self._adopted, self._captured = self._captured, None
            self.open = self.names.get(self._adopted, self._adopted)
        elif self.open is None:
            return self._opened(what, name)
        elif self.open.startswith("aot/") and self._begins(what):
            self.open = self._next("aot")
            self._stages.clear()
        return self._continued(what, name)

    def _labelled(self, given: str, what: Shape) -> str:
        if (what.fact == "start" and given in self._started) or (
            given in self._ended and (what.fact in ("start", "recompile") or what.stage == "captured")
        ):
            number = self._counts.get(given, 1) + 1
            self._counts[given] = number
            self.names[given] = f"{given}#{number}"
            self._started.discard(given)
            self._ended.discard(given)
        if what.fact == "start":
            self._started.add(given)
        if what.kind == "metrics" and what.stage == "compile":
            self._ended.add(given)
        name = self.names.get(given, given)
        if what.fact == "piece":
            self._pieced = name
        if what.stage == "captured":
            self._captured = given
        elif what.kind in _OPENING or what.kind == "metrics" or what.fact == "start":
            self._captured = None
        return name

    def _opened(self, what: Shape, name: str) -> str | None:
        if what.kind == "metrics":
            return self._last
        if what.fact == "piece" and self._pieced is not None:
            self.open = self._pieced  # vLLM compiles a further size of a model long after the first
        elif what.kind in _OPENING or what.fact == "piece":
            self.open = self._next("aot")
            self._stages.clear()
        else:
            return None
        return self._continued(what, name)

    def _continued(self, what: Shape, name: str) -> str | None:
        owner = self.open
        self._stages.add(f"{what.stage} {what.phase}")
        if what.fact == "piece":
            self._pieced = owner
        if what.kind == "metrics" or (name == "aotautograd_cache_hit" and owner != self._pieced):
            self._last, self.open = owner, None
            if self._adopted is not None:
                self._ended.add(self._adopted)
                self._adopted = None
        return owner

    def _begins(self, what: Shape) -> bool:
        return (
            what.stage in _FIRST_STAGES
            and what.phase != "after"
            and f"{what.stage} {what.phase}" in self._stages
            and self.open != self._pieced
        )

    def _export(self, stage: str) -> str:
        owner = self._exporting or self._next("export")
        self._exporting = owner if stage == "export" else None
        return owner

    def _next(self, family: str) -> str:
        number = self._counts[family]
        self._counts[family] += 1
        return f"{family}/{number}"


@dataclass(slots=True)
class _Progress:
    forwards: int = 0
    inferences: int = 0
    compiles: int = 0
    step: int = ATTACHED


class Heading(NamedTuple):
    """A direction, whether it was inferred, and the how-manieth Inductor compile in it (from 1)."""

    direction: Direction | None
    inferred: bool = False
    nth: int = 0


class Directions:
    """Infers whether Inductor is compiling a forward or a backward, from what came before.

    AOTAutograd reports its forward and backward graphs first; then Inductor compiles one forward
    per reported forward graph, and every later Inductor compile of the same compile is a backward,
    be it at once (dynamic shapes, cache hits) or at the first call of `.backward()`.
    """

    def __init__(self) -> None:
        self._progress: dict[tuple[str | None, int], _Progress] = {}
        self._attempts: dict[str | None, int] = {}

    def direction(self, what: Shape, compile_id: str | None, attempt: int | None) -> Heading:
        """Return the direction of a record, and which of the compile's Inductor compiles it is of."""
        if what.step is None and what.direction not in ("forward", "inference"):
            return Heading(what.direction)
        if attempt is not None:
            self._attempts[compile_id] = attempt
        key = (compile_id, self._attempts.get(compile_id, 0))
        progress = self._progress.setdefault(key, _Progress())
        if what.step is None:
            progress.forwards += what.direction == "forward"
            progress.inferences += what.direction == "inference"
            return Heading(what.direction)
        if what.step != ATTACHED:
            progress.compiles += what.step <= progress.step
            progress.step = what.step
        backwards = progress.compiles - progress.forwards
        if progress.forwards and backwards > 0:
            return Heading("backward", True, backwards)
        if progress.forwards:
            return Heading("forward", True, progress.compiles)
        return Heading("inference", True, progress.compiles) if progress.inferences else Heading(None)


class Pieces:
    """Remembers which piece of a split graph is being compiled, per compile.

    vLLM says when the compile of a piece begins. DistributedDataParallel's optimizer in Dynamo
    (torch/_dynamo/backends/distributed.py) only lists its pieces first: they are compiled in that
    order, and their backwards, at the first call of `.backward()`, in the opposite one.
    """

    def __init__(self) -> None:
        self._current: dict[str | None, Subgraph] = {}
        self._listed: dict[str | None, _Listed] = {}

    def enter(self, compile_id: str | None, piece: Subgraph) -> None:
        """Note that the compile of `piece` begins."""
        self._current[compile_id] = piece

    def now(self, compile_id: str | None) -> Subgraph | None:
        """Return the piece that is being compiled, if vLLM has said so."""
        return self._current.get(compile_id)

    def current(
        self, compile_id: str | None, what: Shape, name: str, heading: Heading
    ) -> tuple[Subgraph | None, bool]:
        """Return the piece that a record belongs to, and whether that was inferred.

        Records of the whole graph end the last piece.
        """
        if what.fact == "listed_piece":
            listed = self._listed.setdefault(compile_id, _Listed())
            listed.pieces.append(Subgraph.model_construct(index=len(listed.pieces), name=name))
            return listed.pieces[-1], False
        if compile_id in self._listed:
            found = self._listed[compile_id].piece(what, name, heading)
            return found, found is not None
        if what.stage in _OF_THE_WHOLE and what.kind != "pass":
            self._current.pop(compile_id, None)
        return self._current.get(compile_id), False


@dataclass(slots=True)
class _Listed:
    """Pieces that were listed, and how far AOTAutograd is with them."""

    pieces: list[Subgraph] = field(default_factory=list)
    index: int = -1
    order: int = len(_AOT_ORDER)

    def piece(self, what: Shape, name: str, heading: Heading) -> Subgraph | None:
        index = self.index
        if what.kind == "metrics":
            return None
        if heading.nth:
            index = len(self.pieces) - heading.nth if heading.direction == "backward" else heading.nth - 1
        elif what.stage in _AOT_ORDER and not name.endswith("_hit"):
            order = _AOT_ORDER.index(what.stage)
            self.index = index = index + (order < self.order)
            self.order = order
        elif what.stage not in ("runtime_wrapper", "functorch_config", "aot_autograd"):
            return None
        return self.pieces[index] if 0 <= index < len(self.pieces) else None
