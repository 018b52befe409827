from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_logs import logs, read_bytes

from structdump.bundle.model import Compile, Function, GraphBreak, Recompile, SourceFrame
from structdump.sources.compiles import CompileBook


def only(book: CompileBook) -> Compile:
    (found,) = book.records()
    return found


def broke(name: str, line: int) -> GraphBreak:
    return GraphBreak(reason="print", stack=[SourceFrame(file="a.py", line=line, name=name)])


def started(book: CompileBook, compile_id: str, name: str) -> None:
    book.started(compile_id, function=Function(name=name, file="a.py", line=1))


METRICS = {"guard_count": 7, "entire_frame_compile_time_s": 2.5, "restart_reasons": ["x"]}
FACTS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("seen", ("0/0", 1), {}),
    ("started", ("0/0",), {"function": Function(name="f", file="a.py", line=3)}),
    (
        "started",
        ("0/0",),
        {"stack": [SourceFrame(file="m.py", line=1, name="<module>")], "backend": "inductor"},
    ),
    ("graph_broke", ("0/0", broke("f", 5)), {}),
    ("recompiled", ("0/0", Recompile(reason="0/9: x == 1", guard="x == 1", previous="0/9")), {}),
    ("cache_answered", ("0/0", "fx_graph", "miss", "fabc"), {}),
    ("cache_answered", ("0/0", "aot_autograd", "bypass", None, "no shape env"), {}),
    ("symbol", ("0/0", "s0", {"hint": "4"}), {}),
    ("symbol", ("0/0", "s0", {"range": "[2, 9]"}), {}),
    (
        "measured",
        ("0/0", {"guard_count": 7, "entire_frame_compile_time_s": 2.5, "restart_reasons": ["x"]}),
        {},
    ),
    ("measured", ("0/0", {"inductor_cumulative_compile_time_us": 1500000}, True), {}),
]


@given(order=st.permutations(range(len(FACTS))))
def test_facts_may_come_in_any_order(order: list[int]) -> None:
    book = CompileBook()
    for index in order:
        method, args, named = FACTS[index]
        getattr(book, method)(*args, **named)
    found = only(book)
    assert found == Compile(
        id="0/0",
        function=Function(name="f", file="a.py", line=3),
        status="ok",
        seconds=2.5,
        phases={"dynamo": 2.5, "backward_inductor": 1.5},
        recompile=Recompile(reason="0/9: x == 1", guard="x == 1", previous="0/9"),
        graph_breaks=[broke("f", 5)],
        stack=[SourceFrame(file="m.py", line=1, name="<module>")],
        guards=7,
        symbols={"s0": {"hint": "4", "range": "[2, 9]"}},
        cache={"fx_graph": "miss", "aot_autograd": "bypass", "key": "fabc", "reason": "no shape env"},
        backend="inductor",
        metrics={"restart_reasons": ["x"]},
        attempts=2,
    )


def test_compiles_come_in_order_of_first_sight() -> None:
    book = CompileBook()
    for compile_id in ("2/0", "!0/1/0", "0/0", "2/0", "aot/0"):
        book.seen(compile_id)
    assert [c.id for c in book.records()] == ["2/0", "!0/1/0", "0/0", "aot/0"]
    assert {c.status for c in book.records()} == {"unfinished"}


@pytest.mark.parametrize(
    ("error", "metrics", "breaks", "status"),
    [
        (None, {}, False, "ok"),
        (None, {"has_guarded_code": False}, False, "skipped"),
        ("torch._dynamo.exc.BackendCompilerFailed", {}, False, "failed"),
        ("torch._dynamo.exc.BackendCompilerFailed", {"config_suppress_errors": True}, False, "fell_back"),
        ("torch._dynamo.exc.Unsupported", {}, False, "failed"),  # fullgraph
        ("torch._dynamo.exc.Unsupported", {}, True, "fell_back"),
        ("SkipFrame", {}, False, "skipped"),
        ("FailOnRecompileLimitHit", {}, False, "failed"),
        ("RecompileLimitExceeded", {}, False, "fell_back"),
        ("ValueError", {}, True, "failed"),
    ],
)
def test_status(error: str | None, metrics: dict[str, Any], breaks: bool, status: str) -> None:
    book = CompileBook()
    if error:
        book.failed("0/0", error, "why")
    if breaks:
        book.graph_broke("0/0", broke("f", 1))
    book.measured("0/0", metrics)
    assert only(book).status == status
    assert book.any_failed() == (status in ("failed", "fell_back"))


def test_a_backward_that_fails_reaches_the_user_even_with_suppressed_errors() -> None:
    book = CompileBook()
    book.measured("0/0", {"config_suppress_errors": True})
    assert only(book).status == "ok"
    book.measured("0/0", {"fail_type": "InductorError", "fail_reason": "x"}, backward=True)
    assert only(book).status == "failed"


def test_a_status_that_a_hook_states_counts() -> None:
    book = CompileBook()
    book.failed("0/0", "ValueError", "x")
    book.finished("0/0", status="fell_back", seconds=0.5)
    assert (only(book).status, only(book).seconds) == ("fell_back", 0.5)


def test_two_reports_of_one_failure_are_joined() -> None:
    book = CompileBook()
    book.failed("0/0", "torch.exc.Unsupported", "long", traceback="Traceback …")
    book.measured(
        "0/0",
        {"fail_type": "Unsupported", "fail_reason": "short", "fail_user_frame_filename": "a.py",
         "fail_user_frame_lineno": 4},
    )  # fmt: skip
    error = only(book).error
    assert error is not None
    assert (error.type, error.message, error.traceback) == ("torch.exc.Unsupported", "long", "Traceback …")
    assert error.user_frame == SourceFrame(file="a.py", line=4)


def test_a_break_names_the_compile_that_took_over() -> None:
    book = CompileBook()
    started(book, "0/0", "f")
    book.graph_broke("0/0", broke("f", 7))
    started(book, "1/0", "torch_dynamo_resume_in_f_at_7")
    book.graph_broke("1/0", broke("f", 9))  # torch names the user's function in the stack
    started(book, "2/0", "torch_dynamo_resume_in_f_at_9")
    started(book, "0/1", "f")  # recompiled; both resume functions still fit
    book.graph_broke("0/1", broke("f", 7))
    started(book, "0/2", "f")
    book.graph_broke("0/2", broke("f", 7))
    started(book, "1/1", "torch_dynamo_resume_in_f_at_7")
    linked = {c.id: [b.resumed_by for b in c.graph_breaks] for c in book.records() if c.graph_breaks}
    assert linked == {"0/0": ["1/0"], "1/0": ["2/0"], "0/1": ["1/0"], "0/2": ["1/1"]}


def test_a_break_in_an_inlined_function_is_resumed_in_the_compiled_one() -> None:
    book = CompileBook()
    started(book, "0/0", "outer")
    stack = [SourceFrame(file="a.py", line=4, name="outer"), SourceFrame(file="a.py", line=4, name="inner")]
    book.graph_broke("0/0", GraphBreak(reason="x", stack=stack))
    started(book, "1/0", "torch_dynamo_resume_in_inner_at_4")
    started(book, "2/0", "torch_dynamo_resume_in_outer_at_4")
    assert book.records()[0].graph_breaks[0].resumed_by == "2/0"


def test_a_break_without_resume_function_stays_open() -> None:
    book = CompileBook()
    book.graph_broke("0/0", broke("f", 7))
    started(book, "1/0", "f")
    book.graph_broke("1/0", broke("f", 7))
    book.graph_broke("1/0", broke("f", 7))
    assert [[b.resumed_by for b in c.graph_breaks] for c in book.records()] == [[None], [None]]


def test_a_recompile_that_never_started_is_of_its_frames_function() -> None:
    book = CompileBook()
    started(book, "0/0", "f")
    book.seen("0/3")
    assert book.records()[1].function == Function(name="f", file="a.py", line=1)
    assert book.function_of("0/3") == "f"
    assert book.function_of("7/0") is None
    assert book.function_of(None) is None


def test_hooks_may_use_the_ids_that_torch_has_at_the_moment() -> None:
    book = CompileBook()
    book.started("0/0", function=Function(name="f"))
    names = {"0/0": "0/0#2"}
    book.names = names
    book.started("0/0", function=Function(name="g"))
    book.failed("0/0", "ValueError", "x")
    assert [(c.id, c.function.name, c.status) for c in book.records() if c.function] == [
        ("0/0", "f", "unfinished"),
        ("0/0#2", "g", "failed"),
    ]
    assert book.function_of("0/0") == "g"
    assert (book.resolve("0/0"), book.resolve("1/0"), book.resolve(None)) == ("0/0#2", "1/0", None)
    book.unlabelled = "aot/0"
    assert book.resolve(None) == "aot/0"


def test_different_answers_of_one_cache() -> None:
    book = CompileBook()
    book.cache_answered("0/0", "fx_graph", "hit", "f1")
    book.cache_answered("0/0", "fx_graph", "miss", "f2")
    cache = only(book).cache
    assert (cache.fx_graph, cache.key, cache.aot_autograd) == ("mixed", "f1", None)


FIELDS = [
    "co_name", "co_filename", "co_firstlineno", "guard_count", "fail_type", "fail_reason", "is_runtime",
    "exception_stack_trace", "restart_reasons", "recompile_reason", "start_time_us", "end_time_us",
    "gc_time_us", "_time_us", "backend_compile_time_s", "pytorch_version", "python_version",
]  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
weird = scalars | st.lists(st.integers() | st.text())


@given(values=st.dictionaries(st.sampled_from(FIELDS) | st.text(), weird), backward=st.booleans())
def test_metrics_of_any_type_make_a_valid_record(values: dict[str, Any], backward: bool) -> None:
    book = CompileBook()
    book.measured("0/0", values, backward)
    found = only(book)
    assert Compile.model_validate_json(found.model_dump_json()) == found


def test_the_number_of_compiles_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structdump.sources.compiles.MAX_COMPILES", 10)
    book = CompileBook()
    for index in range(50):
        book.started(f"{index}/0", function=Function(name="f"))
        book.finished(f"{index}/0")
    assert len(book.records()) == 10


def test_a_real_training_run(tmp_path: Path) -> None:
    compiles = {c.id: c for c in read_bytes(logs()["train"], tmp_path).book.records()}
    assert list(compiles) == ["0/0", "1/0", "1/1", "2/0", "0/1", "1/2", "1/3", "2/1"]
    again = compiles["1/3"]
    assert again.function == Function(name="forward", file="/home/alex/train/work.py", line=12)
    assert again.attempts == 2
    assert again.recompile is not None
    assert (again.recompile.previous, again.recompile.guard) == (
        "1/2",
        "tensor 'x' requires_grad mismatch. expected requires_grad=0",
    )
    assert [b.resumed_by for b in compiles["1/1"].graph_breaks] == ["2/0"]
    assert [b.resumed_by for b in again.graph_breaks] == ["2/1"]
    assert again.graph_breaks[0].stack[-1].code == 'print("broken here")'
    assert again.graph_breaks[0].reason.startswith("Encountered graph break when attempting to trace CALL")
    assert "Traceback" not in again.graph_breaks[0].reason
    first = compiles["1/0"]
    assert first.cache.model_dump() == {
        "fx_graph": "miss", "aot_autograd": "miss", "reason": None,
        "key": "fe2kv5gz2j3uthsftqew4btw7bm2gp5zib3hjqfpyctykrtpcwh5",
    }  # fmt: skip
    assert first.seconds == 10.568608
    assert first.phases["backward_inductor"] == 1.961855
    assert first.guards is not None
    assert first.metrics["graph_op_count"] == 4
    assert compiles["1/2"].symbols["s77"]["range"] == "[2, int_oo]"


def test_a_real_failure(tmp_path: Path) -> None:
    (found,) = read_bytes(logs()["fail"], tmp_path).book.records()
    assert found.error is not None
    assert found.error.type == "torch._dynamo.exc.BackendCompilerFailed"
    assert found.error.message.startswith("backend='bad' raised:\nRuntimeError: backend fell over for alex")
    assert found.error.traceback is not None
    assert found.error.traceback.startswith("Traceback (most recent call last):")
    assert "in bad" in found.error.traceback


def test_times_of_compiles_without_a_frame(tmp_path: Path) -> None:
    for case, expected in (("aoti", [38.2, 14.0]), ("standalone", [9.1, 0.1]), ("aotcompile", [10.6])):
        found = read_bytes(logs()[case], tmp_path).book.records()
        assert [round(c.seconds or 0, 1) for c in found] == expected
