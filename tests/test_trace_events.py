from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from trace_logs import Read, logs, read_bytes

from structdump.sources.compiles import CompileBook
from structdump.sources.event import Event
from structdump.sources.payload import Once, to_text
from structdump.sources.trace_events import TraceMapper, TraceRecord
from structdump.sources.trace_names import ARTIFACTS, DUMPS, RECORDS, shape

TRAINING = ["train", "train_warm", "two", "two_warm", "ca", "ddp", "bwdfail", "indfail"]
INFERENCE = ["aoti", "aotcompile", "standalone", "dynamic", "vllm", "llama"]


def mapped(*records: TraceRecord) -> tuple[list[Event], CompileBook]:
    events: list[Event] = []
    book = CompileBook()
    mapper = TraceMapper(events.append, book)
    for record in records:
        mapper.feed(record)
    return events, book


def artifact(name: str, payload: Any = None, compile_id: str | None = "0/0") -> TraceRecord:
    return TraceRecord("artifact", {"name": name}, None if payload is None else lambda: payload, compile_id)


def of(result: Read, stage: str, phase: str | None = "after") -> list[Event]:
    return [e for e in result.events if e.stage == stage and e.phase == phase]


@pytest.mark.parametrize("case", TRAINING + INFERENCE)
def test_directions_are_those_that_the_graphs_show(case: str, tmp_path: Path) -> None:
    result = read_bytes(logs()[case], tmp_path)
    post_grad = of(result, "post_grad") + of(result, "post_grad", "before")
    assert post_grad
    for event in post_grad:
        assert isinstance(event.text, str)
        expected = "backward" if "tangents_" in event.text else "forward"
        if case in INFERENCE or ("primals_" not in event.text and "tangents_" not in event.text):
            expected = "inference"
        assert event.direction == expected
        assert "direction" in event.inferred
    for event in result.events:
        if event.kind == "output_code" and event.stage == "output_code" and isinstance(event.text, str):
            assert (event.direction == "backward") == ("tangents_" in event.text), event.name


@pytest.mark.parametrize("case", ["train", "two", "ddp"])
def test_each_forward_has_its_backward_under_the_same_id(case: str, tmp_path: Path) -> None:
    result = read_bytes(logs()[case], tmp_path)
    counts = Counter((e.compile_id, e.direction) for e in of(result, "post_grad"))
    joints = Counter(e.compile_id for e in result.events if e.stage == "joint")
    assert joints
    for compile_id, count in joints.items():
        assert counts[compile_id, "forward"] == counts[compile_id, "backward"] == count


def test_a_warm_run_has_the_graphs_of_the_cold_one(tmp_path: Path) -> None:
    for case in ("train", "two"):
        texts = {}
        for run in (case, case + "_warm"):
            result = read_bytes(logs()[run], tmp_path)
            texts[run] = {
                (e.compile_id, e.stage, e.direction): e.text
                for e in result.events
                if e.kind in ("graph", "output_code")
                and (e.stage != "pre_grad" and e.phase != "before")  # torch does not send those when warm
            }
        assert len(texts[case]) >= 12
        assert texts[case] == texts[case + "_warm"]


EXPECTED_IDS = {
    "export": {"0/0": "ok"},
    "dexport": {"export/0": "ok", "export/1": "ok", "0/0": "ok"},
    "aoti": {"aot/0": "ok", "aot/1": "ok"},
    "aotcompile": {"0/0": "ok"},
    "standalone": {"aot/0": "ok", "aot/1": "ok"},
    "vllm": {"0/0": "ok"},
    "llama": {"0/0": "ok"},
    "ca": {"0/0": "ok", "!0": "ok", "!0/1/0": "ok", "2/0": "ok"},
    "fail": {"0/0": "failed"},
    "fullgraph": {"0/0": "failed"},
    "indfail": {"0/0": "failed"},
    "bwdfail": {"0/0": "failed"},
    "suppress": {"0/0": "fell_back"},
    "skip": {"0/0": "fell_back", "1/0": "fell_back", "2/0": "ok"},
    "limit": {"0/0": "failed", "0/1": "ok", "0/2": "ok", "0/3": "fell_back"},
    "two": {"0/0": "ok", "1/0": "ok"},
    "reset": dict.fromkeys(["0/0", "0/1", "0/0#2", "0/1#2", "0/0#3", "0/0#4", "1/0"], "ok"),
}


@pytest.mark.parametrize("case", sorted(EXPECTED_IDS))
def test_compiles_have_their_ids_and_status(case: str, tmp_path: Path) -> None:
    result = read_bytes(logs()[case], tmp_path)
    assert {c.id: c.status for c in result.book.records()} == EXPECTED_IDS[case]


@pytest.mark.parametrize("case", ["aoti", "aotcompile", "standalone", "vllm"])
def test_what_a_compiler_made_always_has_a_compile_id(case: str, tmp_path: Path) -> None:
    result = read_bytes(logs()[case], tmp_path)
    made = [e for e in result.events if e.kind in ("graph", "output_code", "repro", "cache", "source")]
    assert all(e.compile_id for e in made)
    assert any("compile_id" in e.inferred for e in made)
    stages = Counter((e.compile_id, e.stage, e.phase) for e in made if e.stage == "post_grad")
    if case != "vllm":
        assert set(stages.values()) == {1}


def test_ids_that_torch_uses_again_after_a_reset(tmp_path: Path) -> None:
    result = read_bytes(logs()["reset"], tmp_path)
    compiles = {c.id: c for c in result.book.records()}
    lines = [c.function.line if c.function else None for c in compiles.values()]
    assert lines == [109, 109, 113, 113, None, None, 120]
    assert [c.recompile.previous for c in compiles.values() if c.recompile] == ["0/0", "0/0#2"]
    codes = {(e.compile_id, e.direction): e.text for e in result.events if e.stage == "captured"}
    assert len(set(codes.values())) == len(codes) == 7
    stages = Counter((e.compile_id, e.direction) for e in of(result, "post_grad"))
    assert stages["0/0#2", "forward"] == stages["0/0#2", "backward"] == 1
    assert set(stages.values()) == {1}
    assert result.book.resolve("0/0") == "0/0#4"


def test_pieces_of_vllm(tmp_path: Path) -> None:
    result = read_bytes(logs()["vllm"], tmp_path)
    pieces = [e.subgraph for e in of(result, "post_grad")]
    assert [(p.index, p.name, p.range) for p in pieces if p] == [
        (i, f"submod_{2 * i}", [1, 2048]) for i in range(4)
    ]
    names = {e.name: e.subgraph for e in result.events}
    assert names["vllm_submod_4"] == pieces[2]
    whole = [
        "vllm_piecewise_split_graph",
        "vllm_execution_code",
        "dynamo_cpp_guards_str",
        "compilation_metrics",
    ]
    assert [names[n] for n in whole] == [None] * 4
    assert result.book.framework["vllm"]


def test_pieces_of_distributed_data_parallel(tmp_path: Path) -> None:
    result = read_bytes(logs()["ddp"], tmp_path)
    made: dict[tuple[str, str | None], dict[str, str]] = {}
    for event in result.events:
        if event.kind == "graph" and event.direction and event.subgraph and isinstance(event.text, str):
            made.setdefault((event.subgraph.name or "", event.direction), {})[event.name] = event.text
    backwards = {name: graphs for (name, direction), graphs in made.items() if direction == "backward"}
    assert sorted(backwards) == ["submod_0", "submod_1", "submod_2"]
    shapes = []
    for graphs in backwards.values():
        # What AOTAutograd made for a piece must be what Inductor was given for it.
        of_aot, given = (
            sorted(re.findall(r'^ +(\w+: "f32\[[^"]*") = ', graphs[name], re.MULTILINE))
            for name in ("aot_backward_graph", "before_post_grad_graph")
        )
        assert of_aot == given
        shapes.append(tuple(of_aot))
    assert len(set(shapes)) > 1
    assert len([k for k in made if k[1] == "forward"]) == 3
    assert all(e.subgraph is None for e in result.events if e.kind in ("metrics", "guards"))
    assert all("subgraph" in e.inferred for e in of(result, "post_grad"))


def test_a_size_that_vllm_compiles_later_belongs_to_its_model() -> None:
    def start(index: int, size: int) -> TraceRecord:
        facts = {
            "piecewise_index": index, "submod_name": f"submod_{index}",
            "compile_range_start": size, "compile_range_end": size,
        }  # fmt: skip
        return artifact("vllm_piecewise_compile_start", facts, None)

    events, _ = mapped(
        TraceRecord("dynamo_output_graph", {}, lambda: "g", "3/0"),
        start(0, 1),
        artifact("inductor_post_grad_graph", "a", None),
        TraceRecord("compilation_metrics", {}, None, None),
        start(0, 8),
        artifact("inductor_post_grad_graph", "b", None),
    )
    graphs = [e for e in events if e.stage == "post_grad"]
    assert [e.compile_id for e in graphs] == ["3/0", "3/0"]
    assert [e.subgraph.range for e in graphs if e.subgraph] == [[1, 1], [8, 8]]


def test_an_unlabelled_compile_after_a_finished_one_is_its_own() -> None:
    events, book = mapped(
        TraceRecord("dynamo_output_graph", {}, lambda: "g", "0/0"),
        artifact("before_pre_grad_graph", "a"),
        TraceRecord("compilation_metrics", {"co_name": "f"}, None, "0/0"),
        artifact("before_pre_grad_graph", "b", None),
    )
    assert [e.compile_id for e in events] == ["0/0", "0/0", "0/0", "aot/0"]
    assert [c.status for c in book.records()] == ["ok", "unfinished"]


def test_the_end_of_an_unlabelled_compile() -> None:
    events, book = mapped(
        artifact("inductor_post_grad_graph", "a", None),
        TraceRecord("compilation_metrics", {}, None, None),
        artifact("dynamo_side_effects", "none of its business", None),
        TraceRecord("compilation_metrics_runtime", {"is_runtime": True}, None, None),
        artifact("fx_graph_runnable", "b", None),
        artifact("aotautograd_cache_hit", "{}", None),
        artifact("dynamo_side_effects", "none of its business", None),
        artifact("fx_graph_runnable", "c", None),
    )
    ids = [e.compile_id for e in events if e.stage != "torch_config"]
    assert ids == ["aot/0", "aot/0", None, "aot/0", "aot/1", "aot/1", None, "aot/2"]
    assert [c.status for c in book.records()] == ["ok", "unfinished", "unfinished"]


def test_live_context_overrules_inference() -> None:
    forward = TraceRecord("aot_forward_graph", {}, lambda: "f", "0/0")
    post_grad = artifact("inductor_post_grad_graph", "b")
    post_grad.is_backward = True
    events, _ = mapped(forward, post_grad)
    assert (events[1].direction, events[1].inferred) == ("backward", [])


def test_restarts_do_not_confuse_directions() -> None:
    def made(name: str, attempt: int) -> TraceRecord:
        record = artifact(name, "x") if "grad" in name else TraceRecord(name, {}, lambda: "x", "0/0")
        record.attempt = attempt
        return record

    events, book = mapped(
        made("aot_forward_graph", 0),
        made("aot_forward_graph", 1),
        made("inductor_post_grad_graph", 1),
        made("inductor_post_grad_graph", 1),
    )
    assert [e.direction for e in events][2:] == ["forward", "backward"]
    assert book.records()[0].attempts == 2


def test_payloads_are_evaluated_only_for_texts_and_small_facts() -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, value: Any) -> Any:
        def payload() -> Any:
            calls[name] += 1
            return value

        return payload

    names = [*ARTIFACTS, "x_ORIGINAL_BYTECODE", "fx_graph_cache_miss", "new_artifact"]
    records = [TraceRecord("artifact", {"name": n}, counting(n, "{}"), "0/0") for n in names]
    records += [TraceRecord(n, {}, counting(n + "!", "text"), "0/0") for n in RECORDS if n != "dump_file"]
    events, _ = mapped(*records)
    small = {
        "dynamo_error", "dynamo_graph_break_reason", "recompile_reasons", "torch_version",
        "fx_graph_cache_miss", "vllm_compilation_config", "vllm_piecewise_compile_start",
    }  # fmt: skip
    assert set(calls) == small
    for event in events:
        assert callable(event.text)
        event.text()
        event.text()
    assert set(calls.values()) == {1}
    assert len(calls) > 50


def test_metadata_is_evaluated_at_most_once_and_late() -> None:
    calls: list[int] = []

    def metadata() -> dict[str, Any]:
        calls.append(1)
        return {"id": 3}

    events, _ = mapped(TraceRecord("describe_tensor", metadata, None, "0/0"))
    assert calls == []
    assert isinstance(events[0].text, object)
    assert events[0].text() == '{\n"id": 3\n}'  # type: ignore[operator,misc] # a callable here
    assert not TraceMapper.reads_metadata("describe_tensor")
    assert TraceMapper.reads_metadata("artifact")
    assert TraceMapper.reads_metadata("compilation_metrics")


def test_a_failing_payload_is_not_asked_again() -> None:
    calls = []

    def fails() -> str:
        calls.append(1)
        raise ValueError

    once = Once(fails)
    with pytest.raises(ValueError):  # noqa: PT011 # the one raised above
        once()
    assert once() is None
    assert calls == [1]


@pytest.mark.parametrize(
    "payload",
    ["text\n", [], ["a", {"b": 1}], {"k": [1, None], "t": "\u20ac"}, {"s": {3}}, 7, [["x"]], {}, ""],
)
def test_texts_are_laid_out_as_torch_writes_them(payload: Any) -> None:
    seen: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.payload)  # type: ignore[attr-defined] # torch adds it

    log = torch._logging._internal.trace_log
    handler = Handler()
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.DEBUG)
    try:
        torch._logging.trace_structured(
            "artifact", lambda: {"name": "x"}, payload_fn=lambda: payload, expect_trace_id=False
        )
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert seen == [to_text(payload)]


def test_cache_answers_keep_their_lines_apart() -> None:
    facts = {"key": "fabc", "cache_state": "miss", "components": ["[a] x", "[b] y"]}
    for payload in (facts, to_text(facts)):
        events, book = mapped(artifact("fx_graph_cache_miss", payload))
        lines, state = events
        assert (lines.stage, lines.text()) == ("key_lines", "[a] x\n[b] y")  # type: ignore[operator,misc] # a callable
        assert state.data == {"state": "miss", "key": "fabc"}
        assert "components" not in state.text()  # type: ignore[operator,misc] # a callable
        cache = book.records()[0].cache
        assert (cache.fx_graph, cache.key) == ("miss", "fabc")


def test_metrics_lose_clocks_and_keep_each_configuration_once(tmp_path: Path) -> None:
    result = read_bytes(logs()["train"], tmp_path)
    configs = [e for e in result.events if e.stage == "torch_config"]
    assert {e.name for e in configs} == {
        "dynamo_config",
        "inductor_config",
        "compiler_config",
        "functorch_config",
    }
    assert len(configs) == len({e.text for e in configs})
    texts = [e.text for e in result.events if e.kind == "metrics" and isinstance(e.text, str)]
    assert len(texts) >= 8
    assert not any("start_time" in t or "inductor_config" in t for t in texts)
    assert result.book.versions == {"torch": "2.13.0+cpu", "python": "3.11.7"}


def test_stacks_have_their_file_names(tmp_path: Path) -> None:
    result = read_bytes(logs()["train"], tmp_path)
    first = result.book.records()[1]
    assert first.function is not None
    assert (first.function.name, first.function.file) == ("forward", "/home/alex/train/work.py")
    assert (first.stack[0].file, first.stack[0].code) == (
        "/home/alex/train/work.py",
        "c(torch.randn(n, 16)).sum().backward()",
    )


def test_symbols_and_specializations() -> None:
    _, book = mapped(
        TraceRecord(
            "create_symbol", {"symbol": "s0", "val": "8", "vr": "[2, int_oo]", "source": "x"}, None, "0/0"
        ),
        TraceRecord(
            "symbolic_shape_specialization", {"symbol": "s0", "value": "8", "reason": "r"}, None, "0/0"
        ),
        TraceRecord("create_symbol", {"symbol": ["bad"]}, None, "0/0"),
    )
    assert book.records()[0].symbols == {
        "s0": {"hint": "8", "range": "[2, int_oo]", "source": "x", "specialized": "8", "reason": "r"}
    }


@pytest.mark.parametrize("table", [RECORDS, ARTIFACTS, DUMPS])
def test_the_table_is_sound(table: dict[str, Any]) -> None:
    facts = TraceMapper(lambda event: None, CompileBook())._facts
    for what in table.values():
        Event(kind=what.kind, name="x", stage=what.stage, phase=what.phase, direction=what.direction)
        assert what.fact is None or what.fact in facts._readers
        assert what.stage == what.stage.lower()


@pytest.mark.parametrize(
    ("name", "kind", "stage"),
    [
        ("forward_ORIGINAL_BYTECODE", "bytecode", "original"),
        ("torch_dynamo_resume_in_f_at_3_MODIFIED_BYTECODE", "bytecode", "modified"),
        ("fx_graph_bundled_cache_hit", "cache", "fx_graph"),
        ("aotautograd_cache_pickle_failure", "cache", "aot_autograd"),
        ("get_local_code_state", "event", "pgo"),
        ("normalization_pass_post_grad", "pass", "post_grad"),
        ("inductor_post_grad_graph", "graph", "post_grad"),
        ("before_post_grad_graph", "graph", "post_grad"),
        ("after_post_grad_graph", "graph", "post_grad"),
        ("subclass_wrapper", "source", "runtime_wrapper"),
        ("backward_subclass_unwrap", "source", "runtime_wrapper"),
        ("brand_new", "event", "brand_new"),
    ],
)
def test_names_that_are_made_up_by_torch(name: str, kind: str, stage: str) -> None:
    what = shape("artifact", name, "string")
    assert (what.kind, what.stage) == (kind, stage)


def test_unknown_records_are_kept_under_their_own_name() -> None:
    events, _ = mapped(TraceRecord("from_the_future", {"a": 1}, lambda: "text", "0/0"))
    assert (events[0].kind, events[0].stage, events[0].name) == (
        "event",
        "from_the_future",
        "from_the_future",
    )
