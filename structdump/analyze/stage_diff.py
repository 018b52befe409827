"""Where two compiles of one function part: the first stage or pass whose graphs differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from structdump.analyze import canon
from structdump.analyze.align import align
from structdump.analyze.difference import Stage, StageDifference
from structdump.analyze.graph_diff import diff_graphs, same_graph
from structdump.analyze.text_diff import TextDifference, diff_lines
from structdump.bundle.loaded import ArtifactView

_FUSION = ("pre_fusion", "post_fusion")
_COMPILED = re.compile(r"__compiled_fn_-?\d+")
Answer = Literal["same", "differs", "alike", "unknown", "only_a", "only_b"]


@dataclass(slots=True)
class Row:
    """A stage of both compiles, or of one."""

    a: ArtifactView | None
    b: ArtifactView | None
    answer: Answer = "unknown"
    text: TextDifference | None = None

    @property
    def one(self) -> ArtifactView:
        """The artifact of A, or that of B where A has none."""
        one = self.a or self.b
        assert one is not None  # noqa: S101  # a row without artifacts is never made
        return one

    @property
    def stage(self) -> Stage:
        """What a reader knows it as."""
        one = self.one
        return Stage(
            label_of(one),
            one.kind,
            one.stage,
            one.name,
            one.phase,
            one.direction,
            self.a.seq if self.a else None,
            self.b.seq if self.b else None,
        )


@dataclass(slots=True)
class StageReport:
    """All stages of two compiles, in order, and how they compare."""

    rows: list[Row] = field(default_factory=list)

    def only(self, side: Literal["only_a", "only_b"]) -> list[Stage]:
        """Return the stages that one side has alone."""
        return [row.stage for row in self.rows if row.answer == side]

    def first(self) -> StageDifference | None:
        """Return the first stage that differs, and what is known of those right before it."""
        at = next((n for n, row in enumerate(self.rows) if row.answer == "differs"), None)
        if at is None:
            return None
        before = self.rows[:at]
        sure = max((n for n, r in enumerate(before) if r.answer == "same"), default=-1)
        between = before[sure + 1 :]
        row = self.rows[at]
        # A pass that ran on one side alone and changed the graph is the reason, not the stage after it.
        cause = next((r for r in between if r.one.changed and r.answer in ("only_a", "only_b")), row)
        found = StageDifference(cause.stage, None if cause is row else row.stage, row.text, _ops_change(row))
        found.last_same = before[sure].stage if sure >= 0 else None
        found.between = [f"{r.stage.label}: {_WHY[r.answer]}" for r in between if r is not cause]
        return found

    def later(self) -> list[Stage]:
        """Return the stages after the first that differ too."""
        return [row.stage for row in self.rows if row.answer == "differs"][1:]


_WHY: dict[Answer, str] = {
    "same": "same",
    "differs": "differs",
    "alike": "same operations; the text was not kept",
    "unknown": "not comparable, the text was not kept on both sides",
    "only_a": "only in A",
    "only_b": "only in B",
}


def diff_stages(a: list[ArtifactView], b: list[ArtifactView]) -> StageReport:
    """Compare the graphs, passes, fusion IR and wrapper code of two compiles, in the order of A."""
    left, right = _groups(a), _groups(b)
    placed: list[tuple[int, int, Row]] = []
    for group in [*left, *(g for g in right if g not in left)]:
        mine, theirs = left.get(group, []), right.get(group, [])
        at = mine[0].seq - 1 if mine else len(placed) + max((s.seq for s in a), default=0)
        i = j = 0
        pairs = align([_key(s) for s in mine], [_key(s) for s in theirs])
        for end_a, end_b in [*pairs, (len(mine), len(theirs))]:
            for one in mine[i:end_a]:
                at = one.seq
                placed.append((at, len(placed), Row(one, None, "only_a")))
            placed += [(at, len(placed) + n, Row(None, s, "only_b")) for n, s in enumerate(theirs[j:end_b])]
            if end_a < len(mine):
                at = mine[end_a].seq
                placed.append((at, len(placed), Row(mine[end_a], theirs[end_b])))
            i, j = end_a + 1, end_b + 1
    rows = [row for _, _, row in sorted(placed, key=lambda p: p[:2])]
    parted = False
    for row in rows:
        if row.a is not None and row.b is not None:
            row.answer, row.text = _compare(row.a, row.b, whole=not parted)
            parted = parted or row.answer == "differs"
    return StageReport(rows)


def label_of(artifact: ArtifactView) -> str:
    """Return a stage as a reader knows it.

    Example: `"pass remove_noop_ops (post_grad_passes, forward)"`
    """
    words = [w for w in (artifact.direction, _piece(artifact)) if w]
    if artifact.kind == "pass":
        what = f"pass {artifact.name}"
        words.insert(0, artifact.stage or "")
    elif artifact.kind == "ir":
        what = "Inductor IR " + (artifact.stage or "").replace("pre_", "before ").replace("post_", "after ")
    elif artifact.kind == "output_code":
        what = "output code"
    else:
        what = (artifact.stage or artifact.name).replace("_", "-")
    if artifact.kind in ("graph", "pass") and artifact.phase:
        what = f"{what}, {artifact.phase}" if artifact.kind == "graph" else f"{what} {artifact.phase}"
    words = [w for w in words if w]
    return f"{what} ({', '.join(words)})" if words else what


def _piece(artifact: ArtifactView) -> str | None:
    piece = artifact.subgraph
    if piece is None:
        return None
    name = piece.name or (f"piece {piece.index}" if piece.index is not None else None)
    return f"{name} {piece.range}" if piece.range else name


def _groups(artifacts: list[ArtifactView]) -> dict[Hashable, list[ArtifactView]]:
    """Sort stages by the graph they belong to: forward and backward may interleave."""
    groups: dict[Hashable, list[ArtifactView]] = defaultdict(list)
    captured = any(a.stage == "captured" for a in artifacts)
    for one in artifacts:
        if captured and one.stage == "runtime_asserts" and one.phase == "before":
            continue  # the captured graph once more, printed with less
        if one.kind in ("graph", "pass", "output_code") or (one.kind == "ir" and one.stage in _FUSION):
            groups[one.direction, _piece(one)].append(one)
    return groups


def _key(artifact: ArtifactView) -> Hashable:
    name = _COMPILED.sub("", canon.plain(artifact.name))
    return (artifact.kind, artifact.stage, artifact.phase, name)


def _compare(a: ArtifactView, b: ArtifactView, *, whole: bool) -> tuple[Answer, TextDifference | None]:
    """Compare the stage of two compiles; what differs is worked out only if `whole`."""
    if a.digest is not None and a.digest == b.digest:
        return "same", None
    text_a, text_b = a.text, b.text
    if text_a is None and text_b is None:
        return _by_counts(a, b), None
    if text_a is None or text_b is None:
        return "unknown", None
    if a.kind == "ir":
        text = diff_lines(canon.ir(text_a), canon.ir(text_b))
    elif whole:
        text = diff_graphs(text_a, text_b)
    else:
        return "same" if same_graph(text_a, text_b) else "differs", None
    return "same" if text is None else "differs", text


def _by_counts(a: ArtifactView, b: ArtifactView) -> Answer:
    if a.ops is None or b.ops is None:
        return "unknown"
    return "alike" if (a.ops, a.nodes) == (b.ops, b.nodes) else "differs"


def _ops_change(row: Row) -> dict[str, int]:
    if row.text is not None:
        return row.text.ops
    change = Counter((row.b and row.b.ops) or {})
    change.subtract((row.a and row.a.ops) or {})
    return {op: n for op, n in sorted(change.items()) if n}
