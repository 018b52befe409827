"""`pack`: one bundle per rank or one of all, a directory joined with its log, and what is neither."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from dump_samples import unpack
from trace_logs import logs

import structdump
from structdump.bundle.reader import verify
from structdump.cli import main
from structdump.errors import SourceError, UsageError


@pytest.fixture
def tree(tmp_path):
    """A vLLM job of two ranks, in a folder of its own."""
    for rank in (0, 1):
        unpack("vllm_cold", tmp_path / "job" / "dump" / f"rank_{rank}_dp_0")
    return tmp_path / "job"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace" / "dedicated_log_torch_trace_abcd.log"
    path.parent.mkdir()
    path.write_bytes(logs()["vllm"])
    return path


def test_a_folder_of_ranks_gives_a_bundle_each(tree, tmp_path, capsys):
    assert main(["pack", str(tree), "-o", str(tmp_path / "out"), "--level", "full"]) == 0
    paths = capsys.readouterr().out.split()
    assert [Path(p).name for p in paths] == ["rank_0_dp_0.json.zst", "rank_1_dp_0.json.zst"]
    assert [structdump.load(p).run.rank for p in paths] == [0, 1]
    assert {structdump.load(p).run.launcher["dp_rank"] for p in paths} == {"0"}


def test_merge_makes_one_of_them(tree, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["pack", str(tree), "--merge", "--level", "full"]) == 0
    assert capsys.readouterr().out.strip() == "job.json.zst"
    bundle = structdump.load("job.json.zst")
    assert [r.rank for r in bundle.runs] == [0, 1]
    assert verify("job.json.zst") == []
    alone = structdump.pack(tree / "dump" / "rank_0_dp_0", tmp_path / "one.json.zst", level="full")[0]
    assert (tmp_path / "job.json.zst").stat().st_size < 1.3 * alone.stat().st_size


def test_ranks_below_a_folder_with_files_are_not_looked_for(tree):
    (tree / "notes.txt").write_text("x")
    with pytest.raises(SourceError, match="no dump of depyf or vLLM"):
        structdump.pack(tree, tree / "out.json.zst")


def test_a_directory_and_its_log_are_joined(tree, trace, tmp_path):
    dump = tree / "dump" / "rank_0_dp_0"
    (path,) = structdump.pack(dump, tmp_path / "both.json.zst", trace=trace, level="full")
    (log,) = structdump.pack(trace, tmp_path / "log.json.zst", level="full")
    both, alone = structdump.load(path), structdump.load(log)
    assert verify(path) == []
    # All of the log is there, as it is without the directory.
    facts = [(a.kind, a.stage, a.name, a.compile_id, a.digest) for a in alone.artifacts]
    assert [(a.kind, a.stage, a.name, a.compile_id, a.digest) for a in both.artifacts][: len(facts)] == facts
    assert {c.id for c in both.compiles} == {c.id for c in alone.compiles}
    # What both hold stands there once, and says in which file as well.
    codes = [a for a in both.artifacts if a.kind == "output_code"]
    assert len(codes) == len([a for a in alone.artifacts if a.kind == "output_code"])
    assert sum(len(a.files) for a in codes) == len(list(dump.glob("*.kernel_*.py")))
    # Every file is told of.
    assert {f for a in both.artifacts for f in a.files} == {p.name for p in dump.iterdir()}
    # vLLM's passes are in the directory alone, compile ids and pieces in the log alone.
    passes = [a for a in both.passes() if a.files]
    assert len(passes) > 40
    assert {a.compile_id for a in passes} == {"0/0"}
    assert all(a.subgraph and a.subgraph.name.startswith("submod_") for a in passes)
    assert all("compile_id" in a.inferred and "subgraph" in a.inferred for a in passes)
    # Each piece's passes belong to the graph that the log has of it.
    for piece, nodes in {(a.subgraph.name, a.nodes) for a in passes}:
        assert nodes in {g.nodes for g in both.graphs() if g.subgraph and g.subgraph.name == piece}
    assert any("joined by content" in reason for reason in both.completeness.reasons)


def test_a_pass_that_runs_twice_stays_with_its_piece(tree, trace, tmp_path):
    dump = tree / "dump" / "rank_0_dp_0"
    (path,) = structdump.pack(dump, tmp_path / "both.json.zst", trace=trace, level="full")
    cleanups = [a for a in structdump.load(path).passes(name="PostCleanupPass") if a.phase == "before"]
    assert len(cleanups) == 6
    assert [a.subgraph.name for a in cleanups] == sorted(a.subgraph.name for a in cleanups)
    assert all(cleanups[n].subgraph == cleanups[n + 1].subgraph for n in (0, 2, 4))


def test_which_log_is_of_which_directory(tree, trace, tmp_path):
    with pytest.raises(UsageError, match="which log"):
        structdump.pack(tree, tmp_path, trace=[trace])
    with pytest.raises(UsageError, match="joined with a dump directory"):
        structdump.pack(trace, tmp_path, trace=[trace])
    for rank in (0, 1):
        named = trace.with_name(f"dedicated_log_torch_trace_rank_{rank}_abcd.log")
        named.write_bytes(trace.read_bytes())
    trace.unlink()
    paths = structdump.pack(tree, tmp_path / "out", trace=trace.parent, level="full")
    assert {c.id for p in paths for c in structdump.load(p).compiles if c.id == "0/0"} == {"0/0"}


def test_a_log_of_something_else_joins_nothing(tree, tmp_path):
    log = tmp_path / "dedicated_log_torch_trace_x.log"
    log.write_bytes(logs()["fullgraph"])
    dump = tree / "dump" / "rank_0_dp_0"
    bundle = structdump.load(structdump.pack(dump, tmp_path / "x.json.zst", trace=log, level="full")[0])
    assert {f for a in bundle.artifacts for f in a.files} == {p.name for p in dump.iterdir()}
    assert all(a.compile_id in (None, "__compiled_fn_1") for a in bundle.artifacts if a.files)
    assert any(reason.startswith("joined by content: 0 of") for reason in bundle.completeness.reasons)


def made(folder, what):
    """Put one thing that is no dump into a folder; return its path."""
    path = folder / "__compiled_fn_1.kernel_0.py"
    if what == "nothing":
        return folder
    if what == "text":
        (folder / "notes.txt").write_text("x")
        return folder
    if what == "log":
        path = folder / "other.log"
        path.write_text("INFO started\nINFO ended\n")
    elif what == "empty log":
        path = folder / "dedicated_log_torch_trace_.log"
        path.touch()
    elif what == "file":
        path = folder / "kernel.py"
        path.write_text("x = 1\n")
    elif what == "missing":
        path = folder / "no" / "such"
    elif what == "fifo as log":
        path = folder / "x.log"
        os.mkfifo(path)
    elif what == "sparse log":
        path = folder / "x.log"
        with path.open("wb") as file:
            file.truncate(10 << 30)
    elif what == "sparse gzip":
        path = folder / "x.log.gz"
        with path.open("wb") as file:
            file.truncate(10 << 30)
    elif what == "loop":
        path = folder / "loop"
        path.symlink_to(path)
    return path


NO_DUMPS = (
    "nothing", "text", "log", "empty log", "file", "missing", "fifo as log", "sparse log", "sparse gzip",
    "loop",
)  # fmt: skip


@pytest.mark.parametrize("what", NO_DUMPS)
@pytest.mark.timeout(60)
def test_what_is_no_dump_is_refused_in_one_line(tmp_path, capsys, what):
    folder = tmp_path / "given"
    folder.mkdir()
    path = made(folder, what)
    began = time.monotonic()
    assert main(["pack", str(path), "-o", str(tmp_path / "out.json.zst")]) == 3
    assert time.monotonic() - began < 20
    said = capsys.readouterr().err
    assert said.startswith("structdump: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert not (tmp_path / "out.json.zst").exists()


@pytest.mark.timeout(60)
def test_odd_files_in_a_dump_are_counted_and_not_read(tmp_path, capsys):
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "__compiled_fn_1.Captured_Graph.0.py").write_text("class GraphModule:\n    pass\n")
    (tmp_path / "secret.py").write_text("SECRET-OUTSIDE")
    (dump / "__compiled_fn_1.Joint_graph.0.py").symlink_to(tmp_path / "secret.py")
    (dump / "__compiled_fn_1.Forward_graph.0.py").symlink_to(dump / "gone.py")
    os.mkfifo(dump / "__compiled_fn_1.kernel_0.py")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(dump / "__compiled_fn_1.kernel_1.py"))
    with (dump / "__compiled_fn_1.kernel_2.py").open("wb") as file:
        file.truncate(10 << 30)
    (dump / "__compiled_fn_1.kernel_3.py").mkdir()
    output = tmp_path / "out.json.zst"
    assert main(["pack", str(dump), "-o", str(output), "--level", "full"]) == 0
    server.close()
    bundle = structdump.load(output)
    assert verify(output) == []
    assert "SECRET-OUTSIDE" not in "".join(bundle.texts.values())
    facts = bundle.completeness
    assert facts.kept + facts.indexed + facts.dropped == facts.seen == 6
    assert facts.kept == 1
    assert len(bundle.completeness.reasons) >= 3
    assert capsys.readouterr().err == ""
