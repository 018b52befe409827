"""One environment variable turns capture on, in the processes that compile and in no others."""

from __future__ import annotations

from pathlib import Path

import pytest

import structdump

pytestmark = pytest.mark.slow

ONE = """
import sys, torch
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist(), sys.argv[1:])
"""
LOADED = """
import sys, torch
torch.ones(2) + 1
ours = sorted(m for m in sys.modules if m.startswith(("structdump", "depyf", "pydantic", "wrapt")))
print(ours, "structdump" in torch._logging._internal.trace_structured.__code__.co_filename)
"""


def bundles(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.name.endswith((".json.zst", ".journal")))


@pytest.mark.parametrize("level", [None, "off", " OFF "])
def test_off_loads_and_patches_nothing(run, script, tmp_path, level):
    done = run(script(LOADED), **({} if level is None else {"STRUCTDUMP_LEVEL": level}))
    assert (done.code, done.err) == (0, "")
    assert done.out == "['structdump', 'structdump.activate'] False\n"


def test_a_process_that_compiles_nothing_loads_no_more_and_says_nothing(run, script, tmp_path):
    done = run(script(LOADED), STRUCTDUMP_LEVEL="full", STRUCTDUMP_PASSES="no matter")
    assert done.err == ""
    names, patched = done.out.split("] ")
    assert "structdump.sources" not in names
    assert "pydantic" not in names
    assert patched == "False\n"
    assert bundles(tmp_path) == []


def test_the_program_needs_no_change_and_leaves_one_bundle(run, script, tmp_path):
    done = run(script(ONE), "--fast", "7", STRUCTDUMP_LEVEL="low")
    assert (done.code, done.out) == (0, "[2.0, 2.0] ['--fast', '7']\n")
    (path,) = bundles(tmp_path)
    assert path.name.startswith("structdump_program_")
    assert path.stat().st_mode & 0o777 == 0o600
    bundle = structdump.load(path)
    assert bundle.level == "low"
    assert bundle.run.argv[1:] == ["--fast", "7"]
    (line,) = done.said
    assert path.name in line
    assert "level low" in line


FAMILY = """
import multiprocessing, os, sys, torch
from torch.utils.data import DataLoader

def compiles(_=None):
    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

def computes(_=None):
    return float((torch.ones(2) + 1).sum())

if __name__ == "__main__":
    torch.compile(lambda x: x * 2 + 1)(torch.ones(64))  # Inductor, with its compile workers
    for method in ("fork", "spawn"):
        loader = DataLoader(list(range(8)), num_workers=2, multiprocessing_context=method)
        assert len(list(loader)) == 8
        with multiprocessing.get_context(method).Pool(2) as pool:
            pool.map(computes, range(4))
        for target in (compiles, computes):
            child = multiprocessing.get_context(method).Process(target=target)
            child.start(), child.join()
            assert child.exitcode == 0
    print(os.getpid())
"""


def test_each_process_that_compiles_leaves_one_bundle_and_workers_none(run, script, tmp_path):
    out = tmp_path / "out"
    done = run(
        script(FAMILY),
        STRUCTDUMP_LEVEL="medium",
        STRUCTDUMP_OUTPUT=str(out / "{program}_{pid}_{level}.json.zst"),
        TORCHINDUCTOR_COMPILE_THREADS="2",
    )
    assert done.code == 0, done.err
    found = bundles(out)
    assert [p.name.count("_medium.json.zst") for p in found] == [1, 1, 1], done.err
    pids = {structdump.load(p).run.pid for p in found}
    assert len(pids) == 3
    assert int(done.out.split()[-1]) in pids
    assert len(done.said) == 3
    by_backend = sorted(len(structdump.load(p).compiles) for p in found)
    assert by_backend == [1, 1, 1]


def test_placeholders_ranks_and_files_of_settings(run, script, tmp_path):
    program = script(ONE, "train.py")
    settings = tmp_path / "settings.toml"
    settings.write_text(
        '[structdump]\nlevel = "full"\noutput = "{program}-r{rank}-{level}"\nranks = [3, 4]\n'
    )
    done = run(program, STRUCTDUMP_LEVEL="medium", STRUCTDUMP_CONFIG=str(settings), RANK="3", WORLD_SIZE="8")
    assert done.code == 0
    path = tmp_path / "train-r3-medium.json.zst"  # the environment counts more than the file
    bundle = structdump.load(path)
    assert (bundle.run.rank, bundle.run.world_size, bundle.level) == (3, 8, "medium")
    run(program, STRUCTDUMP_LEVEL="medium", STRUCTDUMP_CONFIG=str(settings), RANK="5", WORLD_SIZE="8")
    assert bundles(tmp_path) == [path]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STRUCTDUMP_LEVEL", "meduim", "Did you mean 'medium'? Valid: off, low, medium, full"),
        ("STRUCTDUMP_KERNAL", "x", "Did you mean 'STRUCTDUMP_KERNELS'?"),
        ("STRUCTDUMP_CONFIG", "missing.toml", "cannot read missing.toml"),
    ],
)
def test_a_bad_setting_costs_one_warning(run, script, tmp_path, name, value, said):
    done = run(script(ONE), **{"STRUCTDUMP_LEVEL": "low", name: value})
    assert (done.code, done.out) == (0, "[2.0, 2.0] []\n")
    (line,) = done.err.splitlines()
    assert line.startswith("structdump: not active: ")
    assert said in line
    assert bundles(tmp_path) == []


def test_where_nothing_can_be_written_the_bundle_goes_to_the_temporary_directory(run, script, tmp_path):
    blocked = tmp_path / "a_file"
    blocked.write_text("")
    spare = tmp_path / "spare"
    spare.mkdir()
    done = run(script(ONE), STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=str(blocked / "out"), TMPDIR=str(spare))
    assert (done.code, done.out) == (0, "[2.0, 2.0] []\n")
    assert "cannot write to the output directory" in done.said[0]
    assert len(bundles(spare)) == 1


def test_run_captures_scripts_and_modules_as_python_runs_them(run, script, tmp_path):
    script(ONE + "print(__name__, sys.path[0] != '')\nsys.exit(5)\n", "mine.py")
    common = ("-m", "structdump", "run", "--level", "full", "--kinds", "graph")
    for how, options in (("script", ["mine.py"]), ("module", ["-m", "mine"])):
        out = tmp_path / f"{how}.json.zst"
        done = run(*common, "-o", out, *options, "--level", "mine")
        assert done.code == 5, done.err
        assert done.out == "[2.0, 2.0] ['--level', 'mine']\n__main__ True\n"
        bundle = structdump.load(out)
        assert {a.kind for a in bundle.artifacts} == {"graph"}
        assert bundle.level == "full"


def test_run_and_capture_work_where_torch_loads_no_entry_points(run, script, tmp_path):
    program = script(ONE)
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = run("-m", "structdump", "run", "-o", "ran.json.zst", program, "x", **off)
    assert (done.code, done.out) == (0, "[2.0, 2.0] ['x']\n"), done.err
    assert structdump.load(tmp_path / "ran.json.zst").compiles
    wrapped = script(
        "import structdump\nwith structdump.capture('api.json.zst', level='low') as cap:\n    pass"
        + ONE.replace("\n", "\n    ")
        + "\nprint(cap.path, cap.result.bytes > 0)\n",
        "api.py",
    )
    done = run(wrapped, **off)
    assert done.out.endswith("api.json.zst True\n"), done.err


def test_run_refuses_a_bad_setting_before_anything_starts(run, script, tmp_path):
    done = run("-m", "structdump", "run", "--level", "hihg", script(ONE))
    assert done.code == 2
    assert "Did you mean 'high'" not in done.err
    assert "Valid: off, low, medium, full" in done.err
    assert done.out == ""


def test_no_compile_no_file_under_run(run, script, tmp_path):
    done = run("-m", "structdump", "run", script("print('done')"))
    assert (done.code, done.out, done.err) == (0, "done\n", "")
    assert bundles(tmp_path) == []
