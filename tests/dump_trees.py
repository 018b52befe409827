"""Dump directories that tests build: file names as people have them, with plausible texts."""

from __future__ import annotations

import json
from pathlib import Path

TUNED = (2, 3, 6, 8, 9, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 57)
WRAPPERS = {0: range(2, 10), 1: range(11, 30), 10: range(31, 58)}
CANDIDATES = (30, 44, 45)


def graph(*ops: str) -> str:
    """Return a printed FX graph that calls `ops` one after the other."""
    lines = [f'        v{n}: "f32[4]" = torch.ops.aten.{op}.default(x);' for n, op in enumerate(ops)]
    return "\n".join(
        [
            "class GraphModule(torch.nn.Module):",
            '    def forward(self, x: "f32[4]"):',
            *lines,
            f"        return (v{len(ops) - 1},)",
            "",
        ]
    )


def triton_kernel(number: int, name: str | None = None) -> str:
    """Return the text of a pointwise Triton kernel as Inductor writes it."""
    name = name or f"triton_poi_fused_add_{number}"
    return f"""
import triton
import triton.language as tl

@triton_heuristics.pointwise(
    size_hints={{'x': {2 ** (number % 9 + 4)}}},
    filename=__file__,
    triton_meta={{'signature': {{'in_ptr0': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}}}},
    inductor_meta={{'grid_type': 'Grid1D', 'kernel_name': '{name}', 'num_load': 1, 'num_store': 1}},
    min_elem_per_thread=0
)
@triton.jit
def {name}(in_ptr0, xnumel, XBLOCK : tl.constexpr):
    x{number} = tl.program_id(0) * XBLOCK
"""


def candidate(number: int) -> str:
    """Return a template that is being tuned: it bears a placeholder for a name."""
    return triton_kernel(number, "triton_mm").replace("'triton_mm'", "'Placeholder.DESCRIPTIVE_NAME'")


def output_code(kernels: list[int]) -> str:
    """Return an output code that defines and calls `kernels`, and calls mm twice."""
    defined = "\n".join(
        f"# kernel path: /tmp/torchinductor_alex/ab/cab{n}.py\n"
        f"# Topologically Sorted Source Nodes: [y], Original ATen: [aten.add]\n"
        f"triton_poi_fused_add_{n} = async_compile.triton('triton_poi_fused_add_{n}', "
        f"'''{triton_kernel(n)}''', device_str='cuda')\n\n"
        for n in kernels
    )
    calls = "\n".join(f"        triton_poi_fused_add_{n}.run(arg0_1, 16, stream=stream0)" for n in kernels)
    return f"""# AOT ID: ['0_inference']
async_compile = AsyncCompile()

{defined}
async_compile.wait(globals())
del async_compile

class Runner:
    def call(self, args):
{calls}
        extern_kernels.mm(a, b, out=c)
        extern_kernels.mm(c, b, out=d)
        return (d, )
"""


def best_config(number: int) -> str:
    """Return what tuning wrote for one kernel."""
    return json.dumps(
        {
            "XBLOCK": 2 ** (number % 5 + 4),
            "num_warps": 4,
            "num_stages": 1,
            "configs_hash": f"{number:064x}",
            "found_by_coordesc": number % 2 == 0,
            "time_taken_ms": number,
        }
    )


def ninety_three(root: Path) -> Path:
    """Write the 93 files of one Llama compile, as depyf named them with torch of 2024."""
    root.mkdir(parents=True)
    texts = {
        "before_split.0": graph("mm", "relu"),
        "after_split.0": graph("submod_0", "submod_1"),
        "pre_split_module.0": graph("mm", "relu"),
        "post_split_module.0": graph("submod_0", "submod_1"),
        "Captured_Graph.0": graph("mm", "relu"),
        "pre_insert_deferred_runtime_asserts___compiled_fn_1.0": graph("mm", "relu"),
        **{f"Forward_graph.{n}": graph("mm", f"op{n}") for n in range(6)},
        **{f"AFTER_POST_GRAD.{n}": graph("mm", f"op{n}", "add") for n in range(3)},
    }
    for number in range(58):
        if number in WRAPPERS:
            text = output_code([n for n in WRAPPERS[number] if n not in CANDIDATES])
        else:
            text = candidate(number) if number in CANDIDATES else triton_kernel(number)
        texts[f"kernel_{number}"] = text
    for name, text in texts.items():
        (root / f"__compiled_fn_1.{name}.py").write_text(text)
    for number in TUNED:
        (root / f"__compiled_fn_1.kernel_{number}.best_config").write_text(best_config(number))
    (root / "full_code_for_forward_0.py").write_text("def forward(self, x):\n    return __compiled_fn_1(x)\n")
    (root / "__transformed_code_0_for_forward.py").write_text(
        "def forward(x):\n    return __compiled_fn_1(x)\n"
    )
    return root
