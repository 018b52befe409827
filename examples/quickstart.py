"""A small model, trained for one step with torch.compile. Run it with STRUCTDUMP_LEVEL=low."""

import torch
from torch import nn


class Model(nn.Module):
    """A projection, a nonlinearity, a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normed sum of `x` and its projection."""
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


def main() -> None:
    """Compile, run forward and backward, and say that it worked."""
    torch.manual_seed(0)
    model = Model()
    step = torch.compile(model)
    loss = step(torch.randn(16, 64)).square().mean()
    loss.backward()
    print(f"trained one step, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
