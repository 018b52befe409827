"""A model that vLLM's own backend compiles on the CPU, as vLLM's workers compile theirs.

Needs `VLLM_TARGET_DEVICE=cpu` in its environment.
"""

from __future__ import annotations

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.config import CompilationConfig, CompilationMode, CUDAGraphMode, VllmConfig, set_current_vllm_config
from vllm.ir import ops
from vllm.plugins import load_general_plugins

# What vLLM's passes name, and its build without kernels has not.
KERNELS = torch.library.Library("_C", "FRAGMENT")
KERNELS.define(
    "rotary_embedding(Tensor positions, Tensor! query, Tensor!? key, int head_size, "
    "Tensor cos_sin_cache, bool is_neox) -> ()"
)
TOY = torch.library.Library("toy", "FRAGMENT")
TOY.define("attention(Tensor q, Tensor k, Tensor v) -> Tensor")
TOY.impl("attention", lambda q, k, v: torch.softmax(q @ k.T, -1) @ v, "CPU")
TOY.impl("attention", lambda q, *_: torch.empty_like(q), "Meta")


@support_torch_compile(dynamic_arg_dims={"x": 0})
class Toy(nn.Module):
    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 96, bias=False)
        self.weight = nn.Parameter(torch.ones(32))
        self.out = nn.Linear(32, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        x = x + self.out(torch.ops.toy.attention(q, k, v)).relu()
        return ops.rms_norm(x, self.weight, 1e-6)


def main() -> None:
    load_general_plugins()
    load_general_plugins()  # as each of vLLM's processes may
    settings = CompilationConfig(
        splitting_ops=["toy::attention"],
        custom_ops=["none"],
        compile_sizes=[4],
        cudagraph_mode=CUDAGraphMode.NONE,
    )
    config = VllmConfig(compilation_config=settings)
    config.compilation_config.mode = CompilationMode.VLLM_COMPILE
    passes = config.compilation_config.pass_config
    for name in vars(passes):
        if name.startswith(("fuse_", "enable_")):
            setattr(passes, name, False)
    torch.manual_seed(0)
    with set_current_vllm_config(config), torch.no_grad():
        model = Toy(vllm_config=config)
        print(float(model(torch.ones(8, 32)).sum()), float(model(torch.ones(5, 32)).sum()))


main()
