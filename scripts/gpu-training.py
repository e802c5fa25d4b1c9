"""Trains a small GPT under torch.compile, and prints how long a step takes.

Used by scripts/gpu-training.sh, alone and under `warptrace run`.
"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).split(width, dim=2)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, words, length, width, heads, layers):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x, targets):
        x = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        logits = self.head(self.norm(self.blocks(x)))
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt(4096, 256, 384, 6, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    compiled = torch.compile(model)
    data = torch.randint(4096, (16, 257), device="cuda")
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(x, y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        loss = step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    print(f"step {statistics.median(times):.2f} ms (median of {steps}, {min(times):.2f} to {max(times):.2f}), loss {loss.item():.4f}")


main()
