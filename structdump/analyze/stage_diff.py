"""Where two compiles of one function part: the first stage or pass whose graphs differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from structdump.analyze import canon
from structdump.analyze.difference import Stage, StageDifference
from structdump.analyze.graph_diff import diff_graphs, same_graph
from structdump.analyze.text_diff import TextDifference, diff_lines
from structdump.bundle.align import Pairs, align
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

    def first(self, *, alike: bool = True) -> StageDifference | None:
        """Return the first stage that differs, and what is known of those right before it.

        Unless `alike`, that a stage is in one bundle alone says nothing: the other may have left it out.
        """
        at = next((n for n, row in enumerate(self.rows) if row.answer == "differs"), None)
        if at is None:
            return None
        before = self.rows[:at]
        sure = max((n for n, r in enumerate(before) if r.answer == "same"), default=-1)
        between = [r for r in before[sure + 1 :] if alike or r.answer not in ("only_a", "only_b")]
        row = self.rows[at]
        # A pass that ran on one side alone and changed the graph is the reason, not the stage after it.
        cause = next((r for r in between if r.one.changed and r.answer in ("only_a", "only_b")), row)
        found = StageDifference(cause.stage, None if cause is row else row.stage, row.text, _ops_change(row))
        found.last_same = before[sure].stage if sure >= 0 else None
        told = [f"{r.stage.label}: {_WHY[r.answer]}" for r in between if r is not cause]
        found.between = list(dict.fromkeys(told))
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
    left, right = _groups(a, b)
    placed: list[tuple[int, int, Row]] = []
    for group in [*left, *(g for g in right if g not in left)]:
        mine, theirs = left.get(group, []), right.get(group, [])
        theirs = _codes_in_order(mine, theirs)
        at = mine[0].seq - 1 if mine else len(placed) + max((s.seq for s in a), default=0)
        i = j = 0
        for end_a, end_b in [*_aligned(mine, theirs), (len(mine), len(theirs))]:
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
    known: dict[Hashable, Answer] = {}  # most passes leave the text as it was
    for row in rows:
        if row.a is None or row.b is None:
            continue
        texts = (row.a.digest, row.b.digest, row.a.kind)
        if None not in texts and texts in known:
            row.answer = known[texts]
            continue
        row.answer, row.text = _compare(row.a, row.b, whole=not parted)
        known[texts] = row.answer
        parted = parted or row.answer == "differs"
    return StageReport(rows)


def _aligned(a: list[ArtifactView], b: list[ArtifactView]) -> Pairs:
    """Pair stages in order: those with equal texts first, then those of equal names between them."""
    keys_a, keys_b = [_key(s) for s in a], [_key(s) for s in b]
    same = align(
        [(k, s.digest) for k, s in zip(keys_a, a, strict=True)],
        [(k, s.digest) for k, s in zip(keys_b, b, strict=True)],
    )
    pairs: Pairs = []
    i = j = 0
    for end_a, end_b in [*same, (len(a), len(b))]:
        pairs += [(i + m, j + n) for m, n in align(keys_a[i:end_a], keys_b[j:end_b])]
        pairs += [(end_a, end_b)] if end_a < len(a) else []
        i, j = end_a + 1, end_b + 1
    return pairs


def _codes_in_order(a: list[ArtifactView], b: list[ArtifactView]) -> list[ArtifactView]:
    """Return B with its output codes in A's order: from a cache they are loaded in any."""
    texts: dict[str | None, int] = {
        s.digest: n for n, s in reversed(list(enumerate(a))) if s.kind == "output_code"
    }
    names = {s.graph_id: n for n, s in reversed(list(enumerate(a))) if s.kind == "output_code"}
    codes = [s for s in b if s.kind == "output_code"]
    codes.sort(key=lambda s: texts.get(s.digest, names.get(s.graph_id, len(a))))
    ordered = iter(codes)
    return [next(ordered) if s.kind == "output_code" else s for s in b]


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


Groups = dict[Hashable, list[ArtifactView]]


def _groups(a: list[ArtifactView], b: list[ArtifactView]) -> tuple[Groups, Groups]:
    """Sort stages by the graph they belong to: forward and backward may interleave.

    A directory does not tell the pieces of a split graph apart, and lists each stage by itself. Against
    one that does, each stage is a group then; how often it ran must be the same to know what is what.
    """
    sides = [
        [x for x in side if _is_stage(x, captured)]
        for side, captured in ((a, _captured(a)), (b, _captured(b)))
    ]
    pieces = [any(x.subgraph for x in side) for side in sides]
    by_stage = pieces[0] != pieces[1] and all(sides)
    out: tuple[Groups, Groups] = (defaultdict(list), defaultdict(list))
    for side, groups in zip(sides, out, strict=True):
        for one in side:
            groups[(one.direction, _key(one)) if by_stage else (one.direction, _piece(one))].append(one)
    if by_stage:
        for group in out[0].keys() & out[1].keys():
            if len(out[0][group]) != len(out[1][group]):
                out[1][None, group] = out[1].pop(group)
    return out


def _captured(artifacts: list[ArtifactView]) -> bool:
    return any(a.stage == "captured" for a in artifacts)


def _is_stage(artifact: ArtifactView, captured: bool) -> bool:
    if captured and artifact.stage == "runtime_asserts" and artifact.phase == "before":
        return False  # the captured graph once more, printed with less
    if artifact.kind == "ir":
        return artifact.stage in _FUSION
    return artifact.kind in ("graph", "pass", "output_code")


def _key(artifact: ArtifactView) -> Hashable:
    """Return what a stage is known by. Sources name graphs in ways of their own; passes have one name."""
    name = artifact.name if artifact.kind == "pass" or artifact.stage is None else ""
    return (artifact.kind, artifact.stage, artifact.phase, _COMPILED.sub("", canon.plain(name)))


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
