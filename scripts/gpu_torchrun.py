"""Ranks of PyTorch: a kernel of Triton with loops, an all-reduce by NCCL, and another kernel of Triton.

    torchrun --nproc-per-node 2 scripts/gpu_torchrun.py

SLOW (default none) names a rank that does four times the work, STEPS (default 30) says how many steps. Rank 0 prints the
sum and milliseconds of all steps but the first five.
"""

import os
import time

import torch
import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit
def search(found, turns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = at.to(tl.int64) + 1
    steps = tl.zeros([BLOCK], dtype=tl.int64)
    turn = 0
    # The number of turns differs between programs.
    while turn < turns + tl.program_id(0) % 7:
        number = tl.where(number % 2 == 1, 3 * number + 1, number // 2)
        steps += (number > 1).to(tl.int64)
        turn += 1
    tl.store(found + at, steps.to(tl.float32))


@triton.jit
def halve(values, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + at, tl.load(values + at) * 0.5)


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    block, programs = 256, 512
    turns = 4000 if os.environ.get("SLOW") == str(rank) else 1000
    found = torch.zeros(block * programs, device="cuda")
    sums = torch.zeros(block * programs, device="cuda")
    steps = int(os.environ.get("STEPS", "30"))
    begin = 0.0
    for step in range(steps):
        if step == 5:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        search[(programs,)](found, turns, block)
        dist.all_reduce(found)
        halve[(programs,)](found, block)
        sums += found
    torch.cuda.synchronize()
    milliseconds = (time.perf_counter() - begin) * 1e3
    if rank == 0:
        print(f"steps_ms {milliseconds:.3f}\ntotal {sums.double().sum().item():.0f}", flush=True)
    dist.destroy_process_group()


main()
