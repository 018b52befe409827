"""Gathering within a job of four real processes: what is written, and that nobody waits in vain."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WORKLOADS, clean_environment

import structdump
from structdump.bundle.reader import verify

RANKS = range(4)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """What each rank told and printed, and the folder of their files."""
    folder = tmp_path_factory.mktemp("job")
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKLOADS / "gathering.py"), str(folder)],
            env=clean_environment(folder / "caches", RANK=str(rank), WORLD_SIZE="4"),
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in RANKS
    ]
    errors = [process.communicate(timeout=200)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, "\n".join(errors)
    return folder, [json.loads((folder / f"told{rank}.json").read_text()) for rank in RANKS], errors


pytestmark = pytest.mark.slow


def test_only_the_destination_writes(job):
    _, told, _ = job
    assert [t["open"] for t in told] == ["open.json.zst", None, None, None]
    assert [t["lost"] for t in told] == [None, None, None, "lost.json.zst"]
    assert [t["closed"] for t in told] == ["closed.json.zst", None, None, None]


def test_an_open_capture_is_gathered_as_if_it_ended(job):
    folder, _, _ = job
    bundle = structdump.load(folder / "open.json.zst")
    assert verify(folder / "open.json.zst") == []
    assert [(r.rank, r.run.world_size, r.complete, r.verdict) for r in bundle.runs] == [
        (rank, 4, True, "cold") for rank in RANKS
    ]
    assert [(c.function.name, c.ranks) for c in bundle.compiles] == [("alike", [0, 1, 2, 3])]
    assert structdump.diff_ranks(bundle).same


def test_a_rank_that_cannot_send_keeps_nobody_waiting(job):
    folder, _, errors = job
    assert [r.rank for r in structdump.load(folder / "lost.json.zst").runs] == [0, 2, 3]
    assert "gather: this process has nothing to send" in errors[1]
    assert "(3 of 4 ranks, nothing of rank 1)" in errors[3]


def test_a_destination_that_cannot_write_warns(job):
    _, told, errors = job
    assert [t["full"] for t in told] == [None] * 4
    assert "structdump: gather failed: " in errors[0]
    assert not any("Traceback" in error for error in errors)


def test_a_destination_that_is_not_there_warns_in_every_rank(job):
    _, told, errors = job
    assert [t["nobody"] for t in told] == [None] * 4
    assert all("rank 9 is not in the group" in error for error in errors)


def test_a_group(job):
    folder, told, _ = job
    assert [t["half"] for t in told] == [None, None, "half.json.zst", None]
    assert [r.rank for r in structdump.load(folder / "half.json.zst").runs] == [0, 2]


def test_after_the_capture_its_bundle_is_gathered_and_the_odd_rank_found(job):
    folder, _, _ = job
    report = structdump.diff_ranks(folder / "closed.json.zst")
    assert report.groups == [[0, 1, 3], [2]]
    assert (report.first.how, report.first.function, report.first.position) == ("graph", "other", 1)
    assert "tanh" in "".join(report.first.compile.first.text.changed)


def test_the_program_goes_on_as_if_nothing_was(job):
    folder, told, _ = job
    assert all(t["total"] == 6.0 and t["same_random_numbers"] for t in told)
    for rank in RANKS:
        own = structdump.load(folder / f"rank{rank}.json.zst")
        assert own.complete
        assert len(own.compiles) == 2


ALONE = """
import torch, structdump, sys
with structdump.capture("own.json.zst", level="low"):
    print(structdump.gather())
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
    print(structdump.gather(output="alone.json.zst").name)
"""


def test_without_a_job(run, tmp_path):
    done = run("-c", ALONE)
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["None", "alone.json.zst"]
    assert "gather: no rank has captured anything" in done.err
    assert len(structdump.load(Path(tmp_path, "alone.json.zst")).compiles) == 1
