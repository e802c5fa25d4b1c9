"""Trains a GPT of four layers (T = 256, C = 384, batch 16, bf16 autocast, AdamW, torch.compile), and prints one line
of JSON: the median step of the last 100 steps, and the loss. `--eager`: without torch.compile. `--steps=N`: instead
of 120; of fewer than 120, the last half counts.

    python3 scripts/gpu-training-step.py
    warptrace run --points functions -o step.wtrc -- python3 scripts/gpu-training-step.py
"""

import hashlib
import json
import statistics
import sys
import time

begun = time.perf_counter()

import torch
from torch import nn
from torch.nn import functional

imported = time.perf_counter()
WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 8192, 256, 384, 6, 4, 16
STEPS = next((int(word[8:]) for word in sys.argv if word.startswith("--steps=")), 120)
LAST = 100 if STEPS >= 120 else max(2, STEPS // 2)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.attend(self.first(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for part in (q, k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x, targets):
        x = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, WORDS).float(), targets.view(-1))


def main():
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    called = model if "--eager" in sys.argv else torch.compile(model)
    data = torch.randint(WORDS, (BATCH, LENGTH + 1), device="cuda")
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    torch.cuda.synchronize()
    times, losses = [], []
    for _ in range(STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = called(x, y)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
        losses.append(loss.detach())
    losses = [loss.item() for loss in losses]
    last = times[-LAST:]
    print(
        "TRAIN "
        + json.dumps(
            {
                "step_ms": statistics.median(last),
                "step_min_ms": min(last),
                "step_q1_ms": statistics.quantiles(last, n=4)[0],
                "step_q3_ms": statistics.quantiles(last, n=4)[2],
                "step_mean_ms": statistics.fmean(last),
                "first_half_ms": statistics.median(last[: LAST // 2]),
                "last_half_ms": statistics.median(last[LAST // 2 :]),
                "step_max_ms": max(last),
                "first_step_ms": times[0],
                "steps": STEPS,
                "loss": losses[-1],
                "losses": hashlib.sha256(repr(losses).encode()).hexdigest()[:12],
                "import_s": imported - begun,
                "whole_s": time.perf_counter() - begun,
            }
        )
    )


main()
