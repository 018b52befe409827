"""Bundles for reports: from real logs, and one made up that has everything a report can show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sample_bundles import write_small
from trace_logs import Read, logs

from structdump.bundle import codec
from structdump.bundle.graphs import measure_text
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.reader import load
from structdump.sources.event import Event
from structdump.sources.kernel_events import with_kernels
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

SOURCE = "        # File: /home/alex/train.py:{line} in forward, code: {code}\n"
GRAPH = (
    "class GraphModule(torch.nn.Module):\n"
    '    def forward(self, arg0_1: "f32[8, 8]", arg1_1: "f32[8, 8]"):\n'
    + SOURCE.format(line=12, code="h = x @ w")
    + '        mm: "f32[8, 8]" = torch.ops.aten.mm.default(arg0_1, arg1_1);  arg0_1 = arg1_1 = None\n\n'
    + SOURCE.format(line=13, code="return h.relu()")
)
RELU = '        relu: "f32[8, 8]" = torch.ops.aten.relu.default(mm);  mm = None\n        return (relu,)\n'
CLAMP = '        clamp: "f32[8, 8]" = torch.ops.aten.clamp_min.default(mm, 0)\n        return (clamp,)\n'
KERNEL = """@triton.jit
def triton_poi_fused_relu_0(in_ptr0, xnumel, XBLOCK: tl.constexpr):
    tmp0 = tl.load(in_ptr0)
"""
CODE = f"""async_compile = AsyncCompile()
triton_poi_fused_relu_0 = async_compile.triton('triton_poi_fused_relu_0', '''
{KERNEL}''', device_str='cuda')

def call(args):
    extern_kernels.mm(arg0_1, arg1_1, out=buf0)
    triton_poi_fused_relu_0.run(buf0, 64)
    return (buf0,)
"""
FRAGMENT = '%relu : Tensor "f32[8, 8]" = call_function[target=torch.ops.aten.relu.default](args = (%mm,))'


def from_log(case: str, directory: Path) -> LoadedBundle:
    """A bundle of one of the real logs, at level full."""
    log = directory / f"dedicated_log_torch_trace_{case}.log"
    log.write_bytes(logs()[case])
    result = Read()
    read_log(log, TraceMapper(with_kernels(result.record), result.book))
    compiles = [c.model_dump() for c in result.book.records()]
    return bundle([_artifact(e) for e in result.events], compiles, directory, program=case)


def bundle(
    artifacts: list[dict[str, Any]],
    compiles: list[dict[str, Any]],
    directory: Path,
    *,
    program: str = "train",
    **state: Any,
) -> LoadedBundle:
    """A bundle of these artifacts, each with its `text` or none."""
    records: list[dict[str, Any]] = [
        {"t": "head", "run": {"id": "r", "program": program, "started": "2026-12-01T06:22:46+00:00"}}
        | {"level": "full", "config": {}}
    ]
    done = set()
    for seq, given in enumerate(artifacts):
        artifact = {"seq": seq, "language": "python", **given}
        text = artifact.pop("text", None)
        if text is not None:
            artifact |= {"digest": codec.digest(text), "bytes": len(text.encode("utf-8", "replace"))}
            if artifact["kind"] in ("graph", "pass"):
                artifact["nodes"], artifact["ops"] = measure_text(text)
            if artifact["digest"] not in done:
                done.add(artifact["digest"])
                records.append({"t": "text", "digest": artifact["digest"], "text": text})
        records.append({"t": "artifact", "artifact": artifact})
    environment = {"versions": {"torch": "2.13.0", "triton": "3.7.0"}, "devices": [{"name": "NVIDIA H200"}]}
    known = {"environment": environment, "completeness": {"verdict": "cold"}} | state
    records.append({"t": "state", "compiles": compiles, **known})
    directory.mkdir(parents=True, exist_ok=True)
    return load(write_small(directory, records))


def everything(directory: Path, *, relu: str = RELU, xblock: int = 64) -> LoadedBundle:
    """Two compiles, one failed; stages, passes, a kernel, its config, a tuned operation, a timeline."""
    return bundle(
        stages(relu, xblock), COMPILES, directory, hook_errors=[{"hook": "guards", "error": "boom"}]
    )


def stages(relu: str, xblock: int) -> list[dict[str, Any]]:
    own = {"compile_id": "0/0"}
    inference = {**own, "direction": "inference"}
    config = {"XBLOCK": xblock, "num_warps": 4, "time_taken_ms": 12, "found_by_coordesc": False}
    kernel = {"name": "triton_poi_fused_relu_0", "backend": "triton", "ops": ["aten.relu"], "nodes": ["h"]}
    kernel |= {"fragment": FRAGMENT, "heuristic": "pointwise", "loads": 1, "stores": 1, "calls": 3}
    mm = {"name": "extern_kernels.mm", "backend": "extern", "ops": ["aten.mm"], "calls": 1}
    choices = [
        {"name": "triton_mm_4", "seconds": 12.5e-6, "config": {"BLOCK_M": 64}},
        {"name": "extern_mm", "seconds": 25e-6},
        {"name": "triton_mm_2", "seconds": 50e-6, "config": {"BLOCK_M": 16}},
    ]
    tuned = {"operation": "mm", "shapes": ["8x8", "8x8"], "winner": "triton_mm_4", "choices": choices}
    quiet = [
        {"kind": "pass", "name": f"quiet_pass_{n}", "phase": "after", "changed": False, "text": GRAPH + RELU}
        for n in range(4)
    ]
    captured = GRAPH.replace("mm:", "h:").replace("(mm)", "(h)") + RELU.replace("(mm)", "(h)")
    return [
        {"kind": "graph", "stage": "captured", "name": "dynamo_output_graph", **own, "text": captured},
        {
            "kind": "graph",
            "stage": "forward",
            "name": "aot_inference_graph",
            **inference,
            "text": GRAPH + RELU,
        },
        *[{**a, **inference} for a in quiet],
        {
            "kind": "pass",
            "name": "clamping",
            "phase": "after",
            "changed": True,
            **inference,
            "text": GRAPH + CLAMP,
        },
        {"kind": "graph", "stage": "post_grad", "name": "before_post_grad_graph", "phase": "before"}
        | {**inference, "text": GRAPH + CLAMP},
        {"kind": "graph", "stage": "post_grad", "name": "inductor_post_grad_graph", "phase": "after"}
        | {**inference, "changed": True, "text": GRAPH + relu},
        {
            "kind": "output_code",
            "stage": "output_code",
            "name": "inductor_output_code",
            **inference,
            "text": CODE,
        },
        {"kind": "kernel", "name": kernel["name"], **inference, "kernel": kernel, "text": KERNEL},
        {"kind": "kernel", "name": mm["name"], **inference, "kernel": mm},
        {
            "kind": "best_config",
            "name": kernel["name"],
            **inference,
            "kernel": kernel | {"best_config": config},
        },
        {"kind": "autotune", "name": "mm", **inference, "autotune": tuned},
        {"kind": "guards", "name": "guards", **own, "omitted": {"reason": "level", "bytes": 900}},
        *[_event(*event) for event in EVENTS],
        {
            "kind": "graph",
            "stage": "captured",
            "name": "dynamo_output_graph",
            "compile_id": "1/0",
            "text": captured,
        },
        {"kind": "source", "name": "full_code", "text": "def full_code():\n    return 1\n"},
    ]


EVENTS = [
    ("dynamo", "B", 0), ("inductor", "B", 1_000_000), ("code_gen", "B", 1_500_000),
    ("code_gen", "E", 2_500_000), ("inductor", "E", 3_000_000), ("dynamo", "E", 4_000_000),
]  # fmt: skip
COMPILES: list[dict[str, Any]] = [
    {
        "id": "0/0",
        "function": {"name": "forward", "file": "/home/alex/train.py", "line": 10},
        "status": "ok",
        "seconds": 4.0,
        "guards": 7,
        "graph_breaks": [
            {
                "reason": "a call to print\nin full",
                "resumed_by": "1/0",
                "stack": [{"file": "/home/alex/train.py", "line": 14, "name": "forward", "code": "print(h)"}],
            }
        ],
    },
    {
        "id": "1/0",
        "function": {"name": "resume", "file": "/home/alex/train.py", "line": 14},
        "status": "failed",
        "seconds": 0.5,
        "phases": {"dynamo": 0.5, "inductor": 0.25},
        "error": {
            "type": "LoweringException",
            "message": "no lowering for twice",
            "traceback": "Traceback (most recent call last):\n  …\nLoweringException: no lowering for twice",
        },
    },
]


def _event(name: str, phase: str, micros: int) -> dict[str, Any]:
    event = {"name": name, "ph": phase, "ts": 1e15 + micros, "pid": 0, "tid": 0}
    text = json.dumps(event)
    return {"kind": "trace", "name": "chromium_event", "compile_id": "0/0", "language": "json", "text": text}


def _artifact(event: Event) -> dict[str, Any]:
    plain = ["kind", "name", "stage", "phase", "compile_id", "graph_id", "direction", "language", "changed"]
    out = {name: getattr(event, name) for name in [*plain, "data", "inferred", "text"]}
    for name in ("subgraph", "kernel", "autotune"):
        value = getattr(event, name)
        out[name] = value and value.model_dump()
    return out
