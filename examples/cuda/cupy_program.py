"""A CuPy program: a kernel from source, and elementwise kernels that CuPy writes itself."""

import cupy

collatz = cupy.RawKernel(
    r"""
extern "C" __global__ void collatz(unsigned *steps, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned long long value = index + 1;
    unsigned own = 0;
    while (value > 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++own;
    }
    steps[index] = own;
}
""",
    "collatz",
)

count = 100_000
steps = cupy.zeros(count, dtype=cupy.uint32)
collatz(((count + 127) // 128,), (128,), (steps, cupy.uint32(count)))
odd = cupy.where(steps % 2 == 1, steps * 3, steps)
print("cupy", int(steps.sum()), int(odd.max()), int(cupy.sort(odd)[count // 2]))
