"""Counting a printed graph gives what the graph itself gives."""

from __future__ import annotations

import operator

import pytest
import torch

from structdump.bundle.graphs import measure_graph, measure_text


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, y):
        z = self.linear(x) * self.scale + y[0]
        q, k = z.sin().chunk(2)
        return torch.nn.functional.gelu(q) @ k.t() - 1 // y.shape[0], {"a": k}


def test_a_symbolic_trace_counts_alike():
    module = torch.fx.symbolic_trace(Small())
    live, printed = measure_graph(module), measure_text(module.print_readable(print_output=False))
    assert printed[0] == live[0]
    assert printed[1]["operator.matmul"] == 1
    assert printed[1]["operator.getitem"] == live[1]["operator.getitem"]
    assert printed[1]["sin"] == 1


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.floordiv, operator.matmul, operator.le])
def test_operators_have_the_same_name(op):
    module = torch.fx.symbolic_trace(lambda a, b: op(a, b))
    assert measure_text(module.print_readable(print_output=False))[1] == measure_graph(module)[1]


@pytest.mark.slow
def test_indexed_and_kept_graphs_count_alike(train_full, train_low):
    def counts(captured):
        return {
            (a.compile_id, a.stage, a.phase, a.direction): (a.nodes, a.ops)
            for a in captured.bundle.artifacts
            if a.kind == "graph" and a.nodes is not None
        }

    full, low = counts(train_full), counts(train_low)
    indexed = {k: v for k, v in low.items() if k[1] in ("joint", "forward", "backward")}
    assert len(indexed) == 12
    assert {k: full[k] for k in indexed} == indexed
