#!/usr/bin/env python3
"""A kernel that tests take through `warptrace run`, as CuTe DSL assembles it for sm_90a, which needs no GPU:

    pip install nvidia-cutlass-dsl
    mkdir /kernels && cp collatz.py /kernels && cd /kernels
    CUTE_DSL_ARCH=sm_90a CUTE_DSL_LINEINFO=1 CUTE_DSL_KEEP_PTX=1 CUTE_DSL_KEEP_CUBIN=1 python3 collatz.py

CuTe DSL 4.8 made what is here. Paths of files stand in the machine code.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def collatz(starts: cute.Tensor, steps: cute.Tensor, n: cutlass.Int32, limit: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 32 + thread
    if at < n:
        value = starts[at]
        count = cutlass.Int32(0)
        while value > 1 and count < limit:
            if value % 2 == 1:
                value = 3 * value + 1
            else:
                value = value // 2
            count += 1
        steps[at] = count


@cute.jit
def launch(starts: cute.Tensor, steps: cute.Tensor, n: cutlass.Int32, limit: cutlass.Int32):
    collatz(starts, steps, n, limit).launch(grid=[(n + 31) // 32, 1, 1], block=[32, 1, 1])


numbers = make_fake_compact_tensor(cutlass.Int32, (1024,))
cute.compile(launch, numbers, numbers, cutlass.Int32(1024), cutlass.Int32(120))
