// Several host threads, each with its own stream.

#include <thread>

#include "example.cuh"

__global__ void hailstone(unsigned *out, unsigned first, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned long long value = first + index + 1;
    unsigned highest_bit = 0;
    while (value > 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        highest_bit = max(highest_bit, 63u - __clzll(value));
    }
    out[index] = highest_bit;
}

int main()
{
    const unsigned count = 20000, threads = 4;
    std::vector<std::vector<unsigned>> results(threads);
    std::vector<std::thread> workers;
    for (unsigned number = 0; number < threads; ++number) {
        workers.emplace_back([&, number] {
            cudaStream_t stream;
            check(cudaStreamCreate(&stream), "cudaStreamCreate");
            unsigned *out = nullptr;
            check(cudaMalloc(&out, count * sizeof(unsigned)), "cudaMalloc");
            for (int run = 0; run < 5; ++run) {
                hailstone<<<(count + 127) / 128, 128, 0, stream>>>(out, number * count, count);
            }
            check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
            results[number] = download(out, count);
        });
    }
    for (std::thread &worker : workers) {
        worker.join();
    }
    for (unsigned number = 0; number < threads; ++number) {
        std::printf("thread %u %016llx\n", number, digest(results[number]));
    }
    return 0;
}
