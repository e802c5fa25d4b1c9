"""Training steps of a small GPT, eager or compiled: `gpu-stacks.py eager|compile [STEPS]`. Prints the loss and the time of a step.

For the call stacks of launches: each kernel is launched from a known line of this file or from PyTorch.
"""

import sys
import time

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        weights = (split(q) @ split(k).transpose(-1, -2)).softmax(-1)
        return self.out((weights @ split(v)).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Model(nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


if __name__ == "__main__":
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    torch.manual_seed(1)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x = torch.randn(8, 128, 256, device="cuda")
    run = torch.compile(model) if sys.argv[1] == "compile" else model
    for _ in range(3):
        step(run, optimizer, x)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(steps):
        loss = step(run, optimizer, x)
    torch.cuda.synchronize()
    print(f"loss {loss.item():.6f} {(time.time() - began) * 1000 / steps:.3f} ms a step")
