"""What each record of torch's structured trace is, as one table.

The names are those of `torch._logging.trace_structured` calls in torch 2.9 to 2.13 and in vLLM;
a name that is not listed is kept as a plain event, so that a newer torch loses nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from structdump.bundle.model import Direction, Kind, Phase

NAMED = frozenset({"artifact", "graph_dump", "link", "dump_file", "optimize_ddp_split_child"})
"""Records whose own name says little: the name that counts stands in their metadata."""

ATTACHED = 99


class Shape(NamedTuple):
    """What a record becomes. `fact` names the CompileBook reading that its payload or metadata feeds.

    `step` orders Inductor's records within one Inductor compile: a record whose step is not beyond
    that of the record before it begins the next compile; ATTACHED records never do.
    """

    kind: Kind
    stage: str
    phase: Phase | None = None
    direction: Direction | None = None
    language: str = "python"
    fact: str | None = None
    step: int | None = None


def _graph(stage: str, phase: Phase | None = None, direction: Direction | None = None) -> Shape:
    return Shape("graph", stage, phase, direction)


def _note(stage: str, language: str = "text") -> Shape:
    return Shape("event", stage, language=language)


def _bulk(stage: str) -> Shape:
    return Shape("trace", stage, language="json")


CACHES = {
    "fx_graph_cache": "fx_graph",
    "fx_graph_bundled_cache": "fx_graph",
    "aotautograd_cache": "aot_autograd",
}

RECORDS: dict[str, Shape] = {
    # Dynamo
    "dynamo_start": Shape("event", "start", language="json", fact="start"),
    "dynamo_output_graph": _graph("captured"),
    "dynamo_guards": Shape("guards", "guards", language="json"),
    "dynamo_cpp_guards_str": Shape("guards", "cpp_guards"),
    "compiled_autograd_graph": Shape("graph", "compiled_autograd", "after", fact="finished"),
    "optimize_ddp_split_graph": _graph("split"),
    "optimize_ddp_split_child": Shape("graph", "split_child", fact="listed_piece"),
    "dump_file": Shape("source", "generated"),
    # AOTAutograd
    "aot_joint_graph": _graph("joint", None, "joint"),
    "aot_forward_graph": _graph("forward", None, "forward"),
    "aot_backward_graph": _graph("backward", None, "backward"),
    "aot_inference_graph": _graph("forward", None, "inference"),
    # Inductor; on a cache hit the post-grad graph is a record of its own, on a miss an artifact
    "inductor_post_grad_graph": Shape("graph", "post_grad", "after", step=2),
    "inductor_output_code": Shape("output_code", "output_code", fact="output_code", step=4),
    "inductor_input_graph": _graph("inductor_input"),
    # export
    "export": _note("export"),
    "exported_program": Shape("graph", "exported", fact="finished"),
    "missing_fake_kernel": _note("fake_kernel", "json"),
    "mismatched_fake_kernel": _note("fake_kernel", "json"),
    # symbolic shapes
    "create_symbol": Shape("trace", "symbol", language="json", fact="symbol"),
    "create_unbacked_symbol": Shape("trace", "symbol", language="json", fact="symbol"),
    "symbolic_shape_specialization": Shape("event", "specialization", language="json", fact="symbol"),
    "propagate_real_tensors": _note("data_dependent", "json"),
    "propagate_real_tensors_provenance": _note("data_dependent", "json"),
    "guard_on_data_dependent_error": _note("data_dependent", "json"),
    "guard_added": _bulk("guard_added"),
    "guard_added_fast": _bulk("guard_added"),
    "expression_created": _bulk("expression"),
    "describe_storage": _bulk("describe_storage"),
    "describe_tensor": _bulk("describe_tensor"),
    "describe_source": _bulk("describe_source"),
    # telemetry
    "compilation_metrics": Shape("metrics", "compile", language="json", fact="metrics"),
    "bwd_compilation_metrics": Shape("metrics", "backward", language="json", fact="metrics"),
    "compilation_metrics_runtime": Shape("metrics", "runtime", language="json", fact="metrics"),
    "bwd_compilation_metrics_runtime": Shape("metrics", "runtime", language="json", fact="metrics"),
    "aot_autograd_backward_compilation_metrics": Shape(
        "metrics", "backward", language="json", fact="metrics"
    ),
    "chromium_event": _bulk("chromium"),
}

ARTIFACTS: dict[str, Shape] = {
    # Dynamo
    "dynamo_error": Shape("event", "error", language="text", fact="error"),
    "dynamo_graph_break_reason": Shape("event", "graph_break", language="text", fact="graph_break"),
    "recompile_reasons": Shape("event", "recompile", language="json", fact="recompile"),
    "dynamo_side_effects": _note("side_effects"),
    "compiled_autograd_graph_pre_reordering": _graph("compiled_autograd", "before"),
    "compiled_autograd_compile_reasons": _note("compiled_autograd_reasons", "json"),
    "torch_version": Shape("event", "torch_version", language="json", fact="torch_version"),
    # AOTAutograd
    "torch._functorch.config": Shape("event", "functorch_config", language="json"),
    "aot_inference_graph_after_hop_passes": _graph("hop_passes", "after", "inference"),
    "aot_forward_graph_fw_metadata": _note("aot_metadata"),
    "aot_forward_graph_fw_subclass_metadata": _note("aot_metadata"),
    "aot_saved_tensors_hooks_graphs": _graph("saved_tensors_hooks"),
    "aot_joint_graph_sync_decision_cross_ranks": _note("partitioner"),
    "min_cut_information": _note("partitioner", "json"),
    "min_cut_failed_fx_graph": Shape("event", "partitioner", language="python"),
    "min_cut_failed_edge_list": _note("partitioner"),
    "min_cut_failed_svg": Shape("event", "partitioner", language="xml"),
    "eager_compile_backwards_failure": Shape("event", "error"),
    "make_fx_fail_partial": _graph("make_fx_partial"),
    "fx_interpreter_error": Shape("event", "error", language="text"),
    "invoke_subgraph_backward_duplicate": _note("invoke_subgraph"),
    # Inductor
    "before_pre_grad_graph": _graph("pre_grad", "before"),
    "after_pre_grad_graph": _graph("pre_grad", "after"),
    "before_joint_graph": _graph("joint_passes", "before"),
    "after_joint_graph": _graph("joint_passes", "after"),
    "before_post_grad_graph": Shape("graph", "post_grad", "before", step=1),
    "inductor_post_grad_graph": Shape("graph", "post_grad", "after", step=2),
    "after_post_grad_graph": Shape("graph", "post_grad", "after", step=2),  # its name in torch 2.9
    "fx_graph_runnable": Shape("repro", "fx_graph_runnable", step=0),
    "minifier": Shape("repro", "minifier"),
    "inductor_autotune_at_compile_time_code": Shape("autotune", "autotune_code", step=3),
    "triton_kernel_info": Shape("metrics", "triton_kernels", language="json", step=ATTACHED),
    "inductor_provenance_tracking_node_mappings": Shape(
        "event", "provenance", language="json", step=ATTACHED
    ),
    "inductor_provenance_tracking_kernel_stack_traces": Shape(
        "event", "provenance", language="json", step=ATTACHED
    ),
    "inductor_collective_schedule": _note("collectives", "json"),
    "inductor_runtime_and_tensor_meta": _note("tensor_meta", "json"),
    "inductor_spmd_graph_mismatch": _note("spmd"),
    "graph_execution": _note("graph_execution", "json"),
    "scheduler_nodes_before_comm_overlap": Shape("ir", "scheduler"),
    "overlap_scheduling_graph_before": _graph("overlap_scheduling", "before"),
    "overlap_scheduling_graph_after": _graph("overlap_scheduling", "after"),
    "pre_decomp_comms": _graph("decompose_collectives", "before"),
    "post_decomp_comms": _graph("decompose_collectives", "after"),
    # vLLM
    "vllm_compilation_config": Shape("event", "framework_config", language="json", fact="framework"),
    "vllm_piecewise_compile_start": Shape("event", "piece_start", language="json", fact="piece"),
    "vllm_execution_code": Shape("source", "execution_code"),
}

DUMPS: dict[str, Shape] = {
    "vllm_piecewise_split_graph": Shape("graph", "split"),
    "inductor_aot_wrapper_code": Shape("output_code", "aot_wrapper", language="cpp"),
    "inductor_aot_kernel_code": Shape("output_code", "aot_kernels", language="cpp"),
    "inductor_aot_header_code": Shape("output_code", "aot_header", language="cpp"),
}

PATTERNS: tuple[tuple[re.Pattern[str], Shape], ...] = tuple(
    (re.compile(pattern), shape)
    for pattern, shape in (
        (
            r"fx_graph_(bundled_)?cache_\w+",
            Shape("cache", "fx_graph", language="json", fact="cache", step=ATTACHED),
        ),
        (r"aotautograd_cache_\w+", Shape("cache", "aot_autograd", language="json", fact="cache")),
        (r"(precompile|dynamo)_cache_\w+", Shape("cache", "precompile", language="json")),
        (r"(get|put|add)_\w*code_state", Shape("event", "pgo", language="text")),
        (
            r"compiled_fn(_wrapper)?|compiled_function_\w+|backward_(pro|epi)logue|mutation_epilogue"
            r"|runtime_wrapper_orchestration|(\w+_)?(alias|subclass|rng|tokens|dedup|base|assert)_(un)?wrap(per)?",
            Shape("source", "runtime_wrapper"),
        ),
        (r".*_ORIGINAL_BYTECODE", Shape("bytecode", "original", language="text")),
        (r".*_MODIFIED_BYTECODE", Shape("bytecode", "modified", language="text")),
        (r"before_(activation_quantization)_\w+", _graph("activation_quantization", "before")),
        (r"after_(activation_quantization)_\w+", _graph("activation_quantization", "after")),
        (r".*_pre_grad", Shape("pass", "pre_grad")),
        (r".*_post_grad", Shape("pass", "post_grad")),
        (r"vllm_submod_.*", Shape("graph", "split_child")),
        (r"(fx_)?bucketing_passes_.*|pre_bucketing_.*|.*_overlap_bucketing", _note("bucketing", "json")),
        (r".*minifier.*", Shape("repro", "minifier")),
        (r"(pre|post)_fusion.*|.*ir_(pre|post)_fusion.*", Shape("ir", "inductor_ir")),
    )
)

_LANGUAGES = {"json": "json", "python": "python", "cpp": "cpp"}


@lru_cache(maxsize=4096)
def shape(record: str, subject: str | None = None, encoding: str | None = None) -> Shape:
    """Return what the trace record `record` is; `subject` is the name inside its metadata.

    `encoding` is what torch says of an artifact's payload ("json" or "string").

    Example::

        >>> shape("artifact", "before_post_grad_graph").phase
        'before'
        >>> shape("artifact", "something_new", "json")
        Shape(kind='event', stage='something_new', phase=None, direction=None, language='json', \
fact=None, step=None)
    """
    if record not in NAMED or subject is None:
        return RECORDS.get(record) or _unknown(record, encoding)
    table = DUMPS if record == "graph_dump" else ARTIFACTS
    found = RECORDS.get(record) if record in RECORDS else table.get(subject)
    if found is None:
        found = next((s for pattern, s in PATTERNS if pattern.fullmatch(subject)), None)
    if found is None and record == "graph_dump":
        return Shape("graph", subject)
    return found or _unknown(subject if record == "artifact" else record, encoding)


def _unknown(name: str, encoding: str | None) -> Shape:
    return Shape("event", name, language=_LANGUAGES.get(encoding or "", "text"))
