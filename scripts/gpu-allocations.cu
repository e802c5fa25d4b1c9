// Time of allocations. `gpu-allocations [TIMES]` prints the microseconds of one allocation and its release,
// the median of five rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

__global__ void nothing(int *at) { *at = 1; }

template <class Pair>
static void timed(const char *name, int times, Pair pair)
{
    std::vector<double> rounds;
    for (int round = 0; round < 5; round++) {
        const auto begin = std::chrono::steady_clock::now();
        for (int at = 0; at < times; at++)
            pair(at);
        cudaDeviceSynchronize();
        rounds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / times);
    }
    std::sort(rounds.begin(), rounds.end());
    printf("%s_us %.3f\n", name, rounds[2]);
}

int main(int count, char **words)
{
    const int times = count > 1 ? std::atoi(words[1]) : 2000;
    int *kept;
    if (cudaMalloc(&kept, 4) != cudaSuccess)
        return 1;
    nothing<<<1, 1>>>(kept);
    cudaDeviceSynchronize();
    timed("malloc", times, [](int at) {
        void *memory = nullptr;
        cudaMalloc(&memory, 4096 + 256 * (at % 64));
        cudaFree(memory);
    });
    timed("pool", times, [](int at) {
        void *memory = nullptr;
        cudaMallocAsync(&memory, 4096 + 256 * (at % 64), 0);
        cudaFreeAsync(memory, 0);
    });
    timed("host", times / 10, [](int at) {
        void *memory = nullptr;
        cudaMallocHost(&memory, 4096 + 256 * (at % 64));
        cudaFreeHost(memory);
    });
    nothing<<<1, 1>>>(kept);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
