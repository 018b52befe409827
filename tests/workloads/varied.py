"""One small program, changed on purpose by the variable VARIED, for comparing what two runs compiled."""

import os

import torch
import torch._inductor.config as inductor
from torch import nn

CHANGE = os.environ.get("VARIED", "")
FACTOR = 3.0 if CHANGE == "constant" else 2.0
TANH = CHANGE == "op"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.second = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x) * FACTOR)
        if TANH:
            y = y.tanh()
        return torch.softmax(self.second(y) + x, dim=-1) + 1.0


def double_the_relu(graph: torch.fx.Graph) -> None:
    """A pass that does nothing useful: it doubles what comes out of a relu."""
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.relu.default:
            with graph.inserting_after(node):
                doubled = graph.call_function(torch.ops.aten.mul.Tensor, (node, 2.0))
            doubled.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(doubled, delete_user_cb=lambda user, new=doubled: user is not new)


def main() -> None:
    torch.manual_seed(0)
    if CHANGE == "pass":
        inductor.post_grad_custom_pre_pass = double_the_relu
    if CHANGE == "config":
        inductor.max_fusion_size = 1
    net = Net().eval()
    step = torch.compile(net, dynamic=True if CHANGE == "dynamic" else None)
    with torch.no_grad():
        for rows in (4, 6, 6) if CHANGE == "recompile" else (4, 4, 4):
            out = step(torch.randn(rows, 16))
    print(f"sum {out.sum().item():.6f}")


if __name__ == "__main__":
    main()
