"""A convolution net in inference."""

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    ).eval()
    with torch.no_grad():
        out = torch.compile(net)(torch.randn(2, 3, 16, 16))
    print(f"sum {out.sum().item():.6f}")


if __name__ == "__main__":
    main()
