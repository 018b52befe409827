"""On or off, the user's program computes, compiles, caches and fails the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import WORKLOADS

import structdump

pytestmark = pytest.mark.slow

LEAVING = """
import os, torch
print(torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2)).tolist(), flush=True)
{ending}
"""


def cached(folder: Path) -> set[str]:
    """The names that Inductor's caches hold: cache keys, and hashes of sources."""
    names = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
    # Under a key lies the pickled entry, named by a hash of itself, which holds times.
    keys = {str(n.parent if n.parts[0] in ("fxgraph", "aotautograd") else n) for n in names}
    return {n for n in keys if not re.search(r"\.lock$|/locks?/|tmp", n)}


def test_everything_a_program_sees_is_the_same(run, tmp_path):
    results = {}
    for level in ("off", "full"):
        done = run(
            WORKLOADS / "passive.py",
            caches=tmp_path / level,
            cwd=tmp_path,
            STRUCTDUMP_LEVEL=level,
            STRUCTDUMP_OUTPUT=str(tmp_path / "passive.json.zst"),
        )
        assert done.code == 0, done.err
        results[level] = json.loads(done.out)
    for name, off in results["off"].items():
        assert results["full"][name] == off, name
    assert results["off"]["list_mutation"]["result"] == "([0.0, 0.0], [2.0, 2.0], [2.0, 2.0])"
    assert cached(tmp_path / "off" / "inductor") == cached(tmp_path / "full" / "inductor")
    assert (tmp_path / "passive.json.zst").exists()


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("os._exit(9)", 9),
        ("raise KeyError('mine')", 1),
        ("os.kill(os.getpid(), 15)", -15),
    ],
)
def test_exit_codes_and_output_stay(run, script, tmp_path, ending, code):
    program = script(LEAVING.format(ending=ending))
    done = run(program, STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=str(tmp_path / "out"))
    assert (done.code, done.out) == (code, "[2.0, 2.0]\n")
    rest = [line for line in done.err.splitlines() if not line.startswith("structdump:")]
    assert (rest[-1:] == ["KeyError: 'mine'"]) if "mine" in ending else (rest == [])
    names = [p.name for p in (tmp_path / "out").iterdir()]
    assert len(names) == 1
    # A process that is killed or leaves by os._exit keeps its journal, which reads like a bundle.
    assert names[0].endswith(".json.zst" if code in (7, 1) else ".journal")


TRACED = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())
torch.compile(net, backend="aot_eager")(torch.ones(2, 4)).sum().backward()

@torch.compile(backend="aot_eager")
def g(x, flag):
    y = x + (1 if flag else 2)
    print("", end="")
    return y.relu()

g(torch.ones(2), True), g(torch.ones(2), False)
torch.compile(lambda x: x * 2 + 1)(torch.ones(3))
"""


def told(log: str) -> list[str]:
    """Where each record of a log comes from, and its kind.

    Without the pauses of garbage collection, and the time that a bytecode hook takes, which torch tells.
    """
    records = re.split(r"^(?=V\d{4} )", log, flags=re.MULTILINE)[1:]
    ours = re.compile(r'"chromium_event".*"name": "(gc|bytecode_hooks_\d+)"', re.DOTALL)
    kept = [r for r in records if not ours.search(r)]
    return [re.sub(r"^V\S+ \S+ \d+ (\S+\] {\"\w+).*", r"\1", r, flags=re.DOTALL) for r in kept]


def test_a_torch_trace_log_says_the_same(run, script, tmp_path):
    program = script(TRACED)
    places = {}
    for level in ("off", "full"):
        trace = tmp_path / f"trace_{level}"
        done = run(
            program,
            caches=tmp_path / f"caches_{level}",
            TORCH_TRACE=str(trace),
            STRUCTDUMP_LEVEL=level,
            STRUCTDUMP_OUTPUT=str(tmp_path / "trace.json.zst"),
        )
        assert done.code == 0, done.err
        (log,) = trace.iterdir()
        places[level] = told(log.read_text(encoding="utf-8"))
    assert places["full"] == places["off"]
    assert len(places["off"]) > 100
    assert not any("structdump" in place for place in places["full"])


def without_uuids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}", "uuid", text)


DEPYF = """
import os, sys, torch, depyf, structdump, warnings
warnings.simplefilter("ignore")
inside, folder = sys.argv[1] == "inside", sys.argv[2]

@torch.compile(backend="aot_eager")
def f(x):
    return x.sin() + 1

def compute():
    print(f(torch.ones(2)).tolist())

if sys.argv[1] == "alone":
    with depyf.prepare_debug(folder):
        compute()
elif inside:
    with structdump.capture("run.json.zst", level="full"), depyf.prepare_debug(folder):
        compute()
else:
    with depyf.prepare_debug(folder), structdump.capture("run.json.zst", level="full"):
        compute()
print(sorted(n for n in os.listdir(folder)))
print(torch._dynamo.utils.lazy_format_graph_code.__code__.co_filename.endswith("_utils.py"))
"""


def test_the_users_own_depyf_gets_its_files(run, script, tmp_path):
    program = script(DEPYF)
    alone = run(program, "alone", tmp_path / "alone")
    for order in ("inside", "around"):
        both = run(program, order, tmp_path / order)
        assert alone.code == both.code == 0, both.err
        assert without_uuids(both.out) == without_uuids(alone.out)
        bundle = structdump.load(tmp_path / "run.json.zst")
        assert {a.stage for a in bundle.artifacts} >= {"captured", "forward", "decompiled"}
        (tmp_path / "run.json.zst").unlink()


NESTED = """
import torch, structdump
f = torch.compile(lambda x: x + 1, backend="eager")
g = torch.compile(lambda x: x * 2, backend="eager")
with structdump.capture("outer.json.zst") as outer:
    f(torch.ones(2))
    with structdump.capture("inner.json.zst") as inner:
        g(torch.ones(2))

@structdump.capture("called.json.zst")
def step():
    return torch.compile(lambda x: x - 1, backend="eager")(torch.ones(2))

step()
with structdump.capture("nothing.json.zst") as nothing:
    torch.ones(2) + 1
assert nothing.path is None
print(outer.path.name, inner.path.name)
"""


def test_captures_nest_and_decorate(run, script, tmp_path):
    done = run(script(NESTED))
    assert done.code == 0, done.err
    assert done.out == "outer.json.zst inner.json.zst\n"
    count = {
        n: len(structdump.load(tmp_path / f"{n}.json.zst").compiles) for n in ("outer", "inner", "called")
    }
    assert count == {"outer": 2, "inner": 1, "called": 1}
    assert not (tmp_path / "nothing.json.zst").exists()


BROKEN = """
import sys, torch
import torch._dynamo
import torch._logging._internal as internal
{break_it}
import structdump
with structdump.capture("x.json.zst", level="full"):
    print(torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2)).tolist())
"""


@pytest.mark.parametrize(
    ("break_it", "hook"),
    [
        ("internal.trace_structured = lambda *a, **k: None", "trace_structured"),
        ("import torch._dynamo.utils as d; d.lazy_format_graph_code = lambda nom, *a, **k: ''", "lazy"),
        ("sys.modules['depyf'] = None; sys.modules['depyf.decompiler'] = None", "depyf"),
    ],
)
def test_a_torch_or_depyf_that_does_not_fit_costs_one_hook(run, script, tmp_path, break_it, hook):
    done = run(script(BROKEN.format(break_it=break_it)))
    assert done.code == 0, done.err
    assert done.out == "[2.0, 2.0]\n"
    bundle = structdump.load(tmp_path / "x.json.zst")
    assert any(hook in error.hook for error in bundle.hook_errors)
    assert any(a.kind == "graph" for a in bundle.artifacts)


def test_without_torch_a_capture_says_so(run, script):
    program = script(
        "import sys; sys.modules['torch'] = None\n"
        "import structdump\n"
        "try:\n    structdump.capture('x.json.zst')\n"
        "except structdump.StructdumpError as error:\n    print(error)\n"
    )
    assert "PyTorch is not installed" in run(program).out
