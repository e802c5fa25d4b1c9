// A sum in shared memory with barriers, and at the end within one warp.

#include "example.cuh"

__global__ void sum(const unsigned *values, unsigned count, unsigned *total)
{
    __shared__ unsigned partial[256];
    unsigned own = 0;
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x) {
        if (values[at] % 3 != 0) {
            own += values[at];
        }
    }
    partial[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half >= 32; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        unsigned value = partial[threadIdx.x];
        for (unsigned offset = 16; offset > 0; offset /= 2) {
            value += __shfl_down_sync(~0u, value, offset);
        }
        if (threadIdx.x == 0) {
            atomicAdd(total, value);
        }
    }
}

int main(int argc, char **argv)
{
    const unsigned count = 1 << 22;
    std::vector<unsigned> values(count);
    unsigned state = 3;
    for (unsigned &value : values) {
        value = next_random(state) % 1000;
    }
    unsigned *device_values = upload(values), *total = upload(std::vector<unsigned>(1));
    say_time(median_ms(runs(argc, argv), [&] {
        check(cudaMemset(total, 0, sizeof(unsigned)), "cudaMemset");
        sum<<<512, 256>>>(device_values, count, total);
    }));
    std::printf("reduction %u\n", download(total, 1)[0]);
    return 0;
}
