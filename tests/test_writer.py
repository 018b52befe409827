from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_bundles import records, write_journal, write_small

from structdump.bundle import assemble, codec, reader
from structdump.bundle.journal import Journal
from structdump.bundle.layout import OPENING
from structdump.bundle.limits import DEFAULT, OWN, Meter
from structdump.bundle.model import Artifact, Bundle
from structdump.bundle.writer import recover, write_bundle, write_document
from structdump.errors import NotABundleError


def inflated(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [codec.inflate(data, frame, Meter(DEFAULT, len(data))) for frame in codec.frames(data)]


def document(path: Path) -> dict[str, Any]:
    return json.loads(b"".join(inflated(path)))  # type: ignore[no-any-return]  # whatever json returns


def sums_up(path: Path) -> None:
    assert reader.verify(path) == []
    facts = document(path)["completeness"]
    assert facts["kept"] + facts["indexed"] + facts["dropped"] == facts["seen"]


def test_a_bundle_holds_what_the_journal_said(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    bundle = document(path)
    assert list(bundle) == [
        "$schema", "format", "version", "producer", "run", "level", "config", "environment", "completeness",
        "compiles", "artifacts", "omitted", "redactions", "hook_errors", "texts", "complete",
    ]  # fmt: skip
    assert bundle["complete"] is True
    assert bundle["level"] == "medium"
    assert bundle["environment"]["configs"] == {"m": {"a": None}}
    assert bundle["compiles"][0]["graph_breaks"][0]["resumed_by"] == "1/0"
    assert bundle["completeness"] == {
        "verdict": "cold", "reasons": [], "hints": [], "seen": 18, "kept": 15, "indexed": 1, "dropped": 2,
    }  # fmt: skip
    texts = {r["digest"]: r["text"] for r in records() if r["t"] == "text"}
    assert bundle["texts"] == texts
    sums_up(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_head_ends_before_the_texts_and_the_end_is_last(tmp_path: Path) -> None:
    head, opening, *texts, end = inflated(write_small(tmp_path))
    assert json.loads(head[:-1] + b"}")["format"] == "structdump"
    assert opening == OPENING
    assert [json.loads(b"{" + t + b"}") for t in texts if t != b","]
    assert end == b'},"complete":true}'


def test_a_bundle_without_texts(tmp_path: Path) -> None:
    path = write_small(tmp_path, [])
    assert document(path)["texts"] == {}
    sums_up(path)


def test_standard_tools_open_it(tmp_path: Path) -> None:
    if not shutil.which("zstd") or not shutil.which("jq"):
        pytest.skip("zstd and jq are not installed")
    path = write_small(tmp_path)
    command = f"zstd -dc '{path}' | jq -c '[.compiles[].id, .complete, (.texts | length)]'"
    assert json.loads(subprocess.check_output(command, shell=True)) == ["0/0", True, 7]
    subprocess.run(["zstd", "-tq", path], check=True)


def test_the_most_valuable_texts_come_first(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "a.journal")
    order = {"kernel": 0, "graph": 1, "best_config": 2, "pass": 2}
    result = write_bundle(path, tmp_path / "o.json.zst", max_bytes=None, bundle_rank=lambda a: order[a.kind])
    bundle = document(result.path)
    in_order = [(r["digest"], "@triton" in r["text"]) for r in records() if r["t"] == "text"]
    assert list(bundle["texts"]) == [d for d, k in in_order if k] + [d for d, k in in_order if not k]


def test_under_a_budget_a_text_is_worth_what_its_best_artifact_is(tmp_path: Path) -> None:
    def item(seq: int, kind: str, text: str) -> list[dict[str, Any]]:
        digest = codec.digest(text)
        artifact = {"seq": seq, "kind": kind, "name": "n", "digest": digest, "bytes": len(text)}
        return [{"t": "text", "digest": digest, "text": text}, {"t": "artifact", "artifact": artifact}]

    shared, own = random.Random(0).randbytes(20_000).hex(), random.Random(1).randbytes(20_000).hex()
    items = item(0, "pass", shared) + item(1, "kernel", own) + item(2, "graph", shared)[1:]
    order = {"graph": 0, "kernel": 1, "pass": 2}
    path = write_journal(tmp_path / "a.journal", items)
    for limit, kept in ((None, {shared, own}), (30_000, {shared})):
        target = tmp_path / f"{limit}.json.zst"
        result = write_bundle(path, target, max_bytes=limit, bundle_rank=lambda a: order[a.kind])
        assert set(document(result.path)["texts"].values()) == kept
        sums_up(result.path)


@pytest.mark.parametrize("limit", [None, 2500])
def test_records_in_another_order_give_all_texts_too(tmp_path: Path, limit: int | None) -> None:
    items = records(graphs=100)
    texts = [r for r in items if r["t"] == "text"]
    rest = [r for r in items if r["t"] != "text"]
    for n, shuffled in enumerate((rest + texts, texts + rest, texts[::-1] + rest, texts + texts + rest)):
        path = write_journal(tmp_path / f"{n}.journal", shuffled)
        result = write_bundle(path, tmp_path / f"{n}.json.zst", max_bytes=limit)
        assert limit is not None or len(document(result.path)["texts"]) == len(texts)
        assert (limit is None) == (result.omitted.keys() == {"level"})
        sums_up(result.path)


def big(count: int, size: int = 20_000, seed: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    items: list[dict[str, Any]] = []
    for seq in range(count):
        text = "\n".join(
            f"%{rng.randrange(10**9)} = aten.mm(%{rng.randrange(100)})" for _ in range(size // 30)
        )
        digest = codec.digest(text)
        kind = ("graph", "kernel", "pass")[seq % 3]
        artifact = {"seq": seq, "kind": kind, "name": str(seq), "digest": digest, "bytes": len(text)}
        items += [{"t": "text", "digest": digest, "text": text}, {"t": "artifact", "artifact": artifact}]
    return items


def test_the_budget_holds_and_the_least_valuable_go(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal", big(120))
    order = {"graph": 0, "kernel": 1, "pass": 2}

    def rank(artifact: Artifact) -> int:
        return order[artifact.kind]

    whole = write_bundle(journal, tmp_path / "whole.json.zst", max_bytes=None, bundle_rank=rank)
    assert whole.omitted == {}
    for part in (99, 80, 60, 40, 20, 10, 3):
        limit = whole.bytes * part // 100
        result = write_bundle(journal, tmp_path / f"{part}.json.zst", max_bytes=limit, bundle_rank=rank)
        assert result.path.stat().st_size == result.bytes <= limit
        assert result.bytes > limit * 0.8 - 20_000
        assert sum(map(len, inflated(result.path))) == result.raw_bytes
        sums_up(result.path)
        bundle = document(result.path)
        kept = {k: [a for a in bundle["artifacts"] if a["kind"] == k and "digest" in a] for k in order}
        if len(kept["pass"]):
            assert len(kept["kernel"]) == 40
        if len(kept["kernel"]):
            assert len(kept["graph"]) == 40
        gone = [a for a in bundle["artifacts"] if "omitted" in a]
        assert result.omitted["budget"].indexed == len(gone) > 0
        assert {a["omitted"]["reason"] for a in gone} == {"budget"}
        assert sum(a["omitted"]["bytes"] for a in gone) == result.omitted["budget"].bytes
        assert all("digest" not in a and "bytes" not in a for a in gone)
        texts = bundle["texts"].values()
        assert all(codec.digest(t) == d for d, t in zip(bundle["texts"], texts, strict=True))


def test_a_head_beyond_the_budget_is_kept_alone(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal")
    result = write_bundle(journal, tmp_path / "o.json.zst", max_bytes=100)
    assert document(result.path)["texts"] == {}
    assert result.omitted["budget"].indexed == 12
    sums_up(result.path)


def test_one_text_too_large_does_not_push_out_the_others(tmp_path: Path) -> None:
    items = big(1, 4_000_000) + [r if r["t"] == "text" else _renumbered(r) for r in big(6, seed=1)]
    journal = write_journal(tmp_path / "a.journal", items)
    result = write_bundle(journal, tmp_path / "o.json.zst", max_bytes=200_000)
    assert result.omitted["budget"].indexed == 1
    assert result.bytes <= 200_000
    assert len(document(result.path)["texts"]) == 6


def _renumbered(record: dict[str, Any]) -> dict[str, Any]:
    return {"t": "artifact", "artifact": record["artifact"] | {"seq": record["artifact"]["seq"] + 1}}


@pytest.mark.parametrize("limit", [None, 0, 3000, 100_000])
def test_the_same_journal_gives_the_same_bytes(tmp_path: Path, limit: int | None) -> None:
    journal = write_journal(tmp_path / "a.journal", records() + [_later(r) for r in big(30)])
    first = write_bundle(journal, tmp_path / "1.json.zst", max_bytes=limit).path.read_bytes()
    second = write_bundle(journal, tmp_path / "2.json.zst", max_bytes=limit).path.read_bytes()
    assert first == second


def _later(record: dict[str, Any]) -> dict[str, Any]:
    if record["t"] == "text":
        return record
    return {"t": "artifact", "artifact": record["artifact"] | {"seq": record["artifact"]["seq"] + 100}}


def test_the_same_journal_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from sample_bundles import *; "
        "sys.stdout.buffer.write(write_small(pathlib.Path(sys.argv[1])).read_bytes())"
    )
    outputs = set()
    for seed in ("0", "1", "2"):
        (tmp_path / seed).mkdir()
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-c", script, str(tmp_path / seed)]
        outputs.add(subprocess.check_output(command, env=env, cwd=tmp_path / seed))
    assert len(outputs) == 1


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal")
    target = tmp_path / "run.json.zst"
    target.write_text("precious")
    (tmp_path / "run-1.json.zst").symlink_to(tmp_path / "nowhere")
    assert write_bundle(journal, target, max_bytes=None).path.name == "run-2.json.zst"
    assert write_bundle(journal, target, max_bytes=None).path.name == "run-3.json.zst"
    assert target.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert write_bundle(journal, target, max_bytes=None, overwrite=True).path == target
    sums_up(target)
    assert write_bundle(journal, tmp_path / "plain", max_bytes=None).path.name == "plain"
    assert write_bundle(journal, tmp_path / "plain", max_bytes=None).path.name == "plain-1"
    assert len(list(tmp_path.iterdir())) == 7


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    journal = write_journal(tmp_path / "a.journal")
    target = tmp_path / "run.json.zst"
    assert write_bundle(journal, target, max_bytes=None).path == target
    assert write_bundle(journal, target, max_bytes=None).path.name == "run-1.json.zst"
    sums_up(target)
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal", big(40))
    script = """
import pathlib, resource, signal, sys
from structdump.bundle.writer import write_bundle
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_bundle(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), max_bytes=None)
except OSError as e:
    print(e.errno)
"""
    out = subprocess.check_output([sys.executable, "-c", script, journal, tmp_path / "o.json.zst"], text=True)
    assert int(out) == errno.EFBIG
    assert [p.name for p in tmp_path.iterdir()] == ["a.journal"]
    with pytest.raises(OSError, match="No such file"):
        write_bundle(journal, tmp_path / "missing" / "o.json.zst", max_bytes=None)


def test_kill_9_while_writing_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal", big(150))
    old = write_small(tmp_path)
    target = tmp_path / "o.json.zst"
    script = """
import pathlib, sys
from structdump.bundle.writer import write_bundle
print("ready", flush=True)
while True:
    write_bundle(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), max_bytes=None, overwrite=True)
"""
    seen = set()
    for attempt in range(8):
        shutil.copy(old, target)
        child = subprocess.Popen([sys.executable, "-c", script, journal, target], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(random.Random(attempt).random() * 0.4)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        bundle = reader.load(target)
        assert bundle.complete
        assert len(list(bundle.texts)) == len(bundle.texts)
        seen.add(bundle.completeness.seen)
    assert seen <= {18, 150}
    assert 150 in seen


def test_a_journal_without_its_end_is_not_complete(tmp_path: Path) -> None:
    path = write_small(
        tmp_path, [*records()[:-1], {"t": "compile", "compile": {"id": "0/0", "status": "failed"}}], end=False
    )
    bundle = document(path)
    assert bundle["complete"] is False
    assert [(c["id"], c["status"]) for c in bundle["compiles"]] == [("0/0", "failed")]
    assert not reader.load(path).complete
    sums_up(path)


def test_dropped_events_of_a_killed_process_are_counted_by_their_numbers(tmp_path: Path) -> None:
    items = [r for r in records() if r["t"] != "state"]
    items = [r if r["t"] != "artifact" else _spread(r) for r in items]
    path = write_small(tmp_path, items, end=False)
    bundle = document(path)
    assert bundle["omitted"]["unrecorded"]["dropped"] == 15
    assert bundle["completeness"]["seen"] == 31
    assert [(c["id"], c["status"]) for c in bundle["compiles"]] == [("0/0", "unfinished")]
    assert reader.verify(path) == []


def _spread(record: dict[str, Any]) -> dict[str, Any]:
    return {"t": "artifact", "artifact": record["artifact"] | {"seq": 2 * record["artifact"]["seq"]}}


def test_an_artifact_whose_text_was_lost_says_so(tmp_path: Path) -> None:
    lost = next(r["digest"] for r in records() if r["t"] == "text")
    path = write_small(tmp_path, [r for r in records() if r.get("digest") != lost])
    bundle = document(path)
    assert bundle["omitted"]["lost"]["indexed"] == 3
    sums_up(path)


def test_a_text_that_no_artifact_uses_is_left_out(tmp_path: Path) -> None:
    path = write_small(tmp_path, [*records(), {"t": "text", "digest": "0" * 32, "text": "orphan"}])
    assert "0" * 32 not in document(path)["texts"]
    sums_up(path)


def test_a_bad_field_costs_that_field_not_the_bundle(tmp_path: Path) -> None:
    bad = [
        {"t": "artifact", "artifact": {"seq": 90, "kind": "graph", "name": "x", "nodes": "many"}},
        {"t": "artifact", "artifact": {"seq": 91, "kind": "no such kind", "name": "x"}},
        {"t": "artifact", "artifact": "nonsense"},
        {"t": "state", "redactions": ["nonsense"]},
        {"t": "nonsense"},
    ]
    path = write_small(tmp_path, records() + bad)
    bundle = document(path)
    assert [a["seq"] for a in bundle["artifacts"] if a["name"] == "x"] == [90]
    assert [e["hook"] for e in bundle["hook_errors"]] == ["writer"] * len(bundle["hook_errors"])
    assert len(bundle["hook_errors"]) == 4
    sums_up(path)


def test_what_json_cannot_hold_does_not_stop_it(tmp_path: Path) -> None:
    text = "lone \ud800 surrogate"
    digest = codec.digest(text)
    data = {"big": 2**70, "nan": float("nan"), 3: b"\xff", "deep": {}}
    inner = data["deep"]
    for _ in range(300):
        inner["x"] = {}  # type: ignore[index]  # a dictionary all the way down
        inner = inner["x"]  # type: ignore[index]  # the same
    items = [
        {"t": "text", "digest": digest, "text": text},
        {"t": "artifact", "artifact": {"seq": 0, "kind": "event", "name": "a\udcff", "digest": digest}},
        {"t": "artifact", "artifact": {"seq": 1, "kind": "event", "name": "b", "data": data}},
    ]
    path = write_small(tmp_path, items)
    bundle = document(path)
    assert bundle["texts"][digest] == "lone \\ud800 surrogate"
    assert bundle["artifacts"][0]["name"] == "a\\udcff"
    assert bundle["artifacts"][1]["data"]["big"] == str(2**70)
    sums_up(path)


def test_write_document_writes_what_is_in_memory(tmp_path: Path) -> None:
    bundle = reader.load(write_small(tmp_path)).document()
    bundle.texts["0" * 32] = "orphan"
    removed = bundle.artifacts[0].digest
    del bundle.texts[removed or ""]
    result = write_document(bundle, tmp_path / "again.json.zst")
    sums_up(result.path)
    assert result.omitted["lost"].indexed == 3
    assert "0" * 32 not in document(result.path)["texts"]
    untouched = reader.load(tmp_path / "small.json.zst").document()
    again = write_document(untouched, tmp_path / "same.json.zst")
    assert again.path.read_bytes() == (tmp_path / "small.json.zst").read_bytes()


def test_write_document_keeps_its_budget(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "a.journal", big(60))
    bundle = reader.load(journal).document()
    result = write_document(bundle, tmp_path / "o.json.zst", max_bytes=100_000)
    assert 60_000 < result.bytes <= 100_000
    sums_up(result.path)


def test_an_empty_document(tmp_path: Path) -> None:
    sums_up(write_document(Bundle(), tmp_path / "o.json.zst").path)


def test_recover_makes_bundles_of_what_dead_processes_left(tmp_path: Path) -> None:
    write_journal(tmp_path / "run.json.zst.journal", end=False)
    write_journal(tmp_path / "other.json.zst.1a2b3c4d.journal", end=False)
    (tmp_path / "run.json.zst").write_text("precious")
    living = Journal.create(tmp_path / "living.json.zst.journal")
    found = recover(tmp_path)
    assert sorted(p.name for p in found) == ["other.json.zst.1a2b3c4d.json.zst", "run-1.json.zst"]
    for path in found:
        sums_up(path)
    assert sorted(p.name for p in tmp_path.glob("*.journal")) == ["living.json.zst.journal"]
    with pytest.raises(NotABundleError):
        recover(tmp_path)
    with pytest.raises(NotABundleError):
        recover(living.path)
    living.discard()
    with pytest.raises(NotABundleError):
        recover(tmp_path / "missing.journal")


def test_recover_takes_no_text_that_is_not_what_its_digest_says(tmp_path: Path) -> None:
    items = records()
    forged = next(r for r in items if r["t"] == "text")
    forged["text"] = "forged"
    journal = write_journal(tmp_path / "o.json.zst.journal", items, end=False)
    assert reader.load(journal).omitted["lost"].indexed == 3
    (path,) = recover(journal)
    sums_up(path)
    assert "forged" not in document(path)["texts"].values()
    assert document(path)["omitted"]["lost"]["indexed"] == 3


def test_recover_refuses_other_files_and_leaves_them(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    misnamed = tmp_path / "empty.journal"
    misnamed.touch()
    for source in (path, misnamed, tmp_path):
        with pytest.raises(NotABundleError):
            recover(source)
    assert path.exists()
    assert misnamed.exists()


def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    """200 MB of text are written within 100 MB on top of what importing takes."""
    script = """
import pathlib, random, resource, sys
from structdump.bundle import codec
from structdump.bundle.journal import Journal
from structdump.bundle.writer import write_bundle
def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
directory = pathlib.Path(sys.argv[1])
journal = Journal.create(directory / "a.journal")
rng = random.Random(0)
before = rss()
for seq in range(100):
    line = f"    %add_{seq} : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor]\\n"
    text = "".join(line + f"# {rng.random()}\\n" for _ in range(20_000))
    digest = codec.digest(text)
    journal.write({"t": "text", "digest": digest, "text": text})
    journal.write({"t": "artifact", "artifact":
        {"seq": seq, "kind": "graph", "name": "g", "digest": digest, "bytes": len(text)}})
journal.write({"t": "end"})
journal.close()
written = rss()
result = write_bundle(journal.path, directory / "o.json.zst", max_bytes=None)
print(written - before, rss() - before, result.raw_bytes)
"""
    out = subprocess.check_output([sys.executable, "-c", script, tmp_path], text=True)
    journalling, all_told, raw = map(int, out.split())
    assert raw > 190_000_000
    assert journalling < 50_000  # KiB
    assert all_told < 100_000


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.text(max_size=50), st.sampled_from(["graph", "kernel", "pass"]), st.booleans()),
        max_size=12,
    ),
    st.none() | st.integers(1, 3000),
)
def test_whatever_is_recorded_adds_up_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[str, str, bool]], limit: int | None
) -> None:
    directory = tmp_path_factory.mktemp("w")
    journal = Journal.create(directory / "a.journal")
    kept = {}
    for seq, (text, kind, keep) in enumerate(items):
        artifact: dict[str, Any] = {"seq": seq, "kind": kind, "name": text}
        if keep:
            digest = codec.digest(text)
            if digest not in kept:
                journal.write({"t": "text", "digest": digest, "text": text})
            kept[digest] = text
            artifact |= {"digest": digest, "bytes": len(codec.clean(text).encode())}
        else:
            artifact["omitted"] = {"reason": "level"}
        journal.write({"t": "artifact", "artifact": artifact})
    journal.write({"t": "end"})
    journal.close()
    path = write_bundle(journal.path, directory / "o.json.zst", max_bytes=limit).path
    sums_up(path)
    bundle = reader.load(path)
    if limit is None:
        assert dict(bundle.texts) == kept
    assert [a.name for a in bundle.artifacts] == [text for text, _, _ in items]


def test_an_artifact_of_a_long_log_takes_little_memory() -> None:
    line = json.dumps(
        {"t": "artifact", "artifact": {
            "seq": 1, "kind": "graph", "name": "a name of some length, which repeats", "stage": "post_grad",
            "phase": None, "compile_id": "0/0", "attempt": 0, "direction": "forward", "language": "python",
            "digest": "0" * 32, "size": 1, "nodes": 1, "changed": None, "omitted": None, "time": 0.5,
        }}
    )  # fmt: skip
    assembly = assemble.Assembly(OWN)
    tracemalloc.start()
    count = 3000
    for _ in range(count):
        assembly.take(json.loads(line))
    used = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    assert used < 1400  # bytes; 1,840 if each artifact has a set of field names of its own
    assert len(assembly.finish([], complete=True).artifacts) == count
