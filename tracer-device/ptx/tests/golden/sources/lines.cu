// Inlined functions, for `.loc` with `inlined_at` and for debug data: see README.md beside this file.
__device__ __forceinline__ int collatz(int n) {
    return n & 1 ? 3 * n + 1 : n / 2;
}

__device__ __forceinline__ int steps(int n) {
    int count = 0;
    while (n > 1) {
        n = collatz(n);
        ++count;
    }
    return count;
}

extern "C" __global__ void longest(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = steps(i);
}
