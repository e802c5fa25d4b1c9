"""What a launch costs the host below 28 nested calls: PyTorch's addition in place, 100,000 times. Prints the time of a launch."""

import time

import torch

x = torch.zeros(32, device="cuda")


def call(depth):
    if depth:
        return call(depth - 1)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(100_000):
        x.add_(1)
    torch.cuda.synchronize()
    return time.perf_counter() - began


call(28)
times = sorted(call(28) for _ in range(5))
print(f"launch {times[2] * 10:.3f} us, median of 5")
