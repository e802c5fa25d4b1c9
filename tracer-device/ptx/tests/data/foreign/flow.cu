// Control flow of many shapes, in integers: the interpreter runs these kernels.
#include "calls.cuh"

// Two ways out of a loop, an early return.
extern "C" __global__ void escape(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = in[i] & 0xffff, steps = 0;
    do {
        x = x * 3 + 1 - (x >> 3);
        steps++;
    } while (steps < 40 && (x & 0x70) != 0);
    out[i] = steps;
}

// Functions that are inlined, one within the other.
extern "C" __global__ void longest(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = collatz_steps(in[i] % 97 + 1);
}

// Nested loops, `break` and `continue`.
extern "C" __global__ void primes(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned found = 0;
    for (unsigned number = 2; number < in[i % n] % 40; number++) {
        bool is_prime = true;
        for (unsigned divisor = 2; divisor * divisor <= number; divisor++) {
            if (number % divisor != 0) continue;
            is_prime = false;
            break;
        }
        if (is_prime) found += number;
    }
    if (i < n) out[i] = found;
}

// A loop that must not be unrolled: its block begins with a `.pragma`.
extern "C" __global__ void rolled(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
#pragma unroll 1
    for (unsigned k = i; k < n; k += 7) sum += in[k] ^ k;
    if (i < n) out[i] = sum;
}

// A table of branches, in a loop.
extern "C" __global__ void machine(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned program = in[i], x = i;
    while (program != 0) {
        switch (program % 8) {
            case 0: x += 3; break;
            case 1: x ^= program; break;
            case 2: x = x * 5 + 1; break;
            case 3: if (x & 1) x >>= 1; break;
            case 4: out[i] = x; break;
            case 5: x = x << 3 | x >> 29; break;
            case 6: x -= out[i]; break;
            default: program >>= 3; break;
        }
        program >>= 3;
    }
    out[i] = x;
}

// A function that is not inlined, in a loop.
extern "C" __global__ void caller(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned sum = 0;
    for (unsigned k = 0; k <= in[i] % 5; k++) sum += weigh(in[i] + k, k);
    out[i] = sum;
}

// Barriers in a loop.
extern "C" __global__ void block_sum(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned sums[64];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < n ? in[i] % 1000 : 0;
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// Assembly with its own scope, label and branches.
extern "C" __global__ void assembly(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = in[i] % 20, count = 0;
    asm volatile("{\n\t.reg .pred done;\nAGAIN_%=:\n\tsetp.eq.u32 done, %1, 0;\n\t@done bra OUT_%=;\n\t"
                 "sub.u32 %1, %1, 1;\n\tadd.u32 %0, %0, %1;\n\tbra AGAIN_%=;\nOUT_%=:\n\t}"
                 : "+r"(count), "+r"(x));
    if (count > 100) asm volatile("exit;");
    out[i] = count;
}
