"""vLLM's real backend on the CPU. Skipped where vLLM is missing; examples/vllm_on_cpu.sh sets it up."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from conftest import WORKLOADS, Run, python

import structdump

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
    pytest.mark.timeout(900),
]
TOY = WORKLOADS / "vllm_toy.py"
SECRET = "hush-4711"


def start(folder: Path, **extra: str) -> Run:
    caches = folder / "caches"
    settings = {
        "VLLM_CACHE_ROOT": str(caches / "vllm"),
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_DEBUG_DUMP_PATH": str(folder / "dump"),
        "VLLM_PATTERN_MATCH_DEBUG": SECRET,
        **extra,
    }
    settings = {name: value for name, value in settings.items() if value}
    done = python(TOY, caches=caches, cwd=folder, timeout=400, **settings)
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cold")
    return folder, start(folder, STRUCTDUMP_LEVEL="full")


def bundle_path(folder: Path) -> Path:
    (path,) = (folder / "dump" / "rank_0_dp_0").glob("*.json.zst")
    return path


def bundle_in(folder: Path) -> structdump.Bundle:
    return structdump.load(bundle_path(folder))


def test_the_bundle_lies_in_the_dump_path_alone(cold):
    folder, done = cold
    assert list(folder.glob("*.json.zst")) == []
    names = [p.name for p in (folder / "dump" / "rank_0_dp_0").iterdir()]
    assert [n for n in names if not n.startswith("patterns.")] == [bundle_path(folder).name]
    assert "_rank0_" in names[0]
    assert all("/rank_0_dp_0/" in line for line in done.said), "a probe that compiled nothing wrote a bundle"


def test_it_knows_whose_compile_it_is(cold):
    bundle = bundle_in(cold[0])
    vllm = bundle.environment.extra["vllm"]
    assert (vllm["rank"], vllm["dp_rank"], vllm["tensor_parallel_size"]) == (0, 0, 1)
    assert vllm["version"] == bundle.environment.versions["vllm"]
    assert vllm["compilation_config"]["mode"] == "VLLM_COMPILE"
    assert vllm["compilation_config"]["splitting_ops"] == ["toy::attention"]
    assert (bundle.run.rank, bundle.run.launcher["dp_rank"]) == (0, "0")
    (compiled,) = bundle.compiles
    assert (compiled.function.name, compiled.status) == ("forward", "ok")
    assert bundle.hook_errors == []


def test_every_graph_has_its_piece_and_range(cold):
    bundle = bundle_in(cold[0])
    whole = {"captured", "runtime_asserts", "split", "split_module"}
    pieces = set()
    for artifact in bundle.artifacts:
        if artifact.kind in ("graph", "pass", "output_code", "kernel"):
            if artifact.stage in whole:
                assert artifact.subgraph is None
            else:
                assert artifact.subgraph is not None, artifact.name
                pieces.add((artifact.subgraph.name, *artifact.subgraph.range))
    assert pieces == {(name, *ends) for name in ("submod_0", "submod_2") for ends in ((4, 4), (1, 2048))}


def test_vllms_passes_stand_before_and_after_and_say_whether_they_changed(cold):
    bundle = bundle_in(cold[0])
    found = [a for a in bundle.artifacts if a.kind == "pass" and a.stage == "post_grad"]
    names = {a.name for a in found}
    assert names >= {"NoOpEliminationPass", "VllmIRLoweringPass", "FixFunctionalizationPass"}
    for name in names:
        before, after = ([a for a in found if (a.name, a.phase) == (name, p)] for p in ("before", "after"))
        if before:
            assert len(before) == len(after)
            assert {type(a.changed) for a in after} == {bool}
    lowered = {a.subgraph.name: a for a in found if (a.name, a.phase) == ("VllmIRLoweringPass", "after")}
    assert [lowered[name].changed for name in ("submod_0", "submod_2")] == [False, True]


def test_cache_key_factors_are_redacted(cold):
    bundle = bundle_in(cold[0])
    (factors,) = (a for a in bundle.artifacts if a.stage == "cache_key_factors")
    text = bundle.text(factors.digest)
    assert '"config_hash"' in text
    assert str(Path.home()) + "/" not in text


def test_a_warm_start_says_so_and_keeps_raw_files_on_request(cold):
    folder, _ = cold
    start(folder, STRUCTDUMP_LEVEL="low", STRUCTDUMP_KEEP_RAW="1")
    paths = sorted((folder / "dump" / "rank_0_dp_0").glob("*.json.zst"), key=lambda p: p.stat().st_mtime)
    assert len(paths) == 2
    warm = structdump.load(paths[-1])
    assert warm.completeness.verdict == "warm"
    assert warm.environment.extra["vllm"]["version"]
    raw = {p.name for p in paths[0].parent.glob("__compiled_fn_*")}
    assert any(".kernel_" in name for name in raw)
    paths[-1].unlink()


def test_without_a_dump_path_the_environment_is_enough(tmp_path):
    start(tmp_path, STRUCTDUMP_LEVEL="low", VLLM_DEBUG_DUMP_PATH="")
    (path,) = tmp_path.glob("*.json.zst")
    bundle = structdump.load(path)
    assert bundle.environment.extra["vllm"]["compilation_config"]["mode"] == "VLLM_COMPILE"
    assert {a.subgraph.name for a in bundle.graphs(stage="post_grad")} == {
        "submod_0",
        "submod_2",
    }


def test_off_leaves_vllms_dump_as_it_is(tmp_path):
    done = start(tmp_path, STRUCTDUMP_LEVEL="")
    assert done.said == []
    names = {p.name for p in (tmp_path / "dump" / "rank_0_dp_0").iterdir()}
    assert any("post_grad.0.NoOpEliminationPass.after" in name for name in names)
