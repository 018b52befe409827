"""`pack`: one bundle per rank or one of all, a directory joined with its log, and what is neither."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest
from dump_samples import members, unpack
from dump_trees import CANDIDATES, ninety_three
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
def test_odd_files_in_a_dump_are_counted_and_not_read(tmp_path, capsys, monkeypatch):
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "__compiled_fn_1.Captured_Graph.0.py").write_text("class GraphModule:\n    pass\n")
    (tmp_path / "secret.py").write_text("SECRET-OUTSIDE")
    (dump / "__compiled_fn_1.Joint_graph.0.py").symlink_to(tmp_path / "secret.py")
    (dump / "__compiled_fn_1.Forward_graph.0.py").symlink_to(dump / "gone.py")
    os.mkfifo(dump / "__compiled_fn_1.kernel_0.py")
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(dump)  # the name of a socket must be short
    server.bind("__compiled_fn_1.kernel_1.py")
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


def test_a_folder_around_the_source_does_not_matter(tmp_path, capsys):
    wrapped = unpack("llama_h200", tmp_path / "a" / "b" / "llama")
    log = tmp_path / "t" / "trace" / "dedicated_log_torch_trace_abcd.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(logs()["fullgraph"])
    slash = tmp_path / "s" / "slash" / "__compiled_fn_1.a"
    slash.mkdir(parents=True)
    (slash / "b.0.py").write_text("class GraphModule: ...\n")
    given = [str(tmp_path / name) for name in "ats"]
    assert main(["pack", *given, "-o", str(tmp_path / "out")]) == 0
    assert [Path(p).name for p in capsys.readouterr().out.split()] == [
        "llama.json.zst", "abcd.json.zst", "slash.json.zst",
    ]  # fmt: skip
    bundle = structdump.load(tmp_path / "out" / "slash.json.zst")
    assert [a.files for a in bundle.artifacts] == [["__compiled_fn_1.a/b.0.py"]]
    (link := tmp_path / "l" / "link").parent.mkdir()
    link.symlink_to(wrapped)
    assert main(["pack", str(link.parent), "-o", str(tmp_path / "out")]) == 3


@pytest.mark.parametrize("level", ["low", "medium", "full"])
def test_the_command_accounts_for_93_files(tmp_path, level):
    root = ninety_three(tmp_path / "dump")
    output = tmp_path / "out.json.zst"
    assert main(["pack", str(root), "-o", str(output), "--level", level]) == 0
    bundle = structdump.load(output)
    found = {p.name for p in root.iterdir()}
    listed = {f for a in bundle.artifacts for f in a.files}
    facts = bundle.completeness
    parts = 3  # one call into a library per output code: an event without a file of its own
    assert facts.kept + facts.indexed + facts.dropped == facts.seen == len(found) + parts == 93 + parts
    assert listed <= found
    assert len(found - listed) == facts.dropped == (len(CANDIDATES) if level == "low" else 0)
    with_text = sum(a.digest is not None for a in bundle.artifacts)
    assert with_text == facts.kept - (0 if level == "low" else parts)  # a call into a library has no text
    assert sum(count.dropped for count in bundle.omitted.values()) == facts.dropped
    assert verify(output) == []
    if level == "full":
        assert all(len(a.files) == 1 for a in bundle.artifacts)


def test_a_warm_dump_says_that_it_is_warm_and_what_to_do(tmp_path, capsys):
    unpack("vllm_warm", tmp_path / "job" / "rank_0_dp_0")
    output = tmp_path / "warm.json.zst"
    assert main(["pack", str(tmp_path / "job"), "-o", str(output)]) == 0
    assert structdump.load(output).completeness.verdict == "warm"
    capsys.readouterr()
    assert main(["show", str(output)]) == 0
    said = capsys.readouterr().out
    assert "warm" in said
    assert "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in said
    assert "VLLM_DISABLE_COMPILE_CACHE=1" in said


def test_an_inductor_cache_brings_the_configs_that_the_dump_lacks(tmp_path, capsys):
    dump = unpack("llama_h200", tmp_path / "llama")
    hidden = "cpgk56nfdwvs2tga5f6cczcppj3o2jodwcr224u73vmryvm43xe2"  # where the first kernel lay
    assert hidden in members("llama_h200")["__compiled_fn_1.kernel_118.py"]
    cache = tmp_path / "cache"
    (cache / "pg").mkdir(parents=True)
    config = {"XBLOCK": 1, "R0_BLOCK": 1024, "num_warps": 8, "num_stages": 1}
    (cache / "pg" / f"{'e' * 64}.best_config").write_text(json.dumps(config))
    output = tmp_path / "out.json.zst"
    command = ["pack", str(dump), "-o", str(output), "--force", "--inductor-cache"]
    assert main([*command, str(cache)]) == 0
    bundle = structdump.load(output)
    (kernel,) = [k for k in bundle.kernels("triton_red_*") if k.best_config and k.best_config["XBLOCK"] == 1]
    assert kernel.best_config == config
    assert "kernel.best_config" in kernel.inferred
    assert len(bundle.configs()) == 3
    capsys.readouterr()
    assert main([*command, str(tmp_path / "nowhere")]) == 3
    assert "Inductor cache" in capsys.readouterr().err


def test_names_of_every_sort_pass_through_the_command(tmp_path, capsys):
    dump = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd \xff"))
    names = [
        b"__compiled_fn_1.gr\xff.0.py", b"full_code_for_<lambda>_0.py", b"full_code_for_a b_0.py",
        b"__compiled_fn_1.a/b.0.py", b"__compiled_fn_-1.kernel_0.py", b"__compiled_fn_1.kernel_0.py.lock",
        b"\x1b[2Jx",
    ]  # fmt: skip
    for name in names:
        path = Path(os.fsdecode(os.fsencode(dump) + b"/" + name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def f(): ...\n")
    assert main(["pack", str(dump), "-o", str(tmp_path), "--level", "full"]) == 0
    said = capsys.readouterr().out.rstrip("\n")
    assert said.isprintable()
    bundle = structdump.load(said)
    readable = {os.fsdecode(n).encode("utf-8", "backslashreplace").decode() for n in names}
    assert {f for a in bundle.artifacts for f in a.files} == readable
    assert main(["list", said]) == 0
    assert "\x1b[2J" not in capsys.readouterr().out
