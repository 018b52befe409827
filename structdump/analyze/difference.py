"""What `structdump.diff` returns: every difference found, and what could not be compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from structdump.analyze.text_diff import TextDifference

PARTS = (
    "env",  # versions, devices, torch's settings, environment variables
    "compiles",  # functions compiled, status and errors
    "graphs",  # stages and passes, Inductor's IR, the wrapper that calls the kernels
    "kernels",
    "configs",  # launch configurations that tuning chose
    "autotune",  # winners among templates
    "guards",
    "recompiles",
    "breaks",  # graph breaks
    "times",
)
"""What can be ignored."""


@dataclass(slots=True)
class Side:
    """Which bundle this is: its program, rank, level, torch and completeness."""

    program: str
    rank: int | None
    level: str
    torch: str | None
    verdict: str
    complete: bool | None


@dataclass(slots=True)
class Change:
    """One value that differs; None on a side that has none."""

    part: str
    what: str
    a: Any = None
    b: Any = None


@dataclass(slots=True)
class Stage:
    """A stage or pass: its label as a reader knows it, and the numbers (`seq`) of its artifacts."""

    label: str
    kind: str
    stage: str | None = None
    name: str = ""
    phase: str | None = None
    direction: str | None = None
    seq_a: int | None = None
    seq_b: int | None = None


@dataclass(slots=True)
class StageDifference:
    """The first stage at which the graphs of two compiles differ.

    Where that is a pass that ran on one side alone, `shown` is the stage after it whose texts were
    compared. `text` is what differs, or None when the texts were not kept and only `ops` (B's count
    minus A's) tell. `last_same` is the last stage before it that is the same; `between` are stages that
    ran in one bundle alone, or that could not be compared, after that. `same_as` names a compile whose
    first difference has the same lines.
    """

    stage: Stage
    shown: Stage | None = None
    text: TextDifference | None = None
    ops: dict[str, int] = field(default_factory=dict)
    last_same: Stage | None = None
    between: list[str] = field(default_factory=list)
    same_as: str | None = None


@dataclass(slots=True)
class KernelDifference:
    """A kernel that was added (in B alone), removed (in A alone) or changed."""

    how: str
    compile: str
    direction: str | None
    name_a: str | None = None
    name_b: str | None = None
    backend: str = ""
    ops: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ConfigDifference:
    """A kernel whose tuned configuration differs, or a tuned operation with another winner.

    `a` and `b` are the values that differ; `seconds_a` and `seconds_b` the times of the winners, or
    of the tuning, where known.
    """

    kernel: str
    compile: str
    a: dict[str, Any] | None = None
    b: dict[str, Any] | None = None
    seconds_a: float | None = None
    seconds_b: float | None = None


@dataclass(slots=True)
class GuardDifference:
    """Guards that only one side has."""

    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CompileDifference:
    """What differs between two compiles of one function.

    `first` is where the graphs part, `later` the stages after it that differ too, `only_a` and
    `only_b` stages that ran on one side alone.
    """

    id_a: str | None
    id_b: str | None
    function: str
    changes: list[Change] = field(default_factory=list)
    first: StageDifference | None = None
    later: list[Stage] = field(default_factory=list)
    only_a: list[Stage] = field(default_factory=list)
    only_b: list[Stage] = field(default_factory=list)
    guards: GuardDifference | None = None

    @property
    def label(self) -> str:
        """The compile id, or both where they differ."""
        a, b = self.id_a or "no compile id", self.id_b or "no compile id"
        return a if a == b else f"{a} / {b}"

    def __bool__(self) -> bool:
        return bool(self.changes or self.first or self.only_a or self.only_b or self.guards)


@dataclass(slots=True)
class Difference:
    """All that differs between bundles `a` and `b`, from the outside in.

    `notes` say what explains absences and what could not be compared; they are no differences.

    Example::

        d = structdump.diff("a.json.zst", "b.json.zst", ignore=["env"])
        if not d.same and d.compiles and d.compiles[0].first:
            print(d.compiles[0].first.stage.label)
    """

    a: Side
    b: Side
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: list[Change] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    compiles: list[CompileDifference] = field(default_factory=list)
    kernels: list[KernelDifference] = field(default_factory=list)
    configs: list[ConfigDifference] = field(default_factory=list)
    autotune: list[ConfigDifference] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """True if nothing that was compared differs."""
        skip = ("a", "b", "ignored", "notes")
        return not any(getattr(self, f.name) for f in fields(self) if f.name not in skip)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, `same` first."""
        return {"same": self.same, **asdict(self)}
