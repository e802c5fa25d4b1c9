// Dynamic shared memory above the default limit: each block sorts its part by rank.

#include "example.cuh"

extern __shared__ unsigned part[];

__global__ void sort_parts(unsigned *values, unsigned length)
{
    unsigned *const own = values + blockIdx.x * length;
    for (unsigned at = threadIdx.x; at < length; at += blockDim.x) {
        part[at] = own[at];
    }
    __syncthreads();
    for (unsigned at = threadIdx.x; at < length; at += blockDim.x) {
        unsigned rank = 0;
        for (unsigned other = 0; other < length; ++other) {
            if (part[other] < part[at] || (part[other] == part[at] && other < at)) {
                ++rank;
            }
        }
        own[rank] = part[at];
    }
}

int main(int argc, char **argv)
{
    const unsigned length = 15000, blocks = 24;
    std::vector<unsigned> values(length * blocks);
    unsigned state = 11;
    for (unsigned &value : values) {
        value = next_random(state) % 5000;
    }
    unsigned *device_values = upload(values);
    const int bytes = length * sizeof(unsigned);
    check(cudaFuncSetAttribute(sort_parts, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
    say_time(median_ms(runs(argc, argv), [&] {
        check(cudaMemcpy(device_values, values.data(), values.size() * sizeof(unsigned), cudaMemcpyHostToDevice),
              "copy to the device");
        sort_parts<<<blocks, 256, bytes>>>(device_values, length);
    }));
    std::printf("dynamic_shared %016llx\n", digest(download(device_values, values.size())));
    return 0;
}
