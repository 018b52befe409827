"""Ways to compile, each a function of this file; names on the command line choose among them."""

import sys

import torch
from torch import nn


def breaks_and_recompiles():
    @torch.compile
    def step(x, flag):
        y = x.sin() + (1 if flag else 2)
        torch._dynamo.graph_break("in the middle")
        return y.relu()

    for flag in (True, False):
        step(torch.ones(5), flag)


def two_models_backwards_interleaved():
    def model(n):
        return torch.compile(nn.Sequential(nn.Linear(4, n), nn.Tanh()))

    first, second = model(3), model(5)
    a, b = first(torch.ones(2, 4)), second(torch.ones(2, 4))
    a.sum().backward()
    b.sum().backward()


def dynamic_shapes():
    f = torch.compile(lambda x: (x * 2).sum(0), dynamic=True)
    for n in (3, 6):
        f(torch.ones(n, 4))


def compiled_autograd():
    net = nn.Linear(4, 1)
    with torch._dynamo.compiled_autograd._enable(torch.compile):
        net(torch.ones(2, 4)).sum().backward()


def max_autotune():
    f = torch.compile(
        lambda a, b: a @ b + 1, options={"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN"}
    )
    with torch.no_grad():
        f(torch.ones(32, 32), torch.ones(32, 64))


def freezing():
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)).eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        torch.compile(net)(torch.ones(1, 2, 8, 8))


def main():
    torch.manual_seed(0)
    for name in sys.argv[1:]:
        globals()[name]()


if __name__ == "__main__":
    main()
