from __future__ import annotations

import gzip
import json
import random
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_logs import Read, logs, oracle, read, read_bytes

from structdump.errors import SourceError
from structdump.sources import log_files, trace_log
from structdump.sources.compiles import CompileBook
from structdump.sources.log_files import find_logs, rank_of
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

CASES = sorted(logs())
fuzz = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def described(result: Read) -> list[tuple]:
    return [(e.kind, e.stage, e.phase, e.name, e.compile_id, e.direction, e.text) for e in result.events]


@pytest.mark.parametrize("case", CASES)
def test_every_record_of_a_real_log_becomes_an_event(case: str, tmp_path: Path) -> None:
    data = logs()[case]
    told = [t for t in oracle(data) if t.name != "str"]
    result = read_bytes(data, tmp_path)
    own = [e for e in result.events if e.stage not in ("torch_config", "key_lines")]
    names = [t.values["name"] if t.name in ("artifact", "graph_dump", "dump_file") else t.name for t in told]
    names = [
        t.values["name"] if t.name == "optimize_ddp_split_child" else n
        for t, n in zip(told, names, strict=True)
    ]
    assert [e.name for e in own] == names
    given_ids = [(t.compile_id, e.compile_id) for t, e in zip(told, own, strict=True) if t.compile_id]
    assert all(b.partition("#")[0] == a for a, b in given_ids if b)
    assert all(b for _, b in given_ids)
    assert result.report is not None
    assert result.report.problems() == []
    assert result.report.records == len(oracle(data))
    assert result.report.bytes == len(data)


@pytest.mark.parametrize("case", CASES)
def test_texts_are_the_payloads_to_the_byte(case: str, tmp_path: Path) -> None:
    data = logs()[case]
    told = [t for t in oracle(data) if t.name != "str"]
    own = [e for e in read_bytes(data, tmp_path).events if e.stage not in ("torch_config", "key_lines")]
    for t, event in zip(told, own, strict=True):
        if event.kind == "cache":
            assert {**json.loads(event.text), "components": json.loads(t.payload).get("components")} == {
                "components": None,
                **json.loads(t.payload),
            }
        elif t.payload is not None:
            assert event.text == t.payload


@pytest.mark.parametrize("form", ["gz", "zst", "frames"])
def test_compressed_logs_read_alike(form: str, tmp_path: Path) -> None:
    data = logs()["aoti"]
    half = data.index(b"\nV", len(data) // 2) + 1
    path = tmp_path / f"dedicated_log_torch_trace_x.log.{form}"
    if form == "gz":
        path.write_bytes(gzip.compress(data))
    elif form == "zst":
        path.write_bytes(zstandard.compress(data))
    else:
        path.write_bytes(zstandard.compress(data[:half]) + zstandard.compress(data[half:]))
    assert described(read(path)) == described(read_bytes(data, tmp_path))


@pytest.mark.parametrize("form", ["gz", "zst"])
def test_a_cut_compressed_log_gives_what_it_has(form: str, tmp_path: Path) -> None:
    data = logs()["train"]
    path = tmp_path / f"a.log.{form}"
    whole = gzip.compress(data) if form == "gz" else zstandard.compress(data)
    path.write_bytes(whole[: len(whole) * 3 // 4])
    result = read(path)
    assert result.report is not None
    assert result.report.cut
    entire = described(read_bytes(data, tmp_path))
    assert 50 < len(result.events) < len(entire)
    assert described(result) == entire[: len(result.events)]


@pytest.mark.parametrize("size", [1, 7, 64, 4096])
def test_chunk_boundaries_do_not_matter(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = logs()["fail"]
    whole = described(read_bytes(data, tmp_path))
    monkeypatch.setattr(log_files, "_CHUNK", size)
    assert described(read_bytes(data, tmp_path)) == whole


@fuzz
@given(share=st.floats(0.02, 1.0))
def test_a_log_cut_anywhere_gives_the_records_before_the_cut(share: float, tmp_path: Path) -> None:
    data = logs()["aotcompile"]
    cut = data[: int(len(data) * share)]
    result = read_bytes(cut, tmp_path)
    entire = described(read_bytes(data, tmp_path))
    assert described(result) == entire[: len(result.events)]
    assert result.report is not None
    assert result.report.mismatched == 0
    # The last record counts only if it is whole, its final newline aside.
    whole = [m.end() for m in re.finditer(rb"^V[^\n]*(\n\t[^\n]*)*", data, re.MULTILINE)]
    assert result.report.records == sum(end <= len(cut) for end in whole)
    torn = not any(len(cut) in (end, end + 1) for end in whole)
    assert result.report.cut == torn
    assert any("killed" in p for p in result.report.problems()) == torn


def test_a_payload_cut_at_a_line_end_is_told_by_its_absence(tmp_path: Path) -> None:
    data = logs()["fail"]
    at = data.index(b'{"artifact": {"name": "dynamo_error"')
    head_alone = data[: data.index(b"\n", at) + 1]
    result = read_bytes(head_alone, tmp_path)
    assert result.report is not None
    assert result.report.cut
    assert result.events[-1].name != "dynamo_error"


@fuzz
@given(seed=st.integers(0, 2**32), junk=st.binary(max_size=60))
def test_damage_anywhere_never_raises(seed: int, junk: bytes, tmp_path: Path) -> None:
    data = bytearray(logs()["fail"])
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = junk
    result = read_bytes(bytes(data), tmp_path)
    result.book.records()
    assert result.report is not None
    assert result.report.records >= 5


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KNOWN = [
    "str", "artifact", "graph_dump", "dynamo_start", "compilation_metrics", "bwd_compilation_metrics",
    "create_symbol", "symbolic_shape_specialization", "inductor_output_code", "dynamo_output_graph", "link",
    "exported_program", "aot_forward_graph", "compiled_autograd_graph", "new_record",
]  # fmt: skip
ARTIFACTS = [
    "dynamo_error", "dynamo_graph_break_reason", "recompile_reasons", "fx_graph_cache_hit", "torch_version",
    "aotautograd_cache_bypass", "vllm_piecewise_compile_start", "vllm_compilation_config", "minifier",
]  # fmt: skip
METRICS = [
    "co_name", "co_firstlineno", "fail_type", "fail_reason", "restart_reasons", "guard_count", "duration_us",
    "start_time_us", "end_time_us", "entire_frame_compile_time_s", "dynamo_config", "inductor_config",
    "recompile_reason", "exception_stack_trace",
]  # fmt: skip
FIELDS = ["stack", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "rank", "subgraph_name"]


@st.composite
def hostile_record(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(KNOWN))
    value = draw(any_json)
    if name in ("artifact", "graph_dump"):
        value = {"name": draw(st.sampled_from(ARTIFACTS) | any_json), "encoding": draw(any_json)}
    elif draw(st.booleans()) and name == "compilation_metrics":
        value = {k: draw(any_json) for k in METRICS}
    elif draw(st.booleans()) and name == "dynamo_start":
        value = {"stack": [{"filename": draw(any_json), "line": draw(any_json), "name": draw(any_json)}]}
    record = {name: value, **{f: draw(any_json) for f in draw(st.sets(st.sampled_from(FIELDS)))}}
    head = b"V1201 03:19:36.939000 21 torch/x.py:1] "
    line = head + json.dumps(record).encode() + b"\n"
    if draw(st.booleans()):
        payload = draw(st.just(json.dumps(draw(any_json))) | st.text(max_size=30))
        record["has_payload"] = "0" * 32
        lines = "".join(f"\t{part}\n" for part in payload.split("\n"))
        line = head + json.dumps(record).encode() + b"\n" + lines.encode("utf-8", "surrogatepass")
    return line


@fuzz
@given(records=st.lists(hostile_record(), min_size=1, max_size=8))
def test_records_of_the_wrong_types_never_raise(records: list[bytes], tmp_path: Path) -> None:
    last = b'V1201 03:19:36.939000 21 torch/x.py:1] {"chromium_event": {}}\n'
    result = read_bytes(b"".join(records) + last, tmp_path)
    assert result.report is not None
    assert result.report.records == len(records) + 1
    for compile_ in result.book.records():
        compile_.model_validate_json(compile_.model_dump_json())


def test_foreign_lines_between_and_within_records_are_counted(tmp_path: Path) -> None:
    data = logs()["fail"]
    at = data.index(b'{"dynamo_output_graph"')
    inside = data.index(b"\n\t", data.index(b"\n\t", at) + 2) + 1
    mixed = data[:inside] + b"WARNING: something else\n" + data[inside:] + b"bye\n"
    result = read_bytes(mixed, tmp_path)
    assert result.report is not None
    assert (result.report.foreign, result.report.mismatched) == (2, 0)
    assert described(result) == described(read_bytes(data, tmp_path))
    assert "2 lines belong to no record" in result.report.problems()[0]


def test_a_changed_payload_is_reported(tmp_path: Path) -> None:
    data = logs()["fail"].replace(b"backend fell over", b"backend fell down")
    report = read_bytes(data, tmp_path).report
    assert report is not None
    assert report.mismatched >= 1


def test_unread_payloads_are_not_checked(tmp_path: Path) -> None:
    at = logs()["llama"].index(b"dynamo_output_graph")
    broken = logs()["llama"][:at] + logs()["llama"][at:].replace(b"mm", b"nn")
    report = read_bytes(broken, tmp_path, texts=False).report
    assert report is not None
    assert report.mismatched <= 2  # the cache answers alone are facts that are always read


def test_nan_and_huge_numbers_are_read(tmp_path: Path) -> None:
    line = b'V1201 03:19:36.939000 21 a.py:1] {"create_symbol": {"symbol": "s0", "val": NaN, "big": 1%s}, '
    line = line % (b"0" * 40) + b'"frame_id": 0, "frame_compile_id": 0}\n'
    result = read_bytes(line, tmp_path)
    assert result.events[0].name == "create_symbol"
    assert list(result.book.records()[0].symbols) == ["s0"]


def test_a_line_beyond_the_limit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = logs()["fail"]
    at = data.rindex(b"\nV", 0, data.index(b'{"dynamo_output_graph"')) + 1
    monkeypatch.setattr(log_files, "MAX_LINE", 200_000)
    monkeypatch.setattr(log_files, "_CHUNK", 50_000)
    result = read_bytes(data[:at] + b"x" * 1_000_000 + b"\n" + data[at:], tmp_path)
    assert result.report is not None
    assert result.report.oversized == 1
    assert described(result) == described(read_bytes(data, tmp_path))


def test_a_payload_beyond_the_limit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_log, "MAX_PAYLOAD", 100_000)
    result = read_bytes(logs()["llama"], tmp_path)
    assert result.report is not None
    assert result.report.oversized >= 5
    text = {e.name: e.text for e in result.events if e.stage not in ("key_lines", "torch_config")}
    assert text["dynamo_output_graph"] is None
    assert text["fx_graph_runnable"] is not None


def test_memory_does_not_grow_with_a_payload_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_log, "MAX_PAYLOAD", 1_000_000)
    head = b'V1201 03:19:36.939000 21 a.py:1] {"aot_joint_graph": {}, "has_payload": "0"}\n'
    (tmp_path / "a.log").write_bytes(head + b"\tone line of a graph\n" * 2_000_000 + head)
    tracemalloc.start()
    try:
        report = read_log(tmp_path / "a.log", TraceMapper(lambda event: None, CompileBook()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.oversized, report.records) == (1, 2)
    assert peak < 10_000_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"INFO: server started\nINFO: ready\n" * 1000,
        b"V0401 12:00:00.000000 1 torch/_dynamo/x.py:1] [0/0] a TORCH_LOGS line\n" * 10,
        b"\x00" * 10_000,
        b"\x28\xb5\x2f\xfd broken",
        b"\x1f\x8b broken",
        b"\xff\xfe" * 1000,
    ],
)
def test_another_file_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"TORCH_TRACE|cannot be read") as caught:
        read_bytes(content, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_huge_sparse_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(SourceError):
        read_log(path, TraceMapper(lambda event: None, CompileBook()))


def test_a_missing_file_and_a_directory_are_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.log", tmp_path):
        with pytest.raises(SourceError, match="cannot be read"):
            read_log(path, TraceMapper(lambda event: None, CompileBook()))


def test_a_directory_gives_its_logs_by_rank(tmp_path: Path) -> None:
    names = ["rank_10_a", "rank_2_b", "rank_2_a", "zz"]
    for name in names:
        (tmp_path / f"dedicated_log_torch_trace_{name}.log").write_bytes(b"")
    (tmp_path / "dedicated_log_torch_trace_rank_0_c.log.zst").write_bytes(b"")
    (tmp_path / "other.log").write_bytes(b"")
    (tmp_path / "dedicated_log_torch_trace_dir.log").mkdir()
    found = find_logs(tmp_path)
    assert [rank_of(p) for p in found] == [0, 2, 2, 10, None]
    assert [p.name for p in find_logs(found[0])] == [found[0].name]


def test_a_directory_without_logs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"dedicated_log_torch_trace_"):
        find_logs(tmp_path)
    (tmp_path / "renamed.log").write_bytes(logs()["fail"])
    assert [p.name for p in find_logs(tmp_path)] == ["renamed.log"]


def test_rank_and_process_are_reported(tmp_path: Path) -> None:
    report = read_bytes(logs()["ddp"], tmp_path).report
    assert report is not None
    assert report.rank == 0  # from the records: the file's name says nothing here
    assert report.pid is not None
    assert report.pid > 1


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    def peak(times: int) -> int:
        (tmp_path / "a.log").write_bytes(logs()["llama"] * times)
        counts: Counter[str] = Counter()
        tracemalloc.start()
        try:
            read_log(tmp_path / "a.log", TraceMapper(lambda e: counts.update([e.kind]), CompileBook()))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(12) < peak(2) * 1.3 + 1_000_000
