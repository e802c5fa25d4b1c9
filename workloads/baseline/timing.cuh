// Shared by the baselines: checked calls, and launch times measured like in the Rust host.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

inline void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

// Returns the time of one launch in milliseconds, measured with device events.
template <typename Launch>
float launch_ms(Launch launch)
{
    static cudaEvent_t begin = nullptr, end = nullptr;
    if (begin == nullptr) {
        check(cudaEventCreate(&begin), "cudaEventCreate");
        check(cudaEventCreate(&end), "cudaEventCreate");
    }
    check(cudaEventRecord(begin), "cudaEventRecord");
    launch();
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    return ms;
}

inline float median(std::vector<float> values)
{
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : 0.5f * (values[half - 1] + values[half]);
}

// Returns argument `index` as a number from `low` to `high`, or `otherwise` if it is missing.
inline long argument(int count, char **values, int index, const char *name, long otherwise, long low, long high)
{
    if (index >= count) {
        return otherwise;
    }
    char *rest = nullptr;
    const long value = std::strtol(values[index], &rest, 10);
    if (rest == values[index] || *rest != '\0' || value < low || value > high) {
        std::fprintf(stderr, "%s is %s: it is a number from %ld to %ld\n", name, values[index], low, high);
        std::exit(2);
    }
    return value;
}
