"""Kernels for Numba: see README.md beside this file."""
from numba import cuda


def mandelbrot(out, width, depth):
    i = cuda.grid(1)
    if i >= width * width:
        return
    cx = (i % width) / width * 3.0 - 2.0
    cy = (i // width) / width * 2.0 - 1.0
    x = y = 0.0
    for step in range(depth):
        if x * x + y * y > 4.0:
            break
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
    else:
        step = depth
    out[i] = step


signature = "void(int32[::1], int32, int32)"
ptx, _ = cuda.compile_ptx(mandelbrot, signature, cc=(8, 0), lineinfo=True)
open("numba.ptx", "w").write(ptx)
