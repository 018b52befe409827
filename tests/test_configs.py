from __future__ import annotations

import os

import pytest
from dump_samples import members
from dump_trees import triton_kernel
from hypothesis import given
from hypothesis import strategies as st

from structdump.sources.configs import (
    BestConfig,
    best_config_keys,
    fits,
    parse_best_config,
    parse_kernel_perf,
)


def test_a_real_best_config():
    text = next(t for n, t in members("llama_h200").items() if n.startswith("ce2dae"))
    parsed = parse_best_config(text)
    assert parsed.config == {"XBLOCK": 16, "num_warps": 1, "num_stages": 1}
    assert parsed.facts == {
        "configs_hash": "7b7980758c0c2ffb28810f0244bd8d0dceea94e7c4f2c4af5710870c9859e1ff",
        "found_by_coordesc": True,
        "time_taken_ms": 131,
        "triton_cache_hash": None,
    }
    assert set(parsed.as_dict()) == {*parsed.config, *parsed.facts}


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "null", '{"a":' * 5000, "\x00"])
def test_what_is_no_config(text):
    assert parse_best_config(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.0028800000436604023", 0.0028800000436604023), ("inf\n", float("inf")), ("x", None)],
)
def test_kernel_perf(text, value):
    assert parse_kernel_perf(text) == value


@pytest.mark.parametrize("tag", ["", "mine"])
def test_the_key_is_the_one_that_torch_computes(tag):
    cache = pytest.importorskip("torch._inductor.runtime.autotune_cache").AutotuneCache
    from torch._inductor.codecache import torch_key
    from torch.compiler import config

    for path in ("/tmp/torchinductor_alex/ab/cab1.py", "__compiled_fn_1.kernel_119.py"):
        with config.patch(cache_key_tag=tag):
            inner = cache._prepare_key(path)
            name = cache._make_local_cache_key(os.path.dirname(path), inner)  # noqa: PTH120 # as torch does
        keys = best_config_keys(path, torch_key(), tag)
        assert name.endswith(f"{keys[0]}.best_config")
        assert keys[1] == inner


def test_what_fits():
    one, two = BestConfig({"XBLOCK": 4, "num_warps": 1}), BestConfig({"XBLOCK": 4, "R0_BLOCK": 8})
    pointwise = triton_kernel(1)
    reduction = pointwise.replace("XBLOCK : tl.constexpr", "XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr")
    assert fits(pointwise, one)
    assert not fits(pointwise, two)
    assert fits(reduction, two)
    assert not fits(reduction, one)
    assert not fits(pointwise, BestConfig({"num_warps": 1}))
    assert not fits("void kernel() {}", one)


@given(st.text())
def test_any_text_never_raises(text):
    parse_best_config(text)
    parse_kernel_perf(text)
    assert best_config_keys(text or "x")
