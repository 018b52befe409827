"""Ranks of real jobs: who is which, and that no two write one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import clean_environment

import structdump

pytestmark = pytest.mark.slow

JOB = """
import os, sys, torch
import torch.distributed as dist

if "group" in sys.argv:
    dist.init_process_group("gloo")
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
if "group" in sys.argv:
    dist.barrier()
    dist.destroy_process_group()
"""


def torchrun(run, program, *arguments: str, **extra: str):
    return run(
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program, *arguments, **extra
    )


@pytest.mark.parametrize("group", ["group", "launcher only"])
def test_torchrun_gives_each_rank_its_bundle(run, script, tmp_path, group):
    out = tmp_path / "out"
    done = torchrun(run, script(JOB), *group.split(), STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=str(out))
    assert done.code == 0, done.err
    found = [structdump.load(path) for path in out.iterdir()]
    assert sorted((b.run.rank, b.run.world_size) for b in found) == [(0, 2), (1, 2)]


def test_ranks_that_share_a_name_do_not_share_a_file(run, script, tmp_path):
    target = tmp_path / "run.json.zst"
    done = torchrun(run, script(JOB), STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=str(target))
    assert done.code == 0, done.err
    found = [structdump.load(path) for path in tmp_path.glob("*.json.zst")]
    assert sorted(b.run.rank for b in found) == [0, 1]
    assert list(tmp_path.glob("*.journal")) == []


def test_only_the_ranks_that_were_asked_for(run, script, tmp_path):
    done = torchrun(
        run, script(JOB), "group", STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT="out", STRUCTDUMP_RANKS="1,8"
    )
    assert done.code == 0, done.err
    (path,) = (tmp_path / "out").iterdir()
    assert structdump.load(path).run.rank == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"}, (5, 8)),
        ({"RANK": "2", "WORLD_SIZE": "4", "SLURM_PROCID": "0", "LOCAL_RANK": "0"}, (2, 4)),
        ({"LOCAL_RANK": "1", "RANK": "none"}, (1, None)),
        ({}, (None, None)),
    ],
)
def test_launchers_are_believed_in_order(variables, expected):
    from structdump.sources.target import launcher_rank

    assert launcher_rank(variables) == expected


WORKER = """
import os, sys, time, torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
print("compiled", flush=True)
time.sleep(60)
"""


def test_a_worker_that_is_terminated_then_killed_leaves_what_it_saw(script, tmp_path):
    """As an engine ends its workers: SIGTERM, which they ignore while they work, then SIGKILL."""
    program = script("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WORKER)
    environment = clean_environment(tmp_path / "caches", STRUCTDUMP_LEVEL="low", RANK="1", WORLD_SIZE="2")
    worker = subprocess.Popen(
        [sys.executable, str(program)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "compiled\n"
    worker.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert worker.poll() is None
    worker.kill()
    worker.wait(10)
    worker.stdout.close()
    (journal,) = tmp_path.glob("*.journal")
    bundle = structdump.load(journal)
    assert (bundle.complete, bundle.run.rank) == (False, 1)
    assert {"captured"} <= {a.stage for a in bundle.artifacts if a.digest}


SPAWNED = """
import multiprocessing, os, torch

def work(rank):
    os.environ["RANK"] = str(rank)
    torch.compile(lambda x: x + rank, backend="eager")(torch.ones(2))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(n,)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
"""


def test_workers_that_learn_their_rank_after_they_started(run, script, tmp_path):
    done = run(script(SPAWNED), STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT="out/{rank}.json.zst")
    assert done.code == 0, done.err
    found = sorted(Path(tmp_path, "out").iterdir())
    assert [p.name for p in found] == ["0.json.zst", "1.json.zst"]
    assert [structdump.load(p).run.rank for p in found] == [0, 1]
    assert os.getpid() not in {structdump.load(p).run.pid for p in found}
