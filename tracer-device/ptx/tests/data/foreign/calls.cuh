__device__ __forceinline__ unsigned collatz(unsigned x) {
    return x & 1 ? 3 * x + 1 : x / 2;
}

__device__ __forceinline__ unsigned collatz_steps(unsigned x) {
    unsigned steps = 0;
    while (x > 1) {
        x = collatz(x);
        steps++;
    }
    return steps;
}

static __device__ __noinline__ unsigned weigh(unsigned x, unsigned k) {
    if (x % 3 == 0) return k;
    unsigned weight = 0;
    while (x != 0) {
        weight += x & 1 ? k : 1;
        x /= 2;
    }
    return weight;
}
