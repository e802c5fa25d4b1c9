// Kernels of the test programs, with integers: the interpreter of the test driver runs them.
//   nvcc -lineinfo -ptx -arch=compute_80 -o kernels.ptx kernels.cu
//   nvcc -fatbin -lineinfo -gencode arch=compute_75,code=compute_75 -gencode arch=compute_80,code=compute_80
//        -gencode arch=compute_90,code=sm_90 --compress-mode=MODE -o kernels-MODE.fatbin kernels.cu
//   nvcc -fatbin -gencode arch=compute_90,code=sm_90 -o kernels-cubin.fatbin kernels.cu
// MODE: none, speed (LZ4), size (zstd).

// A function that is not inlined.
__device__ __noinline__ unsigned weigh(unsigned value, unsigned limit)
{
    unsigned weight = 0;
    while (value != 0 && weight < limit) {
        weight += value & 1 ? 3 : 1;
        value >>= 1;
    }
    return weight;
}

// Lanes leave the loop one by one, and some take a call.
extern "C" __global__ void walk(const unsigned *in, unsigned *out, unsigned *sum, unsigned n)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned value = in[index], steps = 0;
    while (value > 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        ++steps;
    }
    if (steps > 12) {
        steps += weigh(steps, 40);
    }
    out[index] = steps;
    atomicAdd(sum, steps);
}

template <typename Number>
__global__ void scale(Number *values, Number factor)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index % 3 == 0) {
        values[index] *= factor;
    }
}

template __global__ void scale<unsigned>(unsigned *, unsigned);

extern "C" __global__ void fail(unsigned *values)
{
    if (values[threadIdx.x] != 0) {
        __trap();
    }
}
