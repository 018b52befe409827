"""Many ways to compile; prints what the program can see of each, to compare runs with and without capture."""

import contextlib
import io
import json
import sys
import threading
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
seen = {}


def case(function):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    try:
        result = function()
    except Exception as error:
        result = [type(error).__name__, str(error)[:2000]]
    counters = {
        k: dict(v) for k, v in torch._dynamo.utils.counters.items() if k in ("frames", "graph_break", "stats")
    }
    seen[function.__name__] = {"result": repr(result), "counters": counters}


def numbers(tensor):
    return [round(v, 6) for v in tensor.detach().double().flatten().tolist()[:8]]


@case
def list_mutation():
    @torch.compile(backend="eager")
    def f(items, x):
        a = items[0]
        items[0] = x + 1
        return a, items[0]

    items = [torch.zeros(2)]
    a, b = f(items, torch.ones(2))
    return numbers(a), numbers(b), numbers(items[0])


@case
def exception_inside_a_backend():
    def backend(gm, inputs):
        raise RuntimeError("this backend always fails")

    return torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))


@case
def dynamic_shapes():
    f = torch.compile(lambda x: (x * 2).sum(0), dynamic=True)
    return [numbers(f(torch.ones(n, 3))) for n in (2, 5, 9)]


@case
def recompiles_and_breaks():
    @torch.compile(backend="aot_eager")
    def f(x, flag):
        y = x + (1 if flag else 2)
        print("", end="")
        return y.relu()

    return [numbers(f(torch.ones(2), flag)) for flag in (True, False, True)]


@case
def fullgraph_that_breaks():
    return torch.compile(lambda x: (print(""), x)[1], backend="eager", fullgraph=True)(torch.ones(2))


@case
def training():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    loss = torch.compile(net)(torch.randn(3, 4)).sum()
    loss.backward()
    return numbers(loss), [numbers(p.grad) for p in net.parameters()]


@case
def compiled_autograd():
    net = nn.Linear(4, 1)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
        net(torch.ones(2, 4)).sum().backward()
    return numbers(net.weight.grad)


@case
def exported():
    program = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    return numbers(program.module()(torch.ones(1, 2))), [n.name for n in program.graph.nodes]


@case
def two_threads():
    results = {}

    def work(name, scale):
        results[name] = numbers(torch.compile(lambda x: x * scale + 1, backend="aot_eager")(torch.ones(2)))

    threads = [threading.Thread(target=work, args=(n, n + 1.5)) for n in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(results.items())


@case
def suppressed_errors():
    def backend(gm, inputs):
        raise RuntimeError("this backend always fails")

    with torch._dynamo.config.patch(suppress_errors=True), contextlib.redirect_stderr(io.StringIO()):
        return numbers(torch.compile(lambda x: x + 3, backend=backend)(torch.ones(2)))


json.dump(seen, sys.stdout, indent=1, sort_keys=True)
