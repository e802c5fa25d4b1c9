// A device function that is not inlined, one called through its address, and a recursive one.

#include "example.cuh"

__device__ __noinline__ unsigned collatz_steps(unsigned value)
{
    unsigned steps = 0;
    while (value > 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++steps;
    }
    return steps;
}

__device__ __noinline__ unsigned digit_sum(unsigned value)
{
    unsigned sum = 0;
    for (; value > 0; value /= 10) {
        sum += value % 10;
    }
    return sum;
}

// The depth of the recursion is about the number of bits of the value.
__device__ __noinline__ unsigned fold(unsigned value)
{
    if (value < 3) {
        return value;
    }
    return fold(value / 2) + (value % 3 == 0 ? fold(value / 3) : 1);
}

__device__ unsigned (*const functions[2])(unsigned) = {collatz_steps, digit_sum};

__global__ void calls(unsigned *out, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    out[index] = 1000000 * collatz_steps(index + 1) + 1000 * functions[index % 2](index) + fold(index);
}

int main(int argc, char **argv)
{
    const unsigned count = 50000;
    unsigned *out = upload(std::vector<unsigned>(count));
    say_time(median_ms(runs(argc, argv), [&] { calls<<<(count + 63) / 64, 64>>>(out, count); }));
    std::printf("calls %016llx\n", digest(download(out, count)));
    return 0;
}
