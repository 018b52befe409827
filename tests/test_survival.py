"""Nothing captured is lost: processes killed for real, full disks, forks; and the flight recorder."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import clean_environment

import structdump
from structdump.bundle.reader import verify
from structdump.cli import main

pytestmark = pytest.mark.slow

#: Compiles for as long as it lives, and says so.
ENDLESS = """
import sys, torch
x = torch.ones(4)
for n in range(10_000):
    torch._dynamo.reset()
    torch.compile(lambda x: (x * n).sin() + n, backend="aot_eager")(x)
    print(n, flush=True)
"""


def started(program: Path, folder: Path, **settings: str) -> subprocess.Popen[str]:
    environment = clean_environment(folder / "caches", STRUCTDUMP_LEVEL="full", **settings)
    environment["STRUCTDUMP_OUTPUT"] = str(folder / "out.json.zst")
    return subprocess.Popen(
        [sys.executable, str(program)], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("round_", range(5))
def test_a_kill_at_any_moment_loses_nothing_that_was_seen(script, tmp_path, round_):
    child = started(script(ENDLESS), tmp_path)
    done = int(child.stdout.readline())
    moment = random.Random(os.urandom(8)).uniform(0, 1.5)
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    rest = child.communicate()[0].split()
    done = int(rest[-1]) if rest else done
    (journal,) = tmp_path.glob("*.journal")
    assert journal.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "out.json.zst").exists()
    left = structdump.load(journal)
    assert left.complete is False
    assert left.completeness.verdict == "partial"
    graphs = left.graphs(stage="captured")
    assert len(graphs) >= done + 1, f"killed after {moment:.3f} s, {done + 1} compiles had ended"
    assert all(graph.text for graph in graphs)
    assert {c.status for c in left.compiles[: done + 1]} == {"ok"}
    assert main(["show", str(journal)]) == 0
    assert main(["recover", str(journal)]) == 0
    assert not journal.exists()
    bundle = structdump.load(tmp_path / "out.json.zst")
    assert [a.digest for a in bundle.artifacts] == [a.digest for a in left.artifacts]
    assert verify(tmp_path / "out.json.zst") == []
    assert bundle.completeness.verdict == "partial"


def test_sigterm_ends_the_program_as_ever_and_leaves_a_journal(script, tmp_path):
    child = started(script(ENDLESS), tmp_path)
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    child.communicate()
    assert child.returncode == -signal.SIGTERM
    (left,) = [*tmp_path.glob("*.journal"), *tmp_path.glob("*.json.zst")]
    assert structdump.load(left).graphs(stage="captured")


def test_doctor_tells_of_journals_that_dead_processes_left(script, tmp_path, monkeypatch, capsys):
    child = started(script(ENDLESS), tmp_path)
    child.stdout.readline()
    monkeypatch.chdir(tmp_path)
    main(["doctor"])
    assert ".journal" not in capsys.readouterr().out  # its process lives
    child.kill()
    child.communicate()
    main(["doctor"])
    told = capsys.readouterr().out
    assert "out.json.zst" in told
    assert "recover" in told


FORKS = """
import multiprocessing, os, sys, torch

def work(n):
    return torch.compile(lambda x: x.cos() + n, backend="eager")(torch.ones(2)).sum().item()

if __name__ == "__main__":
    torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(2))
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(len(pool.map(work, range(4))))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_every_start_method_leave_the_parents_file_whole(run, script, tmp_path, method):
    out = tmp_path / "out"
    out.mkdir()
    done = run(script(FORKS), method, STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=str(out))
    assert done.out.strip() == "4", done.err
    bundles = [structdump.load(path) for path in out.glob("*.json.zst")]
    assert all(verify(path) == [] for path in out.glob("*.json.zst"))
    own = [b for b in bundles if any("sin" in g.text for g in b.graphs(stage="captured"))]
    assert len(own) == 1
    assert not any("cos" in g.text for g in own[0].graphs(stage="captured"))
    # A pool ends its workers by a signal, so what they compiled is in journals or bundles, each with its own.
    for journal in out.glob("*.journal"):
        assert structdump.load(journal).run.pid != own[0].run.pid


@contextlib.contextmanager
def small_disk(path: Path, size: str):
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a disk that is full soon")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)


FILLING = """
import torch
for n in range(60):
    torch._dynamo.reset()
    torch.compile(lambda x: (x * n).sin() + n, backend="aot_eager")(torch.ones(4))
print("computed")
"""


def test_a_full_disk_costs_one_warning_and_the_rest_of_the_capture(run, script, tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        done = run(
            script(FILLING), STRUCTDUMP_LEVEL="full", STRUCTDUMP_OUTPUT=str(disk / "out.json.zst")
        )  # fmt: skip
        assert done.code == 0, done.err
        assert done.out.strip() == "computed"
        assert len(done.said) == 1
        assert "Traceback" not in done.err
        (left,) = disk.iterdir()
        bundle = structdump.load(left)
        assert len(bundle.graphs(stage="captured")) > 3
        assert bundle.completeness.verdict == "partial"


RECORDER = """
import sys, torch
@torch.compile(backend="aot_eager")
def f(x):
    return x.sin()
f(torch.ones(3))
if sys.argv[1] == "fails":
    def backend(gm, inputs):
        raise ValueError("no")
    try:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    except Exception:
        print("failed")
if sys.argv[1] == "limit":
    torch._dynamo.config.recompile_limit = 2
    @torch.compile(backend="eager", dynamic=False)
    def g(x):
        return x + 1
    for n in range(2, 7):
        g(torch.ones(n))
if sys.argv[1] == "falls back":
    torch._dynamo.config.suppress_errors = True
    def backend(gm, inputs):
        raise ValueError("no")
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
"""


@pytest.mark.parametrize(("how", "kept"), [("well", 0), ("fails", 1), ("limit", 1), ("falls back", 1)])
def test_the_flight_recorder_writes_only_after_a_failure(run, script, tmp_path, how, kept):
    out = tmp_path / "out"
    out.mkdir()
    done = run(
        script(RECORDER), how, STRUCTDUMP_LEVEL="low", STRUCTDUMP_WHEN="failure", STRUCTDUMP_OUTPUT=str(out)
    )  # fmt: skip
    assert done.code == 0, done.err
    assert len(list(out.iterdir())) == kept
    assert len(done.said) == kept
    for path in out.iterdir():
        assert len(structdump.load(path).graphs(stage="captured")) >= 2


PAUSED = """
import sys, torch, structdump
def compiled(n):
    torch._dynamo.reset()
    torch.compile(lambda x: x.sin() + n, backend="eager")(torch.ones(3))
with structdump.capture(sys.argv[1], level="low") as capture:
    compiled(1)
    capture.pause()
    compiled(22)
    capture.resume()
    compiled(333)
    capture.flush()
    before = [p for p in __import__("pathlib").Path(sys.argv[1]).parent.glob("*.journal")]
    left = structdump.load(before[0])
    print(len(left.graphs(stage="captured")), len(left.compiles), left.environment.versions["torch"])
"""


def test_pause_resume_and_flush(run, script, tmp_path):
    done = run(script(PAUSED), str(tmp_path / "out.json.zst"))
    assert done.code == 0, done.err
    graphs, compiles, version = done.out.split()
    assert (graphs, compiles) == ("2", "2")
    assert version[0].isdigit()
    texts = "".join(g.text for g in structdump.load(tmp_path / "out.json.zst").graphs(stage="captured"))
    assert "333" in texts
    assert "22" not in texts.replace("2223", "")
