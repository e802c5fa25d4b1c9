"""Ranks of PyTorch of which the last one hangs: after an all-reduce, one program of its Triton kernel waits for a flag that
never comes, and the other ranks wait in a second all-reduce.

    warptrace run -o h.%r.wtrc -- torchrun --nproc-per-node 2 scripts/gpu-hang-rank.py
"""

import os

import torch
import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit
def chain(flags, out, polls):
    p = tl.program_id(0)
    n = 0
    if p > 0:
        while (tl.atomic_add(flags + p - 1, 0) == 0) & ((polls == 0) | (n < polls)):
            n += 1
    tl.store(out + p, n > 0)
    if p != 2:
        tl.atomic_xchg(flags + p, 1)


rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
x = torch.ones(1024, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
print("ready", flush=True)
flags = torch.zeros(8, device="cuda", dtype=torch.int32)
out = torch.zeros(8, device="cuda", dtype=torch.int32)
chain[(8,)](flags, out, 0 if rank == ranks - 1 else 1000, num_warps=1)
dist.all_reduce(x)
torch.cuda.synchronize()
