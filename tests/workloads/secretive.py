"""A program in which nearly everything is private: what is planted is found by its name, `canary…`."""

from __future__ import annotations

import os
import sys
import warnings

import torch
import torch._dynamo.config
import torch._inductor.config

BACKEND = os.environ.get("WORKLOAD_BACKEND", "aot_eager")
canary01global = 0.4242424201  # canary02comment
torch._dynamo.config.debug_dir_root = "/srv/canary03config"
torch._inductor.config.profile_bandwidth_regex = "canary04regex"
if BACKEND != "inductor":  # which looks the options up
    torch._inductor.config.post_grad_fusion_options = {"canary05option": {"canary06inner": "canary07value"}}
torch._dynamo.config.dead_code_elimination = True


@torch.library.custom_op("canary08lib::canary09op", mutates_args=())
def canary10python(x: torch.Tensor, canary11argument: float) -> torch.Tensor:
    return x * canary11argument


@canary10python.register_fake
def canary12fake(x, canary11argument):
    return torch.empty_like(x)


def canary44setup(ctx, inputs, output):
    ctx.canary45saved = inputs[1]


canary10python.register_autograd(
    lambda ctx, gradient: (gradient * ctx.canary45saved, None), setup_context=canary44setup
)


class Canary13Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.canary14weight = torch.nn.Parameter(torch.ones(16))
        self.register_buffer("canary15buffer", torch.full((16,), 0.4242424202))

    def forward(self, canary16input):
        canary17local = canary16input.square().mean(-1, keepdim=True)
        return (
            canary16input * torch.rsqrt(canary17local + 0.4242424203) * self.canary14weight
            + self.canary15buffer
        )


class Canary18Router(torch.nn.Module):
    canary19attribute = 424242404

    def __init__(self) -> None:
        super().__init__()
        self.canary20experts = torch.nn.ModuleDict({"canary21key": torch.nn.Linear(16, 16)})
        self.canary22norm = Canary13Norm()

    def canary23method(self, x, canary24mode="canary25default"):
        canary26hidden = self.canary20experts["canary21key"](self.canary22norm(x))
        if canary24mode == "canary25default":
            canary26hidden = torch.ops.canary08lib.canary09op(canary26hidden, 0.4242424205)
        return canary26hidden + 424242406

    def forward(self, x):
        canary27scores = torch.softmax(self.canary23method(x) * canary01global, dim=-1)
        print("canary28printed", file=sys.stderr)  # canary29comment
        canary30rest = canary27scores.relu() - 0.4242424207
        return canary30rest.view(-1)


def canary31caller(model, x):
    return torch.compile(model, backend=BACKEND)(x)


def canary32dynamic(x, canary33list):
    return x.sin() * len(canary33list) if canary33list[0] == "canary34item" else x.cos()


class Canary35Error(ValueError):
    """Raised inside a compile."""


def canary36backend(gm, example_inputs):
    canary37secret = "canary38message"
    raise Canary35Error(f"{canary37secret} at /srv/canary39path/file.py with 424242408")


@torch.compile(backend=canary36backend)
def canary40failing(canary41x):
    return torch.nn.functional.gelu(canary41x) * 0.4242424209


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = Canary18Router()
    for rows in (4, 6):
        canary31caller(model, torch.randn(rows, 16)).sum().backward()
    compiled = torch.compile(canary32dynamic, backend="eager")
    compiled(torch.randn(3), ["canary34item"])
    compiled(torch.randn(3), ["canary42other", "canary43more"])
    try:
        canary40failing(torch.randn(8))
    except Exception as error:  # what it is, is seen in the bundle
        print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
