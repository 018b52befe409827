from __future__ import annotations

from pathlib import Path

import pytest
from trace_logs import logs, read_bytes

from structdump.sources.compiles import CompileBook
from structdump.sources.completeness import TORCH_HINT, UNFINISHED_HINT, VLLM_HINT, verdict


def book_of(*answers: tuple[str, str, str], ended: bool = True) -> CompileBook:
    book = CompileBook()
    for compile_id, cache, state in answers:
        book.cache_answered(compile_id, cache, state)
        if ended:
            book.finished(compile_id)
    return book


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], "empty"),
        ([("0/0", "fx_graph", "miss"), ("0/0", "aot_autograd", "miss")], "cold"),
        ([("0/0", "fx_graph", "bypass"), ("0/0", "aot_autograd", "bypass")], "cold"),
        ([("0/0", "fx_graph", "hit"), ("0/0", "aot_autograd", "hit")], "warm"),
        ([("0/0", "fx_graph", "hit"), ("0/0", "aot_autograd", "miss")], "warm"),
        ([("0/0", "fx_graph", "hit"), ("0/0", "fx_graph", "miss")], "partial"),
        ([("0/0", "fx_graph", "hit"), ("1/0", "fx_graph", "miss")], "partial"),
    ],
)
def test_verdicts(answers: list[tuple[str, str, str]], expected: str) -> None:
    found = verdict(book_of(*answers))
    assert found.verdict == expected
    assert (TORCH_HINT in found.hints) == (expected in ("warm", "partial"))


def test_reasons_name_compile_and_cache() -> None:
    found = verdict(book_of(("0/0", "fx_graph", "hit"), ("0/0", "aot_autograd", "hit")))
    assert found.reasons == ["0/0: loaded from the FX graph cache and the AOTAutograd cache"]


def test_an_unfinished_compile_is_partial() -> None:
    found = verdict(book_of(("0/0", "fx_graph", "miss"), ended=False))
    assert (found.verdict, found.hints) == ("partial", [UNFINISHED_HINT])


def test_vllm_needs_both_variables() -> None:
    book = CompileBook()
    book.framework["vllm"] = {}
    book.loaded("vLLM loaded a compiled model")
    book.loaded("vLLM loaded a compiled model")
    found = verdict(book)
    assert (found.verdict, found.reasons) == ("warm", ["vLLM loaded a compiled model"])
    assert found.hints == [TORCH_HINT, VLLM_HINT]
    assert "VLLM_DISABLE_COMPILE_CACHE=1" in VLLM_HINT
    assert "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1" in TORCH_HINT


def test_the_variable_is_one_that_torch_reads() -> None:
    import torch

    config = Path(torch.__file__).parent / "compiler" / "config.py"
    assert '"TORCHINDUCTOR_FORCE_DISABLE_CACHES"' in config.read_text()


@pytest.mark.parametrize(
    ("case", "expected"),
    [("train", "cold"), ("train_warm", "warm"), ("two_warm", "warm"), ("vllm", "cold"), ("ca", "cold")],
)
def test_real_runs(case: str, expected: str, tmp_path: Path) -> None:
    found = verdict(read_bytes(logs()[case], tmp_path).book)
    assert found.verdict == expected
    assert (expected == "cold") == (found.hints == [])


def test_a_real_run_that_was_killed(tmp_path: Path) -> None:
    data = logs()["train"]
    found = verdict(read_bytes(data[: data.index(b"before_post_grad_graph")], tmp_path).book)
    assert found.verdict == "partial"
    assert any("no end of this compile" in r for r in found.reasons)
