"""Where each artifact stands in an extracted tree. Names depend on what was compiled, not on the level."""

from __future__ import annotations

from collections.abc import Iterable

from structdump.analyze.extract_target import slug
from structdump.bundle.model import Artifact

#: The stages of a graph in the order in which torch 2.9 to 2.13 goes through them; they number the files.
STAGES: tuple[tuple[str, ...], ...] = (
    ("runtime_asserts",),
    ("captured", "compiled_autograd"),
    ("split", "split_module", "split_child"),
    ("pre_grad",),
    ("joint",),
    ("tensorify",),
    ("joint_passes", "frozen"),
    ("forward", "backward", "saved_tensors_hooks", "unlift_tokens"),
    ("post_grad",),
    ("pre_fusion",),
    ("post_fusion",),
    ("output_code",),
)
_NUMBERS = {stage: number for number, names in enumerate(STAGES, 1) for stage in names}
_SUFFIXES = {"python": ".py", "cpp": ".cpp", "json": ".json", "cuda": ".cu"}
_FUSION = ("pre_fusion", "post_fusion")


class Places:
    """Names folders and stems for artifacts, taken in their order; `suffix` follows the stem.

    Example::

        >>> places = Places(structdump.load("run.json.zst").artifacts)
        >>> [places.stem(a) for a in structdump.load("run.json.zst").artifacts][:2]
        ['compiles/0-0/02_captured', 'compiles/0-0_forward/09_post_grad']
    """

    def __init__(self, artifacts: Iterable[Artifact]):
        self._attempts = {self._tried(a): a.attempt for a in artifacts}
        self._stage: dict[str, int] = {}
        self._passes: dict[str, tuple[int, str | None]] = {}

    def stem(self, artifact: Artifact) -> str | None:
        """Return the path without suffix; None for kernels and what `run` holds, which have no folder.

        Every artifact must be asked for once, in order, whether its text is kept or not.
        """
        a, folder = artifact, f"compiles/{place(artifact)}"
        attempt = f".attempt{a.attempt or 0}" if self._attempts[self._tried(a)] != a.attempt else ""
        before = ".before" if a.phase == "before" and a.kind != "ir" else ""
        stage = slug(a.stage or a.name)
        if a.kind in ("graph", "output_code") or (a.kind == "ir" and a.stage in _FUSION):
            # A stage that torch doesn't have stands where it happened.
            number = _NUMBERS.get(stage, self._stage.get(folder, 0))
            self._stage[folder] = number
            return f"{folder}/{number:02}_{stage}{attempt}{before}"
        if a.kind == "pass":
            return f"{folder}/passes/{self._pass(folder, a):03}_{slug(a.name)}{attempt}{before}"
        if a.kind == "event" or a.stage == "key_lines":
            return f"{folder}/events/{slug(a.name)}{attempt}"
        if a.kind == "bytecode":
            return f"{folder}/bytecode_{stage}{attempt}"
        if a.kind in ("source", "guards", "repro") or (a.kind == "autotune" and a.digest):
            named = a.kind == "source" and a.stage not in ("decompiled", "full_code")
            return f"{folder}/{slug(a.name) if named else stage}{attempt}"
        return None

    def _pass(self, folder: str, a: Artifact) -> int:
        """Return the number of a pass's run; what is printed before and after it has the same."""
        number, begun = self._passes.get(folder, (0, None))
        if a.phase != "after" or begun != a.name:
            number += 1
        self._passes[folder] = number, a.name if a.phase == "before" else None
        return number

    @staticmethod
    def _tried(a: Artifact) -> tuple[object, ...]:
        piece = (a.subgraph.index, a.subgraph.name) if a.subgraph else None
        return a.kind, a.stage, a.name, a.compile_id, a.direction, piece


def place(artifact: Artifact) -> str:
    """Return the name of the folder of a compile, a direction and a piece.

    Example: `0-0_forward`, and `0-0_submod_2_1-2048_inference` for a piece that vLLM compiles.
    """
    parts = [(artifact.compile_id or "no-id").replace("/", "-")]
    if piece := artifact.subgraph:
        parts.append(piece.name or f"piece_{piece.index}")
        parts.append("-".join(map(str, piece.range or ())))
    if artifact.direction not in (None, "joint"):
        parts.append(str(artifact.direction))
    return slug("_".join(part for part in parts if part))


def suffix(artifact: Artifact) -> str:
    """Return the ending that an editor knows this artifact's language by."""
    return _SUFFIXES.get(artifact.language, ".txt")
