"""Writes structdump/bundle/torch_names.txt: the names that torch itself uses, which privacy=shapes keeps.

Run: python benchmarks/torch_names.py

The installed torch gives its own; those of vLLM (0.11 to 0.13), which nobody need install for
this, and those of torch 2.9 to 2.12 that 2.13 no longer has, are listed here.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import torch
import torch._dynamo.config
import torch._dynamo.exc
import torch._dynamo.utils
import torch._functorch.config
import torch._inductor.config
import torch._inductor.exc
import torch._inductor.fx_passes.post_grad
import torch.nn.functional as functional

from structdump.bundle import names
from structdump.sources import trace_names

TARGET = Path(__file__).parents[1] / "structdump" / "bundle" / "torch_names.txt"
TORCH = Path(torch.__file__).parent
# Namespaces of torch alone; one that others add ops to is listed op by op below.
NAMESPACES = (
    "aten", "prims", "prim", "inductor", "inductor_prims", "_inductor_test", "higher_order", "rngprims",
    "c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "symm_mem", "fsdp",
    "quantized", "quantized_decomposed", "mkldnn", "mkl", "mkldnn_prepacked", "onednn", "profiler",
    "debugprims", "flex_lib",
)  # fmt: skip
VLLM_OPS = """
    vllm.all_gather vllm.all_reduce vllm.dual_chunk_attention vllm.flash_attn_varlen_func
    vllm.gdn_attention vllm.gdn_attention_core vllm.gemma_rms_norm vllm.inplace_fused_experts
    vllm.kda_attention vllm.linear_attention vllm.mamba_mixer vllm.mamba_mixer2
    vllm.maybe_calc_kv_scales vllm.mla_attention vllm.moe_forward vllm.moe_forward_shared
    vllm.outplace_fused_experts vllm.patched_fused_scaled_matmul_reduce_scatter vllm.plamo2_mamba_mixer
    vllm.reduce_scatter vllm.rotary_embedding vllm.rocm_unquantized_gemm
    vllm.sequence_parallel_chunk_impl vllm.short_conv vllm.transformers_moe_forward
    vllm.unified_attention vllm.unified_attention_with_output vllm.unified_kv_cache_update
    vllm.unified_mla_attention vllm.unified_mla_attention_with_output
    vllm.flashinfer_trtllm_fused_allreduce_norm _C.rms_norm _C.fused_add_rms_norm
    _C.rms_norm_static_fp8_quant _C.fused_add_rms_norm_static_fp8_quant
    _C.rms_norm_dynamic_per_token_quant _C.silu_and_mul _C.silu_and_mul_quant
    _C.silu_and_mul_nvfp4_quant _C.mul_and_silu _C.gelu_and_mul _C.gelu_tanh_and_mul _C.gelu_new
    _C.gelu_fast _C.gelu_quick _C.fatrelu_and_mul _C.rotary_embedding _C.static_scaled_fp8_quant
    _C.dynamic_scaled_fp8_quant _C.dynamic_per_token_scaled_fp8_quant _C.static_scaled_int8_quant
    _C.dynamic_scaled_int8_quant _C.scaled_fp4_quant _C.cutlass_scaled_mm _C.cutlass_scaled_mm_azp
    _C.cutlass_scaled_fp4_mm _C.awq_gemm _C.gptq_gemm _C.gptq_marlin_gemm _C.machete_mm
    _C.fused_qk_norm_rope _C.paged_attention_v1 _C.paged_attention_v2 _C_cache_ops.reshape_and_cache
    _C_cache_ops.reshape_and_cache_flash _C_cache_ops.concat_and_cache_mla _moe_C.topk_softmax
    _moe_C.moe_align_block_size _moe_C.moe_sum
"""
# Higher-order ops are made when their module is imported; those of torch 2.9 to 2.13.
HIGHER_ORDER = """
    associative_scan auto_functionalized auto_functionalized_v2 autograd_function_apply call_torchbind
    cond executorch_call_delegate export_tracepoint flat_apply flex_attention flex_attention_backward
    foreach_map hints_wrapper inductor_compiled_code invoke_leaf_function invoke_quant
    invoke_quant_packed invoke_subgraph map_impl out_dtype print run_and_save_rng_state run_const_graph
    run_with_rng_state scan strict_mode tag_activation_checkpoint torchbind trampoline_autograd_apply
    trampoline_autograd_bwd trampoline_autograd_fwd triton_kernel_wrapper_functional
    triton_kernel_wrapper_mutation while_loop while_loop_stack_output with_effects wrap
    wrap_activation_checkpoint wrap_body wrap_with_autocast wrap_with_set_grad_enabled
    dynamo_bypassing_wrapper local_map_hop control_deps custom_function_call base_hop aoti_call_delegate
    graphsafe_run_with_rng_state
"""
PASSES = """
    decompose_triton_kernel_wrapper_functional apply_partitioned_scatter before_cleanup pattern_matcher
    fx_graph_pass move_constructors_to_gpu remove_redundant_views reinplace_scatters joint_graph_passes
    post_grad_passes pre_grad_passes constant_folding binary_folding fuse_attention pad_mm
    NoOpEliminationPass FixFunctionalizationPass PostCleanupPass UnsafeCloneEliminationPass
    VllmIRInplaceFunctionalizationPass VllmIRLoweringPass RMSNormQuantFusionPass
    ActivationQuantFusionPass AttnFusionPass AttentionFusionPass MLAAttnFusionPass
    SequenceParallelismPass AsyncTPPass AllReduceFusionPass QKNormRoPEFusionPass RopeKVCacheFusionPass
    RocmAiterRMSNormFusionPass RocmAiterSiluMulFp8GroupQuantFusionPass
    RocmAiterTritonAddRMSNormPadFusionPass CollectiveFusionPass FusionPass PostGradPassManager
    ScatterSplitReplacementPass SplitCoalescingPass
"""
# What torch and structdump call things: records, and stages of graphs that no table lists.
RECORDS = """
    captured joint forward backward post_grad pre_grad runtime_asserts tensorify split split_child
    output_code inductor_output_code C++ compile command Inductor IR before after fusion choices
    candidate benchmark unmapped file error kernel_perf full_code decompiled original transformed
    modified torch_config dynamo_config inductor_config functorch_config compiler_config key_lines
    compile_command pre_fusion post_fusion pre_grad_passes joint_graph_passes post_grad_passes pass cpp
    triton extern cutlass pallas ttir ttgir llir ptx cubin amdgcn winner pointwise reduction
    persistent_reduction template user_autotune split_scan foreach cooperative_reduction Grid1D Grid2D
    Grid3D Grid2DWithYZOverflow FixedGrid CooperativeReductionGrid SplitScanGrid
    SequentialComboKernelGrid RoundRobinComboKernelGrid ComboKernelGrid MixOrderReductionGrid
    PrecomputedGrid python text json
"""
# Strings that are the value of an op's argument or of a setting, and that mean nothing else.
STRINGS = """
    cpu cuda xpu mps meta hpu mtia tpu mean sum none None tanh prod amax amin max min floor trunc
    reflect constant replicate circular nearest nearest-exact bilinear bicubic linear trilinear area
    zeros border inductor eager aot_eager default reduce-overhead max-autotune
    max-autotune-no-cudagraphs original_aten torch inductor_node ATEN TRITON CPP CUTLASS CK CKTILE
    NVGEMM DEFAULT EXHAUSTIVE True False true false on off before after ieee tf32 highest high medium
    low full always failure normal shapes halide pallas triton cpp post_grad pre_grad same valid right
    left backward forward ortho fixed cudagraph_trees recompute int8 fp8 bf16 fp16 fp32 float16 float32
    bfloat16 graph aot dynamo flex flex_attention sdpa strict error warn ignore allow inplace replace
    spawn fork subprocess pool 0 1 gnu intel compact disabled static TRUE FALSE INFO WARN WARNING DEBUG
    ERROR
"""
# In these ops a whole number is a dimension, an index or a size.
DIMENSIONS = """
    _log_softmax _log_softmax_backward_data _reshape_alias _safe_softmax _softmax _softmax_backward_data
    _unsafe_view all amax amin any arange argmax argmin argsort as_strided avg_pool2d broadcast_in_dim
    cat chunk concat conv1d conv2d conv3d convolution convolution_backward cummax cummin cumprod cumsum
    device diagonal diff embedding embedding_dense_backward empty expand flatten flip gather getitem glu
    group_norm index_select inductor_lookup_seed inductor_seeds iota layer_norm log_softmax logcumsumexp
    logsumexp max_pool2d max_pool2d_with_indices mean movedim narrow native_group_norm native_layer_norm
    normalize ones permute pixel_shuffle prod rand randn repeat repeat_interleave reshape rms_norm
    scaled_dot_product_attention select select_backward select_scatter size slice slice_backward
    slice_scatter softmax sort split split_with_sizes squeeze squeeze_ stack std std_mean stride sum
    swapaxes swapdims sym_size sym_stride tensor_split tile topk transpose unbind unflatten unfold
    unsqueeze unsqueeze_ var var_mean view zeros
"""
# In these, only what stands in brackets is.
SIZES = """
    as_strided_scatter broadcast_to collapse_view constant_pad_nd empty_permuted empty_strided expand
    full inductor_random new_empty new_empty_strided new_full new_ones new_zeros normal pad randint
    scatter
"""
MORE_VARIABLES = """
    CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_DEVICE_ORDER
    CUDA_DEVICE_MAX_CONNECTIONS CUBLAS_WORKSPACE_CONFIG HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES
    HSA_OVERRIDE_GFX_VERSION OMP_NUM_THREADS MKL_NUM_THREADS KMP_AFFINITY KMP_BLOCKTIME
    GOMP_CPU_AFFINITY NCCL_DEBUG NCCL_P2P_DISABLE NCCL_IB_DISABLE PYTORCH_CUDA_ALLOC_CONF
    PYTORCH_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF PYTHONHASHSEED RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
    TRITON_INTERPRET TRITON_ALWAYS_COMPILE TRITON_PRINT_AUTOTUNING TRITON_CACHE_AUTOTUNING
    TRITON_DISABLE_LINE_INFO VLLM_DISABLE_COMPILE_CACHE VLLM_USE_V1 VLLM_USE_AOT_COMPILE
    VLLM_ATTENTION_BACKEND VLLM_ENABLE_V1_MULTIPROCESSING VLLM_USE_STANDALONE_COMPILE
    VLLM_WORKER_MULTIPROC_METHOD VLLM_LOGGING_LEVEL STRUCTDUMP_LEVEL STRUCTDUMP_PRIVACY STRUCTDUMP_WHEN
    STRUCTDUMP_MAX_BYTES STRUCTDUMP_REDACT STRUCTDUMP_RANKS VLLM_USE_BYTECODE_HOOK
    VLLM_ENABLE_INDUCTOR_MAX_AUTOTUNE VLLM_ENABLE_INDUCTOR_COORDINATE_DESCENT_TUNING
"""


def ops() -> set[str]:
    schemas = torch._C._jit_get_all_schemas()
    found = {s.name.replace("::", ".") for s in schemas if s.name.partition("::")[0] in NAMESPACES}
    registry = torch._ops._higher_order_ops
    found |= {f"higher_order.{name}" for name in (*registry, *HIGHER_ORDER.split())}
    return found | set(VLLM_OPS.split())


def arguments() -> set[str]:
    found = {
        a.name
        for s in torch._C._jit_get_all_schemas()
        if s.name.startswith(("aten::", "prims::", "prim::", "inductor::", "c10d", "_c10d", "higher"))
        for a in s.arguments
    }
    for function in vars(functional).values():
        if inspect.isfunction(function):
            found |= set(inspect.signature(function).parameters)
    return found | {
        "dtype",
        "device",
        "memory_format",
        "layout",
        "pin_memory",
        "requires_grad",
        "type",
        "index",
    }


def passes() -> set[str]:
    text = "\n".join(path.read_text(errors="replace") for path in (TORCH / "_inductor").rglob("*.py"))
    observed = re.findall(r"GraphTransformObserver\(\s*[^,()]+,\s*[\"'](\w+)[\"']", text)
    named = re.findall(r"pass_name ?= ?[\"'](\w+)[\"']", text)
    listed = [
        *torch._inductor.fx_passes.split_cat.PRE_GRAD_PATTERNS,
        *torch._inductor.fx_passes.split_cat.POST_GRAD_PATTERNS,
    ]
    return {*observed, *named, *listed, *PASSES.split()}


def records() -> set[str]:
    tables = (trace_names.RECORDS, trace_names.ARTIFACTS, trace_names.DUMPS)
    found = {word for table in tables for name, shape in table.items() for word in (name, shape.stage)}
    found |= {shape.stage for _, shape in trace_names.PATTERNS}
    found |= {word for name, (stage, *_) in names.GRAPHS.items() for word in (stage, name)}
    text = "\n".join(
        path.read_text(errors="replace") for path in TORCH.rglob("*.py") if "testing" not in path.parts
    )
    found |= set(re.findall(r"\"name\": \"(\w+)\",\s*\"encoding\"", text))
    return found | set(RECORDS.split())


def variables() -> set[str]:
    text = "\n".join(
        path.read_text(errors="replace") for path in TORCH.rglob("*.py") if "testing" not in path.parts
    )
    found = re.findall(r"[\"']((?:TORCH|PYTORCH|INDUCTOR|AOT|TRITON)[A-Z0-9_]{3,})[\"']", text)
    return {*found, *MORE_VARIABLES.split()}


def configs() -> set[str]:
    modules = (torch._dynamo.config, torch._inductor.config, torch._functorch.config)
    return {f"{m.__name__}.{key}" for m in modules for key in m._config}


def breaks() -> list[str]:
    registry = json.loads((TORCH / "_dynamo" / "graph_break_registry.json").read_text())
    kinds = {entry["Gb_type"] for entries in registry.values() for entry in entries}
    return sorted(kind for kind in kinds if "{" not in kind and "\n" not in kind)


def exceptions() -> set[str]:
    modules = (torch._dynamo.exc, torch._inductor.exc)
    return {
        name
        for m in modules
        for name, value in vars(m).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }


def metrics() -> set[str]:
    return {field.name for field in dataclasses.fields(torch._dynamo.utils.CompilationMetrics)}


def section(name: str, words: Iterable[str]) -> str:
    text = " ".join(sorted(word for word in set(words) if word.isascii() and " " not in word))
    return f"[{name}]\n" + textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False) + "\n"


def main() -> None:
    two_words = sorted(record for record in records() if " " in record)
    torch_ = [name for name in dir(torch) if not name.startswith("__")]
    tensor = [name for name in dir(torch.Tensor) if not name.startswith("__")]
    tensor += ["__getitem__", "__setitem__"]
    version = torch.__version__.partition("+")[0]
    text = f"# Names that torch {version} uses; written by benchmarks/torch_names.py.\n"
    text += "".join(
        section(name, words)
        for name, words in {
            "ops": ops(), "torch": torch_, "tensor": tensor, "arguments": arguments(), "passes": passes(),
            "records": records(), "metrics": metrics(), "configs": configs(), "variables": variables(),
            "exceptions": exceptions(), "strings": STRINGS.split(),
            "dimensions": DIMENSIONS.split(), "sizes": SIZES.split(),
        }.items()
    )  # fmt: skip
    # One name a line, since these hold spaces.
    text += "[breaks]\n" + "\n".join(breaks()) + "\n[named records]\n" + "\n".join(two_words) + "\n"
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
