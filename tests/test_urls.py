"""Bundles behind URLs: read everywhere, uploaded when a capture ends; fsspec imported for them alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import fsspec
import pytest
from sample_bundles import write_journal, write_small

import structdump
from structdump.bundle.places import expand, is_url, put, url_of
from structdump.bundle.reader import head, verify
from structdump.cli import main
from structdump.errors import NotABundleError
from structdump.sources.target import resolve_url

DATA = Path(__file__).parent / "data" / "bundles"


@pytest.fixture
def memory():
    """The file system of memory:// URLs, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def stored(system, path, url):
    system.pipe(url, Path(path).read_bytes())
    return url


# --- reading ---


def test_every_form_is_read_by_url(memory, tmp_path):
    small = write_small(tmp_path)
    url = stored(memory, small, "memory://runs/a.json.zst")
    journal = stored(memory, write_journal(tmp_path / "j"), "memory://runs/j.journal")
    for place in (url, Path(url), small.as_uri(), Path(small.as_uri()), journal):
        bundle = structdump.load(place)
        assert len(bundle.artifacts) == len(structdump.load(small).artifacts)
        assert next(a.text for a in bundle.artifacts if a.digest)
        assert verify(place) == []
    assert head(url).level == "medium"


@pytest.mark.parametrize("command", ["show", "list", "verify"])
def test_commands_take_urls(memory, tmp_path, capsys, command):
    small = write_small(tmp_path)
    url = stored(memory, small, "memory://runs/a.json.zst")
    assert main([command, url]) == 0
    assert main([command, small.as_uri()]) == 0
    assert capsys.readouterr().out


def test_a_merge_and_a_table_of_urls(memory, tmp_path, capsys):
    urls = [
        stored(memory, DATA / f"{n}_low.json.zst", f"memory://runs/{n}.json.zst") for n in ("train", "conv")
    ]
    job = structdump.merge(urls, tmp_path / "job.json.zst").path
    assert len(structdump.load(job).runs) == 2
    found = [b.path.rpartition("/")[2] for b in structdump.scan("memory://runs/*.json.zst")]
    assert found == ["conv.json.zst", "train.json.zst"]
    assert main(["table", "compiles", "memory://runs/*.json.zst", "-o", str(tmp_path / "c.csv")]) == 0
    files = f"file://{DATA}/*_low.json.zst"
    assert len(list(expand(files))) == len(list(DATA.glob("*_low.json.zst")))
    assert all(b.error is None and b.artifact_count for b in structdump.scan(files, workers=1))


@pytest.mark.parametrize(
    "url", ["memory://none/x.json.zst", "nosuch://a/b.json.zst", "s3://bucket/x.json.zst"]
)
def test_what_cannot_be_read_is_one_error(memory, url, capsys):
    with pytest.raises(NotABundleError, match="cannot be read"):
        structdump.load(url)
    assert main(["show", url]) == 3
    err = capsys.readouterr().err
    assert url.rpartition("/")[2] in err
    assert "Traceback" not in err


def test_names_that_are_no_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = write_small(tmp_path)
    Path("s3:/bucket").mkdir(parents=True)
    shutil.copy(small, "s3:/bucket/a.json.zst")
    assert not is_url("s3:/bucket/a.json.zst")
    assert structdump.load("s3:/bucket/a.json.zst").artifacts
    assert is_url("s3:/bucket/b.json.zst")
    assert url_of(Path("file:///a/b")) == "file:///a/b"


READ = """
import sys, structdump
structdump.load(sys.argv[1]).artifacts[0].text
assert [b.error for b in structdump.scan([sys.argv[1]], workers=0)] == [None]
print("fsspec" in sys.modules)
structdump.load("file://" + sys.argv[1])
print("fsspec" in sys.modules)
"""


def test_fsspec_is_imported_for_a_url_alone(run, tmp_path):
    done = run("-c", READ, write_small(tmp_path))
    assert done.out.split() == ["False", "True"], done.err


# --- writing ---


def test_nothing_is_overwritten(memory, tmp_path):
    small = write_small(tmp_path)
    urls = [put(small, "memory://out/deep/run.json.zst") for _ in range(3)]
    assert [url.rpartition("/")[2] for url in urls] == ["run.json.zst", "run-1.json.zst", "run-2.json.zst"]
    assert len(memory.ls("/out/deep")) == 3
    assert put(small, "memory://out/deep/run.json.zst", overwrite=True) == urls[0]


@pytest.mark.parametrize(
    ("output", "rank", "ranks", "expected"),
    [
        ("s3://b/run.json.zst", None, None, "s3://b/run.json.zst"),
        ("s3://b/run.json.zst", 2, 4, "s3://b/run_rank2.json.zst"),
        ("s3://b/run.json.zst", 0, 1, "s3://b/run.json.zst"),
        ("s3://b/{rank}/x{rank}.json.zst", 2, 4, "s3://b/2/x2.json.zst"),
        ("s3://b/{program}", 2, None, "s3://b/train_rank2.json.zst"),
    ],
)
def test_where_a_rank_uploads_to(output, rank, ranks, expected):
    assert resolve_url(output, program="train", level="low", rank=rank, ranks=ranks) == expected


def test_a_folder_gets_names_of_their_own():
    url = resolve_url("s3://b/runs", program="train", level="low", rank=2, ranks=4)
    assert url.startswith("s3://b/runs/structdump_train_")
    assert "_rank2_" in url
    assert url.endswith(".json.zst")


CAPTURE = """
import os, sys, tempfile, torch
tempfile.tempdir = sys.argv[1]
import structdump
with structdump.capture(sys.argv[2], level="low") as cap:
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
print(cap.url, cap.path)
if cap.url and cap.url.startswith("memory"):
    print(len(structdump.load(cap.url).compiles))
print(sorted(os.listdir(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_capture_is_uploaded(run, tmp_path):
    local, remote = tmp_path / "local", tmp_path / "remote"
    local.mkdir()
    remote.mkdir()
    done = run("-c", CAPTURE, local, f"file://{remote}/deep/run.json.zst")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [f"file://{remote}/deep/run.json.zst None", "[]"]
    assert len(structdump.load(remote / "deep" / "run.json.zst").compiles) == 1
    assert len(done.said) == 1
    assert "remote/deep/run.json.zst (" in done.said[0]
    done = run("-c", CAPTURE, local, "memory://runs/run.json.zst")
    assert done.out.splitlines() == ["memory:///runs/run.json.zst None", "1", "[]"], done.err


@pytest.mark.slow
def test_what_cannot_be_uploaded_stays(run, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    (tmp_path / "file").touch()
    done = run("-c", CAPTURE, local, f"file://{tmp_path}/file/run.json.zst")
    assert done.code == 0, done.err
    (kept,) = local.iterdir()
    assert done.out.splitlines() == [f"None {kept}", str([kept.name])]
    assert len(structdump.load(kept).compiles) == 1
    assert "not uploaded to file/run.json.zst: " in done.said[0]
    assert kept.name in done.said[0]


@pytest.mark.slow
def test_a_whole_program_is_uploaded_at_its_end(run, tmp_path):
    code = 'import torch; torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2)); print("done")'
    remote = tmp_path / "remote"
    done = run("-c", code, STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT=f"file://{remote}", TMPDIR=str(tmp_path))
    assert (done.code, done.out) == (0, "done\n")
    (path,) = remote.iterdir()
    assert len(structdump.load(path).compiles) == 1
    done = run("-c", code, STRUCTDUMP_LEVEL="low", STRUCTDUMP_OUTPUT="nosuch://x", TMPDIR=str(tmp_path))
    assert (done.code, done.out) == (0, "done\n")
    assert "not uploaded to nosuch://x" in done.err
