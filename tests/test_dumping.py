"""depyf.prepare_debug entered as vLLM enters it, in processes without vLLM."""

from __future__ import annotations

import os

import pytest

import structdump

pytestmark = pytest.mark.slow

# vllm/compilation/monitor.py, vLLM 0.32: `depyf.prepare_debug` is looked up at each call.
PROGRAM = """
import os, sys, torch
from structdump.activate import vllm_plugin

EARLY = "early" in sys.argv
if EARLY:
    import depyf
vllm_plugin()
vllm_plugin()

def probe(path):
    import depyf
    cm = depyf.prepare_debug(path)
    cm.__enter__()
    return cm

def compiled(number, path, inside=lambda: None):
    cm = probe(path)
    try:
        print(torch.compile(lambda x: x + number, backend="aot_eager")(torch.ones(2)).tolist())
        inside()
    finally:
        cm.__exit__(None, None, None)

def listed(path):
    return sorted(os.listdir(path)) if os.path.isdir(path) else []

dump = os.path.abspath("dump/rank_3_dp_1")
"""


def bundles(folder):
    return sorted(folder.glob("*.json.zst"))


@pytest.mark.parametrize("order", ["early", "late"])
def test_each_context_that_saw_something_extends_one_bundle(run, script, tmp_path, order):
    program = script(
        PROGRAM
        + """
cm = probe(dump)
cm.__exit__(None, None, None)
print(listed(dump))
compiled(1, dump)
first = [n for n in listed(dump) if n.endswith(".json.zst")]
cm = probe(dump)
cm.__exit__(None, None, None)
compiled(2, dump)
print(len(first), first == [n for n in listed(dump) if n.endswith(".json.zst")])
torch.compile(lambda x: x - 5, backend="aot_eager")(torch.ones(2))
"""
    )
    done = run(program, order, STRUCTDUMP_LEVEL="medium")
    assert (done.code, done.out) == (0, "[]\n[2.0, 2.0]\n[3.0, 3.0]\n1 True\n"), done.err
    folder = tmp_path / "dump" / "rank_3_dp_1"
    (path,) = folder.iterdir()
    bundle = structdump.load(path)
    assert len(bundle.compiles) == 3, "the last compile is outside of any context"
    assert bundle.complete
    assert bundle.hook_errors == []
    assert len(done.said) == 3, done.err
    assert bundles(tmp_path) == []


def test_the_bundle_is_there_while_the_process_lives_and_after_it_is_killed(run, script, tmp_path):
    done = run(script(PROGRAM + "compiled(1, dump)\nos.kill(os.getpid(), 9)\n"), STRUCTDUMP_LEVEL="low")
    assert done.code == -9
    (path,) = bundles(tmp_path / "dump" / "rank_3_dp_1")
    bundle = structdump.load(path)
    assert bundle.complete
    assert [c.status for c in bundle.compiles] == ["ok"]


def test_raw_files_only_on_request(run, script, tmp_path):
    program = script(PROGRAM + "compiled(1, dump)\n")
    folder = tmp_path / "dump" / "rank_3_dp_1"
    run(program, STRUCTDUMP_LEVEL="low")
    assert {p.suffix for p in folder.iterdir()} == {".zst"}
    done = run(program, STRUCTDUMP_LEVEL="low", STRUCTDUMP_KEEP_RAW="1")
    assert done.out == "[2.0, 2.0]\n"
    names = {p.name for p in folder.iterdir()}
    assert len(bundles(folder)) == 2
    assert any(name.startswith("__compiled_fn_") for name in names)
    assert any(name.startswith("full_code_for_") for name in names)


def test_off_is_silent_and_leaves_depyf_alone(run, script, tmp_path):
    program = script(
        PROGRAM
        + "import depyf\nprint(depyf.prepare_debug.__code__.co_filename.endswith('contextlib.py'))\n"
        + "print('wrapt' in sys.modules, 'structdump.sources' in sys.modules)\n"
        + "compiled(1, dump)\n"
    )
    done = run(program)
    assert done.out == "True\nFalse False\n[2.0, 2.0]\n", done.err
    assert done.said == []
    assert any(p.name.startswith("__compiled_fn_") for p in (tmp_path / "dump" / "rank_3_dp_1").iterdir())


def test_an_error_in_the_block_and_a_path_that_cannot_be_written_stay_the_programs(run, script, tmp_path):
    (tmp_path / "file").write_text("")
    program = script(
        PROGRAM
        + """
def fail():
    raise KeyError("theirs")
try:
    compiled(1, dump, fail)
except KeyError as error:
    print(error)
compiled(2, os.path.abspath("file/below"))
"""
    )
    done = run(program, STRUCTDUMP_LEVEL="low", TMPDIR=str(tmp_path))
    assert (done.code, done.out) == (0, "[2.0, 2.0]\n'theirs'\n[3.0, 3.0]\n"), done.err
    assert len(bundles(tmp_path / "dump" / "rank_3_dp_1")) == 1
    assert len(bundles(tmp_path)) == 1, "the second one goes to the temporary directory"


def test_failure_only_writes_nothing_for_a_good_compile(run, script, tmp_path):
    done = run(script(PROGRAM + "compiled(1, dump)\n"), STRUCTDUMP_LEVEL="low", STRUCTDUMP_WHEN="failure")
    assert done.code == 0, done.err
    assert not (tmp_path / "dump").exists() or bundles(tmp_path / "dump" / "rank_3_dp_1") == []


def test_what_vllm_writes_into_the_path_is_recorded_and_what_lay_there_is_not(run, script, tmp_path):
    folder = tmp_path / "dump" / "rank_3_dp_1"
    folder.mkdir(parents=True)
    old = folder / "patterns.Old.0.py"
    old.write_text("# of an earlier start")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    program = script(
        PROGRAM
        + "def write():\n    open(dump + '/patterns.Fused.0.py', 'w').write('def pattern_0(): ...')\n"
        + "compiled(1, dump, write)\n"
    )
    run(program, STRUCTDUMP_LEVEL="full")
    (path,) = bundles(folder)
    found = [a for a in structdump.load(path).artifacts if a.stage == "patterns"]
    assert [a.name for a in found] == ["patterns Fused"]
    assert found[0].digest


def test_ranks_that_are_not_asked_for_write_nothing(run, script, tmp_path):
    program = script(PROGRAM + "compiled(1, dump)\n")
    run(program, STRUCTDUMP_LEVEL="low", STRUCTDUMP_RANKS="0,8", RANK="3", WORLD_SIZE="9")
    assert bundles(tmp_path / "dump" / "rank_3_dp_1") == []
    run(program, STRUCTDUMP_LEVEL="low", STRUCTDUMP_RANKS="0,8", RANK="8", WORLD_SIZE="9")
    (path,) = bundles(tmp_path / "dump" / "rank_3_dp_1")
    assert (structdump.load(path).run.rank, structdump.load(path).run.world_size) == (8, 9)
