"""Many bundles in one script: lazily opened, as tables, with those that can't be read as records."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rank_bundles import rank_bundle
from sample_bundles import bundle_of, write_journal, write_small

import structdump
from structdump.bundle.outline import outline, without_artifacts
from structdump.bundle.places import expand
from structdump.bundle.tables import TABLES
from structdump.bundle.writer import write_document
from structdump.cli import main
from structdump.errors import NotABundleError, TruncatedError, UsageError

DATA = Path(__file__).parent / "data" / "bundles"
NAMES = sorted(p.name for p in DATA.glob("*.json.zst"))


@pytest.fixture
def folder(tmp_path):
    """The sample bundles, and among them some that can't be read."""
    for name in NAMES:
        shutil.copy(DATA / name, tmp_path)
    (tmp_path / "empty.json.zst").write_bytes(b"")
    (tmp_path / "noise.json.zst").write_bytes(os.urandom(5000))
    (tmp_path / "short.json.zst").write_bytes((DATA / NAMES[0]).read_bytes()[:300])
    return tmp_path


BAD = ["empty.json.zst", "noise.json.zst", "short.json.zst"]


# --- lazily opened ---


@pytest.mark.parametrize("workers", [0, 2])
def test_every_bundle_in_order_and_errors_as_records(folder, workers):
    found = list(structdump.scan(folder / "*.json.zst", workers=workers))
    assert [Path(b.path).name for b in found] == sorted([*NAMES, *BAD])
    errors = {Path(b.path).name: type(b.error) for b in found if b.error}
    assert errors == dict(zip(BAD, (NotABundleError, NotABundleError, TruncatedError), strict=True))
    for b in found:
        if b.error is None:
            whole = structdump.load(b.path)
            assert (b.run, b.environment, b.completeness) == (
                whole.run,
                whole.environment,
                whole.completeness,
            )
            assert (b.compile_count, b.artifact_count) == (len(whole.compiles), len(whole.artifacts))
            assert [c.id for c in b.compiles] == [c.id for c in whole.compiles]
            assert [k.name for k in b.kernels()] == [k.name for k in whole.kernels()]
        else:
            with pytest.raises(type(b.error)):
                b.environment  # noqa: B018 # it is the test


def test_a_file_is_read_no_further_than_needed(tmp_path):
    document = structdump.load(DATA / "train_low.json.zst").document()
    saved = write_document(document, tmp_path / "saved").path
    path = tmp_path / "run.json.zst"
    shutil.copy(saved, path)
    b = next(iter(structdump.scan(path, workers=0)))
    path.unlink()
    assert b.environment.versions["torch"]
    assert b.level == "low"
    with pytest.raises(NotABundleError):
        b.artifacts  # noqa: B018 # only now is its list read
    shutil.copy(saved, path)
    kept = next(a for a in b.artifacts if a.digest)
    path.unlink()
    with pytest.raises(NotABundleError):
        kept.text  # noqa: B018 # and only now its texts
    shutil.copy(saved, path)
    assert kept.text == structdump.load(path).text(kept.digest)


def test_all_forms_are_scanned(tmp_path):
    write_journal(tmp_path / "a.journal")
    small = write_small(tmp_path)
    plain = tmp_path / "b.json"
    subprocess.run(["zstd", "-q", "-d", str(small), "-o", str(plain)], check=True)
    found = list(structdump.scan([tmp_path / "a.journal", plain, small], workers=0))
    assert [b.error for b in found] == [None] * 3
    assert len({len(b.artifacts) for b in found}) == 1
    assert [next(a.text for a in b.artifacts if a.digest) is not None for b in found] == [True] * 3


def test_the_outline_is_not_misled_by_words_in_values(tmp_path):
    words = {"compiles": [1], "artifacts": [2], "text": ',"compiles":[],"artifacts":['}
    document = structdump.load(write_small(tmp_path)).document()
    document.environment.extra = {"own": words, "compiles": [{}], "artifacts": []}
    document.compiles[0].metrics = {"artifacts": [1], "more": ',"artifacts":['}
    path = write_document(document, tmp_path / "odd.json.zst").path
    found = outline(path)
    assert found["environment"]["extra"]["own"] == words
    assert (found["compiles"], found["artifacts"]) == (1, len(document.artifacts))
    assert without_artifacts(path).compiles == document.compiles


def test_a_head_without_lists_is_an_error(tmp_path):
    for bad in ({"format": "structdump", "version": "2.0"}, {"format": "other"}, []):
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(bad))
        (entry,) = structdump.scan(path, workers=0)
        assert entry.error is not None


def test_a_worker_that_dies_costs_one_bundle(folder):
    """A real death: the address space of the workers is too small for one of the files."""
    big = folder / "big.json"
    with big.open("w") as file:
        file.write('{"format":"structdump","version":"1.0","compiles":[],"artifacts":[')
        file.write(",".join(['{"seq":1,"kind":"graph","name":"' + "n" * 100 + '"}'] * 150_000))
        file.write('],"texts":{}}')
    code = (
        "import resource, structdump, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "for b in structdump.scan(sys.argv[1:], workers=1): print(b.error is None, b.path)"
    )
    paths = [str(big), *(str(folder / n) for n in NAMES)]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["False"] + ["True"] * len(NAMES)


def test_a_scan_that_is_left_early_ends_its_processes(folder):
    before = set(Path("/proc/self/task").glob("*/children"))
    entries = iter(structdump.scan([folder / n for n in NAMES] * 20, workers=2))
    next(entries)
    entries.close()
    children = "".join(p.read_text() for p in before if p.exists()).split()
    assert not [pid for pid in children if "structdump" in Path(f"/proc/{pid}/cmdline").read_text()]


# --- tables ---


@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_table_is_the_rows_of_its_bundles(folder, table):
    scan = structdump.scan(folder / "*.json.zst", workers=2)
    rows = list(scan.rows(table))
    expected = [row for name in NAMES for row in structdump.load(folder / name).rows(table)]
    assert len(rows) == len(expected)
    assert sorted(map(os.path.basename, scan.errors)) == BAD
    assert scan.count == len(NAMES) + len(BAD)
    for row, own in zip(rows, expected, strict=True):
        assert list(row)[4:] == list(own) == list(TABLES[table].columns)
        for name, type_ in TABLES[table].columns.items():
            value = json.loads(row[name]) if type_ == "json" and row[name] is not None else row[name]
            assert value == own[name]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_arrow_and_pandas(folder, table):
    pytest.importorskip("pyarrow")
    scan = structdump.scan(folder, workers=0)
    arrow, frame = scan.to_arrow(table), scan.to_dataframe(table)
    assert list(frame.columns) == arrow.column_names
    assert len(frame) == arrow.num_rows == len(list(scan.rows(table)))
    none = structdump.scan([], workers=0)
    assert none.to_arrow(table).schema == arrow.schema
    assert list(none.to_dataframe(table).dtypes) == list(frame.dtypes)


def test_values_that_no_column_can_hold(tmp_path):
    pytest.importorskip("pyarrow")
    kernel = {"name": "k", "loads": 1 << 70, "best_config": {"num_warps": True, "x": float("nan")}}
    bundle = bundle_of(tmp_path, {"kind": "kernel", "name": "k\ud800\x00", "kernel": kernel, "text": "x"})
    path = write_document(bundle.document(), tmp_path / "odd.json.zst").path
    (row,) = structdump.scan(path, workers=1).to_arrow("kernels").to_pylist()
    assert row["loads"] is None
    assert json.loads(row["best_config"]) == {"num_warps": True, "x": None}


def test_ranks_of_a_merged_bundle_are_a_column(tmp_path):
    paths = [rank_bundle(tmp_path, r) for r in range(3)]
    job = structdump.merge(paths, tmp_path / "job.json.zst").path
    rows = list(structdump.scan(job, workers=0).rows("artifacts"))
    assert {tuple(row["ranks"]) for row in rows} == {(0, 1, 2)}


# --- files ---


def test_the_command(folder, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pattern = str(folder / "*.json.zst")
    count = len(list(structdump.scan(pattern, workers=0).rows("kernels")))
    for ending in ("parquet", "csv", "jsonl"):
        target = tmp_path / f"kernels.{ending}"
        assert main(["table", "kernels", pattern, "-o", str(target), "--workers", "1"]) == 4
        out, err = capsys.readouterr()
        assert out == f"{target}\n"
        assert err.count("left out") == len(BAD)
        assert f"{count} rows of {len(NAMES) + len(BAD)} bundles" in err
    assert main(["table", "kernels", pattern, "-o", str(target)]) == 2
    assert main(["table", "kernels", *(str(folder / n) for n in NAMES), "-o", str(target), "--force"]) == 0
    parquet = pyarrow.parquet.read_table(tmp_path / "kernels.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "kernels.jsonl").read_text().splitlines()]
    with (tmp_path / "kernels.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert parquet == lines
    assert [c["name"] for c in cells] == [p["name"] for p in parquet]
    assert [json.loads(c["ops"]) for c in cells] == [p["ops"] for p in parquet]
    capsys.readouterr()
    assert main(["table", "kernels", str(folder / NAMES[0]), "--workers", "0"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [row for row in lines if row["bundle"].endswith(NAMES[0])]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus", "x"], "bogus"),
        (["kernels", "none-*.json.zst"], "no such bundles"),
        (["kernels", "x", "-o", "table.xls"], "must end in .parquet, .csv, .jsonl"),
        (["kernels", "x", "-o", "no/dir.csv"], "cannot be written"),
    ],
)
def test_mistakes(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["table", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_table():
    with pytest.raises(UsageError, match="no table 'nonsense'"):
        list(structdump.scan([]).rows("nonsense"))


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"structdump\[table\]"):
        structdump.scan([]).to_arrow("kernels")
    with pytest.raises(UsageError, match=r"structdump\[table\]"):
        structdump.scan([]).write("kernels", tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


# --- places ---


def test_expanding(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("deep/er").mkdir(parents=True)
    for name in ("b.json.zst", "a.json.zst", "deep/er/c.json.zst", "odd[1].json.zst"):
        Path(name).touch()
    assert list(expand("?.json.zst")) == ["a.json.zst", "b.json.zst"]
    assert list(expand(["**/c.json.zst", "b.json.zst", "none"])) == [
        "deep/er/c.json.zst",
        "b.json.zst",
        "none",
    ]
    assert list(expand(Path("deep/er"))) == ["deep/er/c.json.zst"]
    assert list(expand("odd[1].json.zst")) == ["odd[1].json.zst"]


def test_dask(folder, tmp_path):
    pytest.importorskip("dask")
    parquet = pytest.importorskip("pyarrow.parquet")
    script = Path(__file__).parent.parent / "examples" / "scan_with_dask.py"
    target = tmp_path / "tables"
    done = subprocess.run(
        [sys.executable, str(script), "kernels", str(folder / "*.json.zst"), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = structdump.scan(folder / "*.json.zst", workers=0).to_arrow("kernels")
    assert parquet.read_table(target).num_rows == expected.num_rows
    assert done.stdout.startswith(f"{expected.num_rows} rows of {len(NAMES) + len(BAD)} bundles")
