from __future__ import annotations

import ast
import subprocess
import sys
import time

import pytest
from dump_samples import members
from hypothesis import given, settings
from hypothesis import strategies as st

from structdump.sources.kernels import parse_output_code
from structdump.sources.provenance import ops_from_name

PYTHON = sorted(
    n for n, text in members("output_code").items() if "cpp_wrapper_src" not in text and n.endswith("py")
)
H200 = "__compiled_fn_1.kernel_118.py"


def sample(name: str) -> str:
    return members("llama_h200")[name] if name == H200 else members("output_code")[name]


def by_name(code):
    return {item.kernel.name: item for item in code.kernels}


def oracle(text: str) -> tuple[dict[str, str], dict[str, int]]:
    """Kernels with their text and calls with their count, by Python's own parser over the whole module."""
    tree = ast.parse(text)
    sources = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and "async_compile." in ast.unparse(node.value)[:40]:
            strings = [
                a.value for a in node.value.args if isinstance(a, ast.Constant) and "\n" in str(a.value)
            ]
            sources[node.targets[0].id] = strings[0]
    calls: dict[str, int] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in (
            "get_args",
            "benchmark_compiled_module",
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    name = ast.unparse(node.func)
                    name = name.removesuffix(".run")
                    if name in sources or name.startswith(("extern_kernels.", "torch.ops.", "aten.")):
                        calls[name] = calls.get(name, 0) + 1
    return sources, calls


@pytest.mark.parametrize("name", [*PYTHON, H200])
def test_kernels_and_calls_are_those_that_python_s_parser_finds(name):
    text = sample(name)
    code = parse_output_code(text)
    sources, calls = oracle(text)
    assert {n: item.source for n, item in by_name(code).items()} == sources
    counted = {k.name: k.calls for k in [*(i.kernel for i in code.kernels), *code.extern]}
    assert {n: c for n, c in counted.items() if c} == calls
    assert code.problem is None
    assert code.language == "python"


@pytest.mark.parametrize("name", [*PYTHON, H200])
def test_text_that_python_cannot_parse_gives_the_same_by_pattern(name):
    text = sample(name)
    broken = text.replace("runner = Runner(", "runner = = Runner(")
    assert broken != text
    good, bad = parse_output_code(text), parse_output_code(broken)
    assert bad.problem is not None
    assert {n: i.source for n, i in by_name(bad).items()} == {n: i.source for n, i in by_name(good).items()}
    assert [(i.kernel.name, i.kernel.calls) for i in bad.kernels] == [
        (i.kernel.name, i.kernel.calls) for i in good.kernels
    ]
    assert [(k.name, k.calls) for k in bad.extern] == [(k.name, k.calls) for k in good.extern]


def test_triton_kernels_of_a_gpu():
    code = parse_output_code(sample(H200))
    kernels = by_name(code)
    assert code.aot_id == "0_inference"
    assert len(kernels) == 24
    red = kernels["triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0"]
    k = red.kernel
    assert (k.backend, k.heuristic, k.size_hints, k.loads, k.stores, k.reductions, k.grid, k.calls) == (
        "triton", "reduction", {"x": 1024, "r0_": 1024}, 2, 1, 1, "Grid1D", 1,
    )  # fmt: skip
    assert k.ops == [
        "aten.embedding",
        "aten._to_copy",
        "aten.pow",
        "aten.mean",
        "aten.add",
        "aten.rsqrt",
        "aten.mul",
    ]
    assert k.nodes[:2] == ["inputs_embeds", "hidden_states"]
    assert (
        k.fragment.splitlines()[0]
        == '%arg0_1 : Tensor "i64[4, 256][256, 1]cuda:0" = PlaceHolder[target=arg0_1]'
    )
    assert k.fragment.splitlines()[-1] == "return %buf0,%mul_3"
    assert red.path.endswith("cpgk56nfdwvs2tga5f6cczcppj3o2jodwcr224u73vmryvm43xe2.py")
    assert red.meta["kernel_name"] == k.name
    assert red.language == "python"
    gemm = next(i for n, i in kernels.items() if n.startswith("triton_tem_fused__to_copy_add_embedding"))
    assert gemm.kernel.grid == "(64, 1, 1)"
    assert gemm.kernel.best_config["BLOCK_M"] > 0
    assert {"num_warps", "num_stages"} <= set(gemm.kernel.best_config)
    assert {k.name: k.calls for k in code.extern} == {
        "torch.ops.aten._scaled_dot_product_cudnn_attention.default": 6,
        "extern_kernels.mm": 23,
    }
    assert all(k.ops and k.nodes for k in code.extern)


def test_triton_kernel_files_of_the_same_dump_hold_the_same_bytes():
    files = members("llama_h200")
    loaded = {files[f"__compiled_fn_1.kernel_{n}.py"] for n in range(119, 137)}
    sources = {item.source for item in parse_output_code(sample(H200)).kernels}
    assert len(loaded) == 18
    assert {t.strip() for t in loaded} <= {s.strip() for s in sources}


def test_cpp_kernels_get_their_ops_from_their_names_and_say_so():
    kernels = by_name(parse_output_code(sample("inference.py")))
    norm = kernels["cpp_fused_clone_native_layer_norm_transpose_0"]
    assert norm.kernel.ops == ["aten.clone", "aten.native_layer_norm", "aten.transpose"]
    assert norm.inferred == ["kernel.ops"]
    assert norm.language == "cpp"
    backward = by_name(parse_output_code(sample("training_backward.py")))
    softmax = backward["cpp_fused__softmax_backward_data_add_sum_transpose_view_3"]
    assert softmax.kernel.ops == [
        f"aten.{op}" for op in ("_softmax_backward_data", "add", "sum", "transpose", "view")
    ]
    own = parse_output_code(
        "cpp_fused_twice_0 = async_compile.cpp_pybinding([], '''\n''')\n", {"twice": "my.twice"}
    )
    assert own.kernels[0].kernel.ops == ["my.twice"]
    strange = parse_output_code("cpp_fused_twice_0 = async_compile.cpp_pybinding([], '''\n''')\n")
    assert (strange.kernels[0].kernel.ops, strange.kernels[0].inferred) == ([], [])


def test_ops_of_a_name_are_sorted_and_whole():
    known = {"a": "aten.a", "b": "aten.b", "a_b": "aten.a_b", "c": "aten.c"}
    assert ops_from_name("cpp_fused_a_c_12", known) == ["aten.a", "aten.c"]
    assert ops_from_name("cpp_fused_a_b_c_0", known) == ["aten.a_b", "aten.c"]
    assert ops_from_name("cpp_fused_c_a_0", known) == []
    assert ops_from_name("cpp_fused_a_x_0", known) == []
    assert ops_from_name("triton_poi_fused_a_0", known) == ["aten.a"]
    assert ops_from_name("extern", known) == []


@pytest.mark.parametrize(
    ("name", "kernels", "extern"),
    [
        ("cpp_wrapper.py", 6, {"aoti_torch_cpu_addmm_out": 3, "aoti_torch_cpu_mm_out": 1,
                               "aoti_torch_cpu_convolution": 1, "aoti_torch_cpu_sort_stable": 1,
                               "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu": 1,
                               "aoti_torch_cpu_cumsum": 1}),
        ("cpp_wrapper_custom_op.py", 2, {"kx::foo": 1, "aoti_torch_cpu_histc": 1}),
        ("cpp_wrapper_template.py", 1, {}),
        ("aoti_wrapper.cpp", 2, {"aoti_torch_cpu_addmm_out": 1}),
        ("aoti_kernel.cpp", 2, {}),
    ],
)  # fmt: skip
def test_cpp_wrappers(name, kernels, extern):
    code = parse_output_code(sample(name))
    assert code.language == "cpp"
    assert len(code.kernels) == kernels
    assert {k.name: k.calls for k in code.extern} == extern
    for item in code.kernels:
        declared_only = name == "aoti_wrapper.cpp"
        assert bool(item.source) != declared_only
        assert item.kernel.calls == (name != "aoti_kernel.cpp")
        if item.source:
            assert item.source.startswith("#include")
            assert item.source.rstrip().endswith("}")
            assert item.source.count('extern "C"') == 1


def test_cpp_wrapper_and_python_wrapper_of_one_model_run_the_same_kernels():
    python, cpp = parse_output_code(sample("inference.py")), parse_output_code(sample("cpp_wrapper.py"))
    assert list(by_name(python)) == list(by_name(cpp))
    assert sum(k.calls for k in python.extern) == sum(k.calls for k in cpp.extern)


def test_kernels_of_branches_and_partitions_are_counted():
    cond = by_name(parse_output_code(sample("cond.py")))
    assert {n: i.kernel.calls for n, i in cond.items()} == dict.fromkeys(cond, 1)
    partition = by_name(parse_output_code(sample("partition.py")))
    assert len(partition) == 2
    assert all(i.kernel.calls == 1 for i in partition.values())


USER_KERNEL = r"""
# Original path: /home/alex/model.py:10
add_kernel_0 = async_compile.triton('add_kernel', '''
import triton
import triton.language as tl

@triton_heuristics.user_autotune(
    configs=[{'num_warps': 4, 'BLOCK': 128}, {'num_warps': 8, 'BLOCK': 256}],
    inductor_meta={'grid_type': 'PrecomputedGrid', 'kernel_name': 'add_kernel_0', 'autotune_hints': set()},
    triton_meta={'signature': {'x': '*fp32'}},
    filename=__file__,
    custom_kernel=True,
)
@triton.jit
def add_kernel(x, BLOCK: tl.constexpr):
    \'\'\'adds "a" \\n\'\'\'
''', device_str='cuda')


multi_kernel_0 = async_compile.multi_kernel('multi_kernel_0', [
    triton_per_fused_a_0,
    triton_red_fused_a_1,
], arg_index=arg_index)
triton_per_fused_a_0 = async_compile.triton('triton_per_fused_a_0', '''
pass
''')
triton_red_fused_a_1 = async_compile.triton('triton_red_fused_a_1', '''
pass
''')
old_0 = async_compile.triton('old', '''
@pointwise(size_hints=[1024, 16], filename=__file__, meta={})
@triton.jit
def old(): pass
''')
halide_kernel_0 = async_compile.halide(HalideMeta(argtypes=[HalideInputSpec(name='a')]), '''
import halide
''')
rocm_fused_0 = async_compile.rocm(r'''
// \'no escape here
''', 'so', aot_compile=False)
mps_lib_0 = async_compile.metal('mps_lib_0', '''
kernel void mps_lib_0() {}
''', ['c10_metal'])
cutlass_0 = async_compile.cuda(r'''
int main;
''', 'so')
pallas_fused_0 = async_compile.pallas('pallas_fused_0', r'''
import jax
''')
quote_0 = async_compile.triton('quote_0', '''
ends with a quote \'''')
mystery_0 = async_compile.brand_new_backend('mystery_0', '''
what
''')


def call(args):
    with torch.cuda._DeviceGuard(0):
        # Topologically Sorted Source Nodes: [y], Original ATen: [aten.add]
        stream0 = get_raw_stream(0)
        add_kernel_0.run(arg0_1, grid=grid(1024), stream=stream0)
        multi_kernel_0.run(arg0_1)
        mps_lib_0.mps_lib_0(arg0_1)
        for _ in range(2):
            (buf0, buf1) = torch.ops.higher_order.scan(arg0_1)
        buf2 = torch.ops.inductor._alloc_from_pool(pool0, 0, torch.float32, (1,), (1,))
        buf4 = wrap(extern_kernels.mm(a, b))
    return (buf1, )


def get_args():
    extern_kernels.never(1)
"""


def test_what_other_backends_and_users_kernels_look_like():
    code = parse_output_code(USER_KERNEL)
    assert code.problem is None
    kernels = by_name(code)
    user = kernels["add_kernel_0"]
    assert user.kernel.heuristic == "user_autotune"
    assert user.meta["configs"] == 2
    assert user.kernel.grid == "grid(1024)"
    assert user.kernel.ops == ["aten.add"]
    assert "'''adds \"a\" \\n'''" in user.source
    assert {n: i.kernel.backend for n, i in kernels.items()} == {
        "add_kernel_0": "triton", "multi_kernel_0": "multi_kernel", "triton_per_fused_a_0": "triton",
        "triton_red_fused_a_1": "triton", "old_0": "triton", "halide_kernel_0": "halide",
        "rocm_fused_0": "rocm", "mps_lib_0": "metal", "cutlass_0": "cuda", "pallas_fused_0": "pallas",
        "mystery_0": "brand_new_backend", "quote_0": "triton",
    }  # fmt: skip
    assert kernels["triton_per_fused_a_0"].kernel.calls == 1
    assert kernels["old_0"].kernel.size_hints == {"x": 1024, "y": 16}
    assert kernels["rocm_fused_0"].source == "\n// \\'no escape here\n"
    assert kernels["mps_lib_0"].kernel.calls == 1
    assert kernels["quote_0"].source == "\nends with a quote '"
    assert {k.name: k.calls for k in code.extern} == {
        "torch.ops.higher_order.scan": 1,
        "extern_kernels.mm": 1,
    }


def test_tuning_block_on_top_does_not_double_kernels():
    text = sample(H200)
    name = "triton_poi_fused__unsafe_view_mul_silu_14"
    start = text.index(f"{name} = ")
    definition = text[start : text.index("''', ", start) + 24]
    doubled = f'r"""\nCompile-time auto-tuning block: \n\n{definition}\n"""\n' + text
    code = parse_output_code(doubled)
    assert code.problem is None
    assert sorted(by_name(code)) == sorted(by_name(parse_output_code(text)))
    assert by_name(code)[name].kernel.calls == 6
    assert by_name(code)[name].path is not None
    assert by_name(code)[name].kernel.fragment is not None


def test_embedded_triton_kernels_of_aotinductor():
    text = """#include <torch/csrc/inductor/aoti_include/cuda.h>
static __attribute__((noinline)) void call_triton_poi_fused_add_0(
    const in_ptr0_type_& in_ptr0,
){
    /*
    async_compile.triton('triton_poi_fused_add_0', '''
    import triton

    @triton_heuristics.pointwise(
        size_hints={'x': 32},
        inductor_meta={'grid_type': 'Grid1D', 'num_load': 2},
    )
    @triton.jit
    def triton_poi_fused_add_0(in_ptr0):
        x = 1
    ''', device_str='cuda')
    */
    launchKernel(kernels_.triton_poi_fused_add_0, grid_0);
}
static __attribute__((noinline)) void call_triton_poi_fused_sub_1(
){
}
void AOTInductorModel::run_impl(
) {
    // Topologically Sorted Source Nodes: [a], Original ATen: [aten.add]
    call_triton_poi_fused_add_0(arg0_1, kernels);
    call_triton_poi_fused_sub_1(arg0_1, kernels);
    throw std::runtime_error("PyObject_CallObject torch.ops.kx.foo failed");
}
"""
    code = parse_output_code(text)
    add, sub = code.kernels
    assert (add.kernel.size_hints, add.kernel.loads, add.kernel.calls) == ({"x": 32}, 2, 1)
    assert add.kernel.ops == ["aten.add"]
    assert add.source.startswith("import triton\n\n@triton_heuristics")
    assert (sub.kernel.name, sub.source, sub.kernel.calls) == ("triton_poi_fused_sub_1", "", 1)
    assert [k.name for k in code.extern] == ["torch.ops.kx.foo"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_cut_and_damaged_output_code_never_raises(data):
    text = sample(data.draw(st.sampled_from(sorted(members("output_code")))))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(0, len(text)))
    noise = data.draw(
        st.text(max_size=20) | st.sampled_from(["'''", '"""', "\\", "\x00", "(" * 2000, "\ud800"])
    )
    parse_output_code(text[:start] + noise + text[end:])


LITERALS = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
KEYS = [
    "size_hints",
    "num_load",
    "num_reduction",
    "grid_type",
    "extra_launcher_args",
    "config_args",
    "kernel_name",
]


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, LITERALS)),
    st.sampled_from(["template", "pointwise"]),
)
def test_decorators_that_hold_anything_never_raise(values, heuristic):
    source = (
        (
            f"@triton_heuristics.{heuristic}(\n    size_hints={values.pop('size_hints', None)!r},\n"
            f"    num_warps={values.get('num_load')!r},\n"
            f"    inductor_meta={ {'grid_type': 'FixedGrid', **values}!r},\n)\n@triton.jit\ndef k(): pass\n"
        )
        .replace("\\", "\\\\")
        .replace("'''", "")
    )
    code = parse_output_code(
        f"k_0 = async_compile.triton('k', '''\n{source}''')\ndef call(args):\n    k_0.run(1, 2, 3)\n"
    )
    assert code.kernels[0].kernel.calls == 1
    code.kernels[0].kernel.model_dump_json()


@given(st.text())
def test_any_text_never_raises(text):
    code = parse_output_code(text)
    assert code.kernels == []


def test_deep_nesting_and_long_names_end():
    assert parse_output_code("def call(args):\n    x = " + "(" * 100_000).problem
    assert parse_output_code("def call(args):\n    x = " + "f(" * 5000 + ")" * 5000).kernels == []
    name = "cpp_fused_" + "a_" * 5000 + "0"
    text = (
        f"{name} = async_compile.cpp_pybinding([], r'''\n''')\n# Source Nodes: [], Original ATen: [aten.a]\n"
    )
    start = time.perf_counter()
    parse_output_code(text, {"a" + "_a" * n: "aten.a" for n in range(200)})
    assert time.perf_counter() - start < 5


def test_importing_it_imports_no_torch():
    code = "import structdump.sources.kernels, structdump.sources.configs, sys; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
