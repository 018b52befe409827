"""A function whose compile raises, inside Inductor."""

import torch
from torch._inductor.lowering import register_lowering

library = torch.library.Library("workload", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
library.impl("twice", lambda x: torch.empty_like(x), "Meta")


@register_lowering(torch.ops.workload.twice.default)
def lower(x):
    raise ValueError("no lowering for twice today")


@torch.compile
def scaled(x):
    return torch.ops.workload.twice(x.sin()) + 1


def main() -> None:
    scaled(torch.randn(8))


if __name__ == "__main__":
    main()
