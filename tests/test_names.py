from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structdump.bundle.names import GRAPHS, DumpName, depyf_file_name, parse_file_name, parse_rank, stage_of

UUID = "ee7c7c07_a36c_4779_ba84_061dff9104d5"


@pytest.mark.parametrize(
    ("name", "stage", "phase", "pass_name", "direction"),
    [
        ("AFTER POST GRAD", "post_grad", "after", None, None),
        ("AFTER_POST_GRAD", "post_grad", "after", None, None),
        ("BEFORE PRE GRAD", "pre_grad", "before", None, None),
        ("Joint graph", "joint", None, None, "joint"),
        ("Forward graph", "forward", None, None, None),
        ("Backward graph", "backward", None, None, "backward"),
        ("tensorify_python_scalars", "tensorify", None, None, None),
        ("pre insert_deferred_runtime_asserts __compiled_fn_1", "runtime_asserts", "before", None, None),
        (f"pre insert_deferred_runtime_asserts __compiled_fn_1_{UUID}", "runtime_asserts", "before", None,
         None),
        ("pre insert_deferred_runtime_asserts exported program: {'a': 1}", "runtime_asserts", "before", None,
         None),
        (f"__compiled_fn_1_{UUID}", "captured", None, None, None),
        (f"__compiled_fn_1_{UUID.replace('_', '-')}", "captured", None, None, None),
        ("__compiled_fn_12", "captured", None, None, None),
        ("Captured_Graph", "captured", None, None, None),
        ("pre split_module", "split_module", "before", None, None),
        ("post_split_module", "split_module", "after", None, None),
        ("before split", "split", "before", None, None),
        ("after_split", "split", "after", None, None),
        ("FROZEN GRAPH", "frozen", None, None, "inference"),
        ("Compiled autograd graph", "compiled_autograd", None, None, "backward"),
        ("Backward graph before unlifting tokens", "unlift_tokens", "before", None, "backward"),
        ("saved_tensors_unpack_hook x", "saved_tensors_hooks", None, None, None),
        ("post_grad.0.NoOpEliminationPass.before", "post_grad", "before", "NoOpEliminationPass", None),
        ("post_grad.VllmIRInplaceFunctionalizationPass.after", "post_grad", "after",
         "VllmIRInplaceFunctionalizationPass", None),
        ("post_grad.5.FixFunctionalizationPass.before_cleanup", "post_grad", None,
         "FixFunctionalizationPass.before_cleanup", None),
        ("graph_pre_pass", "graph_pre_pass", None, None, None),
        ("My Strange/Graph <lambda>", "my_strange_graph_lambda", None, None, None),
        ("", "unnamed", None, None, None),
    ],
)  # fmt: skip
def test_stage_of(name, stage, phase, pass_name, direction):
    assert stage_of(name)[:4] == (stage, phase, pass_name, direction)


def test_order_of_a_pass():
    assert stage_of("post_grad.12.SomePass.before").order == 12
    assert stage_of("post_grad.SomePass.before").order is None


def test_every_graph_name_of_the_installed_torch_is_known():
    """The table is complete: no literal name in torch's own source ends as its own slug."""
    root = Path(pytest.importorskip("torch").__file__).parent
    calls = re.compile(r"lazy_format_graph_code\(\s*\"([^\"]+)\"|maybe_log_graph\(\s*\w+,\s*\"([^\"]+)\"")
    found = {
        a or b
        for folder in ("_dynamo", "_inductor", "_functorch", "fx/passes", "_export", "export")
        for path in (root / folder).rglob("*.py")
        for a, b in calls.findall(path.read_text())
    }
    assert len(found) >= 10
    assert found <= set(GRAPHS)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("__compiled_fn_1.AFTER_POST_GRAD.0.py", DumpName("graph", "__compiled_fn_1", "AFTER_POST_GRAD", 0)),
        ("__compiled_fn_0 AFTER POST GRAD 3.py",
         DumpName("graph", "__compiled_fn_0", "AFTER POST GRAD", 3, spaced=True)),
        ("__compiled_fn_0 kernel 3.py", DumpName("kernel", "__compiled_fn_0", "", 3, spaced=True)),
        ("__compiled_fn_1.kernel_13.py", DumpName("kernel", "__compiled_fn_1", "", 13)),
        ("__compiled_fn_-1.kernel_0.py", DumpName("kernel", "__compiled_fn_-1", "", 0)),
        ("__compiled_fn_1.kernel_13.best_config", DumpName("best_config", "__compiled_fn_1", "", 13)),
        ("__compiled_fn_1.kernel_114.kernel_perf", DumpName("kernel_perf", "__compiled_fn_1", "", 114)),
        ("ce" * 32 + ".best_config", DumpName("best_config", None, "ce" * 32)),
        ("full_code_for_forward_0.py", DumpName("full_code", "forward", "", 0)),
        ("full_code_for_<lambda>_2.py", DumpName("full_code", "<lambda>", "", 2)),
        ("__transformed_code_0_for_forward.py", DumpName("transformed_code", "forward", "", 0)),
        ("__transformed_code_0_for_torch_dynamo_resume_in_f_at_3.py.original_bytecode",
         DumpName("bytecode", "torch_dynamo_resume_in_f_at_3", "", 0, "original")),
        ("__transformed_code_0_for_f.py.decompiled_and_compiled_back_bytecode",
         DumpName("bytecode", "f", "", 0, "decompiled_and_compiled_back")),
        ("fx_graph_code_" + "0a" * 16 + "_0.py", DumpName("fx_graph_code", None, "0a" * 16, 0)),
        ("__compiled_fn_1.kernel_%s.py.lock", DumpName("lock", None, "__compiled_fn_1.kernel_%s.py")),
        ("patterns.RMSNormQuantFusionPass.0.py", DumpName("patterns", None, "RMSNormQuantFusionPass", 0)),
        ("transformed_code.py", DumpName("vllm", None, "transformed_code.py")),
        ("cache_key_factors.json", DumpName("vllm", None, "cache_key_factors.json")),
        ("__compiled_fn_1.a/b.0.py", DumpName("graph", "__compiled_fn_1", "a/b", 0)),
        ("__compiled_fn_1.gr\udcffph.0.py", DumpName("graph", "__compiled_fn_1", "gr\udcffph", 0)),
    ],
)  # fmt: skip
def test_file_names_both_ways(path, expected):
    assert parse_file_name(path) == expected
    assert expected.file_name == path


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "a/__compiled_fn_1.X.0.py",
        "__compiled_fn_0 kernel_3.py",
        "kernel_1.py",
        "",
        "model.safetensors",
    ],
)
def test_other_files_are_not_taken(path):
    assert parse_file_name(path) is None


@given(st.text(max_size=60))
def test_whatever_parses_is_written_back_the_same(text):
    for path in (text, f"__compiled_fn_1.{text}.0.py", f"full_code_for_{text}_0.py", f"{text}.best_config"):
        parsed = parse_file_name(path)
        assert parsed is None or parsed.file_name == path


@given(
    st.sampled_from(
        ["graph", "pass", "kernel", "output_code", "candidate", "best_config", "source", "event"]
    ),
    st.text(max_size=40) | st.text(min_size=250, max_size=300),
    st.sampled_from([None, "full_code", "decompiled", "post_grad", "weird/stage"]),
    st.sampled_from([None, "before", "after"]),
    st.text(max_size=20),
)
def test_names_to_write_under_are_one_safe_component(kind, name, stage, phase, function):
    made = depyf_file_name(kind, name, stage, phase, function, 7)
    assert made is None or (
        "/" not in made and "\x00" not in made and made not in ("", ".", "..") and len(made.encode()) < 256
    )


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_every_stage_finds_its_depyf_name(name):
    stage, phase, _ = GRAPHS[name]
    made = depyf_file_name("graph", "x", stage, phase, "1", 0)
    assert made is not None
    parsed = parse_file_name(made)
    assert parsed is not None
    assert (parsed.stage.stage, parsed.stage.phase) == (stage, phase)


def test_pass_gets_vllm_s_name():
    made = depyf_file_name("pass", "NoOpPass", "post_grad", "before", "1", 2, order=3)
    assert made == "__compiled_fn_1.post_grad.3.NoOpPass.before.2.py"


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_0", (0, None)),
        ("rank_12_dp_3", (12, 3)),
        ("rank_0_1", (0, 1)),
        ("rank_", None),
        ("rank_x", None),
    ],
)
def test_ranks(name, rank):
    assert parse_rank(name) == rank
