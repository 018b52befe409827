from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from report_bundles import CLAMP, RELU, bundle, everything, stages

from structdump.report.pairs import align, pair_bundles


@given(st.text(alphabet="abcd", max_size=20), st.text(alphabet="abcd", max_size=20))
def test_aligning_keeps_everything_once_and_in_order(a: str, b: str) -> None:
    pairs = align(a, b, str)
    assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
    assert sorted(j for _, j in pairs if j is not None) == list(range(len(b)))
    for i, j in pairs:
        assert i is None or j is None or a[i] == b[j]
    both = sum(i is not None and j is not None for i, j in pairs)
    assert both == sum(min(a.count(c), b.count(c)) for c in "abcd")


def test_compiles_are_paired_by_function_and_order(tmp_path: Path) -> None:
    def compiles(*names: str) -> list[dict]:
        return [{"id": f"{i}/7", "function": {"name": name}} for i, name in enumerate(names)]

    a = bundle([], compiles("f", "g", "f"), tmp_path / "a")
    b = bundle(
        [], [{**c, "id": f"b{i}"} for i, c in enumerate(compiles("g", "f", "h", "f", "f"))], tmp_path / "b"
    )
    assert sorted(pair_bundles(a, b).compiles, key=str) == [(0, 1), (1, 0), (2, 3), (None, 2), (None, 4)]


def test_everything_is_paired_once_but_telemetry(tmp_path: Path) -> None:
    a = everything(tmp_path / "a")
    b = everything(tmp_path / "b")
    pairs = pair_bundles(a, b).artifacts
    kept = [i for i, artifact in enumerate(a.artifacts) if artifact.kind != "trace"]
    assert sorted((i, j) for i, j, _ in pairs) == [(i, i) for i in kept]
    stage_kinds = {"graph", "pass", "output_code"}
    for i, _, answer in pairs:
        kind = a.artifacts[i].kind
        text = kind == "kernel" and a.artifacts[i].digest
        assert answer == ("same" if kind in stage_kinds or text else None)


def test_names_do_not_count_and_ops_do(tmp_path: Path) -> None:
    def answers(relu: str) -> dict[str | None, str | None]:
        b = everything(tmp_path / relu[:30].strip(), relu=relu)
        graphs = [(i, w) for i, _, w in pair_bundles(a, b).artifacts if a.artifacts[i].kind == "graph"]
        return {f"{a.artifacts[i].stage} {a.artifacts[i].phase}": w for i, w in graphs}

    a = everything(tmp_path / "a")
    renamed = answers(RELU.replace("relu:", "relu_7:").replace("(relu,)", "(relu_7,)"))
    assert set(renamed.values()) == {"same"}
    changed = answers(CLAMP)
    assert [stage for stage, answer in changed.items() if answer == "differs"] == ["post_grad after"]


def test_a_compile_id_that_is_taken_by_another_function_does_not_mislead(tmp_path: Path) -> None:
    functions = [{"id": "0/0", "function": {"name": "f"}}, {"id": "1/0", "function": {"name": "g"}}]
    swapped = [{"id": "0/0", "function": {"name": "g"}}, {"id": "1/0", "function": {"name": "f"}}]
    own = [a for a in stages(RELU, 64) if a["kind"] == "graph"]
    moved = [{**a, "compile_id": {"0/0": "1/0", "1/0": "0/0"}[a["compile_id"]]} for a in own]
    a, b = bundle(own, functions, tmp_path / "a"), bundle(moved, swapped, tmp_path / "b")
    assert sorted(pair_bundles(a, b).artifacts) == [(i, i, "same") for i in range(len(own))]


def test_counters_in_names_do_not_count(tmp_path: Path) -> None:
    a = bundle([{"kind": "event", "name": "__compiled_fn_1"}], [], tmp_path / "a")
    b = bundle([{"kind": "event", "name": "__compiled_fn_2"}], [], tmp_path / "b")
    assert pair_bundles(a, b).artifacts == [(0, 0, None)]
