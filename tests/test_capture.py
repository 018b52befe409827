"""What a real compile leaves in its bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

import structdump
from structdump.bundle.reader import verify

pytestmark = pytest.mark.slow


def kinds(captured, **match):
    return [
        a
        for a in captured.bundle.artifacts
        if all(getattr(a, name) == value for name, value in match.items())
    ]


def test_a_bundle_is_sound(train_full, train_low, conv_medium, failing_low):
    for captured in (train_full, train_low, conv_medium, failing_low):
        assert verify(captured.path) == []
        assert captured.bundle.hook_errors == []
        assert captured.bundle.complete


def test_one_line_on_stderr(train_low):
    (line,) = train_low.run.said
    assert "train-low.json.zst" in line
    assert "level low" in line
    assert "kept" in line


def test_counts_add_up(train_full, train_low):
    for captured in (train_full, train_low):
        c = captured.bundle.completeness
        assert c.kept + c.indexed + c.dropped == c.seen
    # Every event is seen at every level; only what is kept of it differs. Passes and IR are asked for
    # by level, so they are seen at full alone.
    full = {a.kind for a in train_full.bundle.artifacts}
    assert full >= {"graph", "pass", "output_code", "kernel", "guards", "source", "bytecode", "repro", "ir"}


def test_every_stage_of_training_has_its_identity(train_full):
    for compile_id in ("0/0", "1/0"):
        stages = {(a.stage, a.direction) for a in kinds(train_full, kind="graph", compile_id=compile_id)}
        assert stages >= {
            ("captured", None),
            ("joint", "joint"),
            ("forward", "forward"),
            ("backward", "backward"),
            ("post_grad", "forward"),
            ("post_grad", "backward"),
        }
        pre = kinds(train_full, kind="graph", compile_id=compile_id, stage="pre_grad")
        assert [a.phase for a in pre] == ["before", "after"]
        codes = kinds(train_full, kind="output_code", compile_id=compile_id)
        assert {a.direction for a in codes} == {"forward", "backward"}


def test_graph_text_is_the_printed_module(train_full):
    graph = train_full.bundle.graphs(stage="captured", compile_id="0/0")[0]
    assert "class GraphModule(torch.nn.Module):" in graph.text
    assert "f32[2, 8, 32]" in graph.text
    assert graph.nodes == 20
    assert graph.ops["torch._C._nn.linear"] == 2


def test_the_recompile_says_why(train_full, train_low):
    for captured in (train_full, train_low):
        by_id = {c.id: c for c in captured.bundle.compiles}
        assert set(by_id) == {"0/0", "0/1", "1/0", "1/1"}
        assert by_id["0/0"].function.name == "forward"
        assert by_id["0/0"].function.file.endswith("train.py")
        assert by_id["0/0"].function.line == 23
        again = by_id["0/1"].recompile
        assert "size mismatch" in again.reason
        assert again.previous == "0/0"
        assert by_id["0/0"].recompile is None


def test_the_graph_break_says_where(train_low):
    first = next(c for c in train_low.bundle.compiles if c.id == "0/0")
    (broke,) = first.graph_breaks
    assert "graph_break" in broke.reason
    assert broke.stack[-1].file.endswith("train.py")
    assert broke.stack[-1].line == 25
    assert broke.resumed_by == "1/0"
    resumed = next(c for c in train_low.bundle.compiles if c.id == "1/0")
    assert resumed.function.name.startswith("torch_dynamo_resume_in_forward")


def test_times_and_status(train_low):
    for item in train_low.bundle.compiles:
        assert item.status == "ok"
        assert 0 < item.seconds < 280
        assert item.cache.fx_graph == "miss"
        assert item.guards > 0


def test_a_failing_compile_still_writes_and_raises_its_own_error(failing_low):
    assert failing_low.run.code == 1
    assert "no lowering for twice today" in failing_low.run.err
    own = str(Path(structdump.__file__).parent)
    assert own not in failing_low.run.err
    (failed,) = failing_low.bundle.compiles
    assert failed.status == "failed"
    assert "ValueError: no lowering for twice today" in failed.error.message
    assert "failing.py" in failed.error.traceback
    assert "Traceback (most recent call last)" in failed.error.traceback
    assert failing_low.bundle.graphs(stage="captured")[0].text


def test_kernels_are_listed_at_low_and_whole_at_medium(train_low, conv_medium):
    low = train_low.bundle.kernels()
    assert any(k.kernel.backend == "cpp" for k in low)
    assert any(k.kernel.backend == "extern" for k in low)
    assert all(k.source is None and k.omitted.reason == "level" for k in low if k.kernel.backend == "cpp")
    (code,) = [a for a in conv_medium.bundle.artifacts if a.kind == "output_code"]
    for kernel in conv_medium.bundle.kernels():
        if kernel.kernel.backend == "cpp":
            assert kernel.source in code.text
            assert kernel.provenance.ops


def test_decompiled_source_and_full_code(train_full):
    sources = {a.stage for a in kinds(train_full, kind="source")}
    assert sources >= {"decompiled", "full_code"}
    decompiled = next(a for a in train_full.bundle.artifacts if a.stage == "decompiled")
    assert "__compiled_fn_" in decompiled.text
    full = next(a for a in train_full.bundle.artifacts if a.stage == "full_code")
    assert "def transformed_forward" in full.text
    assert "__guard_hit" in full.text


def test_passes_say_whether_they_changed_the_graph(train_full):
    runs = train_full.bundle.passes()
    changed = [p for p in runs if p.changed]
    assert len(runs) > 100
    assert {p.name for p in changed} >= {"pattern_matcher"}
    matcher = next(p for p in changed if p.name == "pattern_matcher" and p.compile_id == "0/0")
    assert matcher.nodes < matcher.data["nodes_before"]
    assert sum(matcher.data["ops_before"].values()) > sum(matcher.ops.values())


def test_environment(train_low):
    environment = train_low.bundle.environment
    assert environment.versions["torch"].startswith("2.")
    assert environment.versions["depyf"]
    assert environment.versions["python"]
    assert environment.os
    assert environment.cpu_count > 0
    assert environment.variables["STRUCTDUMP_LEVEL"] == "low"
    assert set(environment.configs) >= {"torch._dynamo.config", "torch._inductor.config"}


KILLED = """
import os, sys, torch, structdump

def backend(gm, inputs):
    raise RuntimeError("this backend always fails")

cap = structdump.capture("killed.json.zst", level="low").__enter__()
torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
cap.pause()
torch.compile(lambda x: x - 1, backend="aot_eager")(torch.ones(2))
cap.resume()
try:
    torch.compile(lambda x: x + 2, backend=backend)(torch.ones(2))
except Exception:
    pass
cap.flush()
os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_its_compiles_and_their_errors(run, script, tmp_path):
    assert run(script(KILLED)).code == -9
    (journal,) = tmp_path.glob("*.journal")
    bundle = structdump.load(journal)
    assert bundle.complete is False
    assert bundle.completeness.verdict == "partial"
    assert [c.status for c in bundle.compiles] == ["ok", "failed"]
    assert "this backend always fails" in bundle.compiles[1].error.message
    assert {"captured"} <= {a.stage for a in bundle.artifacts if a.digest}
