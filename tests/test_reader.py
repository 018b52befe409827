from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sample_bundles import records, write_journal, write_small

from structdump.bundle import codec, reader
from structdump.bundle.limits import DEFAULT, Meter
from structdump.bundle.model import Artifact
from structdump.bundle.reader import LoadedBundle, head, load, verify
from structdump.errors import (
    BundleError,
    CorruptError,
    LimitError,
    NotABundleError,
    StructdumpError,
    TruncatedError,
    UnsupportedVersionError,
    UsageError,
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small(tmp_path)


def plain(path: Path) -> bytes:
    """Return the bundle's JSON."""
    data = path.read_bytes()
    return b"".join(codec.inflate(data, f, Meter(DEFAULT, len(data))) for f in codec.frames(data))


def zipped(data: bytes, name: str = "b.json", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(name, data)
    return out.getvalue()


def one_frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def streamed(data: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(level=19).compressobj()
    return compressor.compress(data) + compressor.flush()


FORMS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "json.zst": lambda packed, _: packed,
    "json": lambda _, text: text,
    "pretty json": lambda _, text: json.dumps(json.loads(text), indent=2, ensure_ascii=False).encode(),
    "sorted json": lambda _, text: json.dumps(json.loads(text), sort_keys=True).encode(),
    "json with a byte order mark": lambda _, text: b"\xef\xbb\xbf" + text,
    "json after blank lines": lambda _, text: b"\r\n  \n" + text + b"\n\n",
    "one zstd frame": lambda _, text: one_frame(text),
    "zstd without a size": lambda _, text: streamed(text),
    "json.gz": lambda _, text: gzip.compress(text),
    "two gzip members": lambda _, text: gzip.compress(text[:700]) + gzip.compress(text[700:]) + b"\0" * 10,
    "zip of json.zst": lambda packed, _: zipped(packed, "b.json.zst", zipfile.ZIP_STORED),
    "zip of json": lambda _, text: zipped(text),
    "zip of json.gz": lambda _, text: zipped(gzip.compress(text), "../../etc/passwd"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_the_same(small: Path, tmp_path: Path, form: str) -> None:
    data = FORMS[form](small.read_bytes(), plain(small))
    path = tmp_path / "misleading name.txt"
    path.write_bytes(data)
    expected = json.loads(plain(small))
    for bundle in (load(data), load(path), load(str(path))):
        assert bundle.complete is True
        assert dict(bundle.texts) == expected["texts"]
        assert [a.name for a in bundle.artifacts] == [a["name"] for a in expected["artifacts"]]
        assert bundle.compiles[0].graph_breaks[0].resumed_by == "1/0"
        assert bundle.environment.versions == {"torch": "2.13.0"}
    assert verify(path) == []
    assert [a.name for a in head(path).artifacts] == [a["name"] for a in expected["artifacts"]]


@pytest.mark.parametrize("end", [True, False])
def test_a_journal_is_read_as_the_bundle_it_becomes(tmp_path: Path, end: bool) -> None:
    path = write_journal(tmp_path / "a.journal", end=end)
    expected = load(write_small(tmp_path, end=end))
    for bundle in (load(path), load(path.read_bytes()), head(path), load(zipped(path.read_bytes()))):
        assert bundle.complete is end
        assert bundle.document() == expected.document()
    assert verify(path) == []


@pytest.mark.parametrize("form", FORMS)
def test_every_cut_is_a_truncation(small: Path, form: str) -> None:
    data = FORMS[form](small.read_bytes(), plain(small))
    end = len(data) - 10 if form == "two gzip members" else len(data.rstrip())
    for size in range(end):
        try:
            bundle = load(data[:size])
        except TruncatedError:
            pass
        except NotABundleError:
            assert size < 4 or not data[:size].strip()
        else:  # a zip's comment length, a gzip member: nothing of ours may be missing then
            raise AssertionError(f"{bundle} from {size} of {len(data)} bytes")


def test_the_head_alone_is_read(small: Path, tmp_path: Path) -> None:
    bundle = head(small)
    assert bundle.complete is None
    assert bundle.kernels()[0].kernel is not None
    assert len(bundle.texts) == 0
    with pytest.raises(UsageError):
        bundle.artifacts[0].text  # noqa: B018  # reading it is the test
    with pytest.raises(UsageError):
        list(bundle.texts)
    data = small.read_bytes()
    opening = list(codec.frames(data))[1].end
    cut = tmp_path / "cut.json.zst"
    cut.write_bytes(data[:opening])
    assert len(head(cut).artifacts) == len(bundle.artifacts)
    for size in range(0, opening, 7):
        cut.write_bytes(data[:size])
        with pytest.raises((TruncatedError, NotABundleError)):
            head(cut)


def test_the_head_of_a_large_bundle_is_read_in_steps(tmp_path: Path) -> None:
    artifacts = [
        {"t": "artifact", "artifact": {"seq": 100 + n, "kind": "event", "name": os.urandom(400).hex()}}
        for n in range(2000)
    ]
    path = write_small(tmp_path, records() + artifacts)
    assert path.stat().st_size > 600_000
    assert len(head(path).artifacts) == 2016
    assert len(load(path).artifacts) == 2016


def test_texts_are_inflated_only_when_asked_for(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    data = bytearray(path.read_bytes())
    damaged = list(codec.frames(bytes(data)))[2]
    data[damaged.end - 1] ^= 1  # its checksum
    bundle = load(bytes(data))
    assert len(bundle.artifacts) == 16
    with pytest.raises(CorruptError):
        bundle.artifacts[0].text  # noqa: B018  # reading it is the test
    path.write_bytes(data)
    assert verify(path) != []


def test_selectors(small: Path) -> None:
    b = load(small)
    assert {g.stage for g in b.graphs()} == {"post_grad", "forward"}
    assert len(b.graphs(stage="post_grad")) == 4
    assert len(b.graphs(stage="post*", compile_id="0/0", direction="forward", name="AFTER*")) == 4
    assert b.graphs(direction="backward") == []
    assert b.graphs()[0].text is not None
    assert b.graphs()[0].ops == {"aten.mm": 1, "aten.relu": 1}
    kernel = b.kernels("triton_*_2")[0]
    assert kernel.source == kernel.text
    assert "@triton.jit" in (kernel.source or "")
    assert kernel.best_config == {"XBLOCK": 4}
    assert kernel.provenance is not None
    assert kernel.provenance.ops == ["aten.relu"]
    assert b.kernels(role="candidate") == []
    assert len(b.kernels(role=None)) == 3
    assert len(b.configs()) == 3
    assert [p.name for p in b.passes(changed=True)] == ["fuse"]
    assert [p.text for p in b.passes(name="no*")] == [None]
    assert len(b.passes(compile_id="9/9")) == 0
    assert len(b.artifacts_like(function="for*", kind="kernel")) == 3
    assert b.artifacts_like(function="other") == []
    assert b.graphs()[0].provenance is None
    assert b.graphs()[0].best_config is None
    with pytest.raises(CorruptError):
        b.text("0" * 32)
    assert "kept=15 of 18" in repr(b)


def test_tables(small: Path) -> None:
    b = load(small)
    rows = list(b.rows("kernels"))
    assert rows[0]["name"] == "triton_poi_fused_relu_0"
    assert rows[0]["best_config"] == {"XBLOCK": 1}
    assert next(iter(b.rows("compiles")))["graph_breaks"] == 1
    assert list(b.rows("artifacts"))[-1]["omitted"] == "level"
    with pytest.raises(UsageError, match="kernels, artifacts, compiles"):
        b.rows("nonsense")  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize("table", ["kernels", "artifacts", "compiles"])
def test_data_frames(small: Path, table: Any) -> None:
    pytest.importorskip("pandas")
    b = load(small)
    frame = b.to_dataframe(table)
    assert len(frame) == len(list(b.rows(table)))
    assert (
        len(LoadedBundle(b.document().model_copy(update={"artifacts": []}), {}, None).to_dataframe("kernels"))
        == 0
    )


def test_without_pandas_the_error_says_what_to_do(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        load(small).to_dataframe("kernels")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"version": "2.0", "producer": {"version": "3.1"}}, UnsupportedVersionError, "structdump 3.1"),
        ({"version": "12.0"}, UnsupportedVersionError, "reads 1.x"),
        ({"version": None}, CorruptError, "version"),
        ({"version": "one"}, CorruptError, "version"),
        ({"format": "other"}, NotABundleError, "no bundle"),
        ({"format": None}, NotABundleError, "no bundle"),
        ({"artifacts": "x"}, CorruptError, "artifacts"),
        ({"artifacts": [{"seq": "x", "kind": "graph", "name": "n"}]}, CorruptError, "artifacts.0.seq"),
        ({"artifacts": [{"seq": 1, "kind": "nonsense", "name": "n"}]}, CorruptError, "artifacts.0.kind"),
        ({"compiles": [1]}, CorruptError, "compiles.0"),
        ({"texts": []}, CorruptError, "texts"),
        ({"texts": None}, CorruptError, "texts"),
        ({"texts": {"a": 1}}, CorruptError, "texts"),
        ({"completeness": {"verdict": "great"}}, CorruptError, "completeness.verdict"),
        ({"complete": "perhaps"}, CorruptError, "complete"),
        ({"omitted": {"x": {"indexed": 1.5}}}, CorruptError, "omitted.x.indexed"),
    ],
)
def test_what_breaks_the_format(
    small: Path, change: dict[str, Any], error: type[BundleError], says: str
) -> None:
    document = json.loads(plain(small)) | change
    with pytest.raises(error, match=says):
        load(json.dumps(document).encode())


def test_a_newer_minor_version_is_read(small: Path) -> None:
    document = json.loads(plain(small))
    document |= {"version": "1.7", "novelty": {"x": 1}}
    document["artifacts"][0] |= {"novelty": [1], "kind": "hologram", "stage": "post_grad"}
    document["artifacts"][1] |= {"phase": "during", "direction": "sideways"}
    document["compiles"][0] |= {"status": "dreaming", "novelty": 1}
    bundle = load(json.dumps(document).encode())
    assert bundle.version == "1.7"
    assert bundle.artifacts[0].kind == "event"
    assert bundle.artifacts[0].text is not None
    assert bundle.artifacts[1].phase is None
    assert bundle.compiles[0].status == "unfinished"
    assert len(bundle.artifacts) == 16


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"x",
            b"\x7fELF....",
            b"[]",
            b"{}",
            b"null",
            b'{"a":1}',
            b"\x89PNG\r\n",
            gzip.compress(b"[1]", mtime=0),
        ),
        *(one_frame(b"hello"), one_frame(b""), one_frame(b"{}"), zipped(b"hello"), zipped(zipped(b"{}"))),
        b"\x50\x2a\x4d\x18\0\0\0\0",
    ],
)
def test_other_files_are_no_bundles(data: bytes) -> None:
    with pytest.raises(NotABundleError):
        load(data)


def test_zips_with_none_or_several_files(small: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.mkdir("folder") if sys.version_info >= (3, 11) else archive.writestr("folder/", "")
    with pytest.raises(NotABundleError, match="0 files"):
        load(out.getvalue())
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("folder/b.json.zst", small.read_bytes())
        archive.writestr("__MACOSX/folder/._b.json.zst", b"junk")
    assert load(out.getvalue()).complete
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("another", b"")
    with pytest.raises(NotABundleError, match="2 files"):
        load(out.getvalue())
    with pytest.raises(NotABundleError, match="compressed in a way"):
        load(zipped(plain(small), method=zipfile.ZIP_LZMA))
    encrypted = bytearray(zipped(plain(small)))
    encrypted[6] |= 1
    encrypted[encrypted.rfind(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(NotABundleError, match="encrypted"):
        load(bytes(encrypted))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for path, says in [
        (tmp_path, "is a directory"),
        (tmp_path / "missing", "No such file"),
        (tmp_path / "nul\0", "null"),
        (tmp_path / ("x" * 300), "name too long"),
        (Path("/dev/null"), "empty"),
        (Path("/dev/zero"), "no bundle"),
    ]:
        for function in (load, head):
            with pytest.raises(NotABundleError, match=says):
                function(path)
        assert verify(path) != []


def test_errors_name_the_file(small: Path) -> None:
    small.write_bytes(small.read_bytes()[:-1])
    with pytest.raises(TruncatedError, match=r"small\.json\.zst"):
        load(small)


def test_a_pipe_is_read(small: Path) -> None:
    script = "from structdump.bundle.reader import load; print(len(dict(load('/dev/stdin').texts)))"
    for data in (small.read_bytes(), write_journal(small.with_name("a.journal")).read_bytes()):
        out = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
        assert out.stdout == b"7\n"


def test_the_reader_needs_neither_torch_nor_depyf(small: Path) -> None:
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "depyf", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import structdump
from structdump.bundle import journal, reader, schema, writer
bundle = reader.load(sys.argv[1])
print(len(bundle.kernels()), len(dict(bundle.texts)), reader.verify(sys.argv[1]))
assert not {"torch", "depyf"} & sys.modules.keys()
"""
    out = subprocess.run([sys.executable, "-c", script, small], capture_output=True, check=True, text=True)
    assert out.stdout == "3 7 []\n"


def test_an_artifact_is_a_model_like_any_other(small: Path) -> None:
    artifact = load(small).artifacts[0]
    fields = artifact.model_dump(exclude_none=True)
    assert fields["name"] == "AFTER POST GRAD"
    assert Artifact.model_validate(fields).model_dump() == artifact.model_dump()
    assert json.loads(artifact.model_dump_json())["seq"] == 0
    assert artifact.model_copy(update={"name": "other"}).text == artifact.text
    assert "AFTER POST GRAD" in repr(artifact)


def test_document_is_a_copy(small: Path) -> None:
    bundle = load(small)
    copy = bundle.document()
    copy.artifacts[0].name = "changed"
    copy.environment.versions["torch"] = "changed"
    assert bundle.artifacts[0].name == "AFTER POST GRAD"
    assert bundle.environment.versions["torch"] == "2.13.0"


def _swap(document: dict[str, Any]) -> None:
    document["artifacts"].reverse()


def _without_text(document: dict[str, Any]) -> None:
    document["texts"].popitem()


PROBLEMS: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("has another digest", lambda d: d["texts"].update({next(iter(d["texts"])): "changed"})),
    ("which is not there", _without_text),
    ("no artifact uses", lambda d: d["texts"].update({"e3b0c44298fc1c149afbf4c8996fb924": ""})),
    ("have the number 0", lambda d: d["artifacts"][1].update(seq=0)),
    ("not in the order", _swap),
    ("2 compiles have the id 0/0", lambda d: d["compiles"].append(d["compiles"][0])),
    ("compile 7/7, which is not listed", lambda d: d["artifacts"][0].update(compile_id="7/7")),
    ("is not seen", lambda d: d["completeness"].update(seen=99)),
    ("kept, and 14 are counted", lambda d: d["completeness"].update(kept=14, seen=17)),
    ("were dropped by reason", lambda d: d["completeness"].update(dropped=3, seen=19)),
    ("omitted as 'level', and 5 are counted", lambda d: d["omitted"]["level"].update(indexed=5)),
    ("omitted as 'x', and 0 are counted", lambda d: d["artifacts"][-1].update(omitted={"reason": "x"})),
    ("yet has a text", lambda d: d["artifacts"][0].update(omitted={"reason": "level"})),
    ("says 1 bytes", lambda d: d["artifacts"][0].update(bytes=1)),
]


@pytest.mark.parametrize(("says", "change"), PROBLEMS, ids=[says for says, _ in PROBLEMS])
def test_verify_finds(small: Path, says: str, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(plain(small))
    change(document)
    small.write_text(json.dumps(document))
    assert says in "\n".join(verify(small))


def test_verify_names_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    (problem,) = verify(tmp_path / "missing.json.zst")
    assert "missing.json.zst" in problem


def test_limits_are_settable(small: Path) -> None:
    for limits in (
        reader.Limits(artifacts=5),
        reader.Limits(head=100),
        reader.Limits(nodes=20),
        reader.Limits(nesting=2),
        reader.Limits(decompressed=500),
        reader.Limits(frames=2),
    ):
        with pytest.raises(LimitError):
            load(small, limits=limits)
    with pytest.raises(LimitError):
        load(plain(small), limits=reader.Limits(document=100))
    bundle = load(small, limits=reader.Limits(text=50))
    with pytest.raises(LimitError):
        dict(bundle.texts)
    assert issubclass(LimitError, StructdumpError)
