"""An opened bundle: the head's fields, artifacts with their texts, and selectors over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import PrivateAttr

from structdump.bundle.model import Artifact, Bundle, SourceFrame
from structdump.bundle.tables import named
from structdump.errors import CorruptError, UsageError

if TYPE_CHECKING:
    import pandas

Table = Literal["kernels", "artifacts", "compiles", "configs", "passes", "breaks"]


class Provenance(NamedTuple):
    """What a kernel was made from: ATen ops, graph nodes, the graph fragment, the user's stack."""

    ops: list[str]
    nodes: list[str]
    fragment: str | None
    stack: list[SourceFrame]


class ArtifactView(Artifact):
    """An artifact that knows its bundle: all fields of `Artifact`, its text, and a kernel's shortcuts."""

    _bundle: LoadedBundle | None = PrivateAttr(None)

    @property
    def text(self) -> str | None:
        """The text, or None if it was not kept. CorruptError if it should be there and isn't."""
        if self.digest is None or self._bundle is None:
            return None
        return self._bundle.text(self.digest)

    @property
    def source(self) -> str | None:
        """The source of a kernel: its text under the name that one looks for."""
        return self.text

    @property
    def best_config(self) -> dict[str, Any] | None:
        """The launch configuration that tuning chose for this kernel, or None."""
        if self.kernel is None or self._bundle is None:
            return None
        return self.kernel.best_config or self._bundle.config_of(self)

    @property
    def provenance(self) -> Provenance | None:
        """What this kernel was made from; None for anything but a kernel."""
        if self.kernel is None:
            return None
        return Provenance(self.kernel.ops, self.kernel.nodes, self.kernel.fragment, self.kernel.stack)


class LoadedBundle:
    """A bundle that was opened; see `structdump.load`.

    Has the head's fields (`environment`, `compiles`, `completeness`, …, see `model.Bundle`), and
    `texts`, a mapping from digest to text that is read when asked. `complete` is False for what a
    killed process left, and None if only the head was read. Selectors return lists in the order
    in which things happened; their patterns are shell globs, case counts.

    Example::

        b = structdump.load("run.json.zst")
        for k in b.kernels("triton_red_*"):
            print(k.name, k.best_config, k.provenance.ops)
    """

    def __init__(self, bundle: Bundle, texts: Mapping[str, str], complete: bool | None):
        self.format = bundle.format
        self.version = bundle.version
        self.producer = bundle.producer
        self.run = bundle.run
        self.runs = bundle.runs
        self.level = bundle.level
        self.config = bundle.config
        self.environment = bundle.environment
        self.completeness = bundle.completeness
        self.compiles = bundle.compiles
        self.artifacts = [self._view(a) for a in bundle.artifacts]
        self.omitted = bundle.omitted
        self.redactions = bundle.redactions
        self.hook_errors = bundle.hook_errors
        self.texts = texts
        self.complete = complete
        self._head = bundle
        self._configs: dict[tuple[tuple[str | None, ...], str], dict[str, Any]] | None = None

    def __repr__(self) -> str:
        facts = self.completeness
        counts = f"compiles={len(self.compiles)} kept={facts.kept} of {facts.seen}"
        return f"<bundle {self.version} level={self.level} {counts}>"

    def _view(self, artifact: Artifact) -> ArtifactView:
        # What model_construct does, without the 20 µs that it takes per artifact; the fields are shared.
        view = ArtifactView.__new__(ArtifactView)
        object.__setattr__(view, "__dict__", artifact.__dict__)
        object.__setattr__(view, "__pydantic_fields_set__", artifact.model_fields_set)
        object.__setattr__(view, "__pydantic_extra__", None)
        object.__setattr__(view, "__pydantic_private__", {"_bundle": self})
        return view

    def document(self) -> Bundle:
        """Return the whole bundle as a model, all texts read: to change it and write it again."""
        fields = {**self._head.__dict__, "texts": dict(self.texts), "complete": self.complete is not False}
        return Bundle.model_construct(**fields).model_copy(deep=True)

    def bare(self) -> Bundle:
        """Return the bundle as a model, its texts empty, sharing all else with this object."""
        return self._head

    def head(self) -> dict[str, Any]:
        """Return all of the bundle but its texts, as plain data in the order of the file."""
        found: dict[str, Any] = self._head.model_dump(by_alias=True, mode="json", exclude={"texts"})
        return {**found, "complete": self.complete is not False}

    def text(self, digest: str) -> str:
        """Return the text with this digest. Raises CorruptError if the bundle hasn't got it."""
        try:
            return self.texts[digest]
        except KeyError:
            raise CorruptError(f"the bundle has no text {digest}") from None

    def artifacts_like(
        self,
        *,
        kind: str | None = None,
        stage: str | None = None,
        name: str | None = None,
        function: str | None = None,
        compile_id: str | None = None,
    ) -> list[ArtifactView]:
        """Return the artifacts that match all globs given; `function` is that of their compile."""
        functions = {c.id: c.function.name for c in self.compiles if c.function}
        return [
            a
            for a in self.artifacts
            if _match(a.kind, kind)
            and _match(a.stage, stage)
            and _match(a.name, name)
            and _match(a.compile_id, compile_id)
            and _match(functions.get(a.compile_id or ""), function)
        ]

    def graphs(
        self,
        stage: str | None = None,
        compile_id: str | None = None,
        direction: str | None = None,
        name: str | None = None,
    ) -> list[ArtifactView]:
        """Return the FX graphs, for instance `graphs(stage="post_grad", compile_id="0/0")`."""
        found = self.artifacts_like(kind="graph", stage=stage, compile_id=compile_id, name=name)
        return [a for a in found if _match(a.direction, direction)]

    def kernels(self, pattern: str = "*", role: str | None = "used") -> list[ArtifactView]:
        """Return kernels by name; those that run, unless `role` is `candidate`, `benchmark` or None (all)."""
        return [
            a
            for a in self.artifacts
            if a.kernel is not None
            and a.kind in ("kernel", "candidate")
            and _match(a.kernel.role, role)
            and (fnmatchcase(a.kernel.name, pattern) or fnmatchcase(a.name, pattern))
        ]

    def configs(self) -> list[ArtifactView]:
        """Return the launch configurations that tuning chose."""
        return self.artifacts_like(kind="best_config")

    def passes(
        self, changed: bool | None = None, name: str | None = None, compile_id: str | None = None
    ) -> list[ArtifactView]:
        """Return the runs of passes; `changed=True` those that changed their graph."""
        found = self.artifacts_like(kind="pass", name=name, compile_id=compile_id)
        return [a for a in found if changed is None or a.changed is changed]

    def config_of(self, kernel: ArtifactView) -> dict[str, Any] | None:
        """Return the tuned configuration that stands beside a kernel, not on it."""
        if self._configs is None:
            self._configs = {}
            for item in self.configs():
                value = (item.kernel and item.kernel.best_config) or item.data
                if item.kernel is not None and item.kernel.role == "used" and isinstance(value, dict):
                    self._configs[_places(item)[0], item.kernel.name] = value
        name = kernel.kernel.name if kernel.kernel else kernel.name
        known = (self._configs.get((place, name)) for place in _places(kernel))
        return next((value for value in known if value), None)

    def rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per row of a table: see `structdump.bundle.tables.TABLES` for their columns.

        Raises UsageError for an unknown table.
        """
        return named(table).rows(self)

    def to_dataframe(self, table: Table) -> pandas.DataFrame:
        """Return a table as a pandas data frame. Raises UsageError when pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise UsageError("to_dataframe needs pandas: pip install pandas; rows() does without") from None
        return pandas.DataFrame(list(self.rows(table)))


def _places(artifact: Artifact) -> list[tuple[str | None, ...]]:
    """Return where an artifact belongs, then less and less of it: names begin anew in each graph."""
    place = (artifact.compile_id, artifact.graph_id, artifact.direction)
    return [place, (place[0], None, place[2]), (place[0], None, None), (None, None, None)]


def _match(value: str | None, pattern: str | None) -> bool:
    return pattern is None or (value is not None and fnmatchcase(value, pattern))
