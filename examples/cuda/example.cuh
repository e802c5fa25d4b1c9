// Helpers of the examples: checked calls, kernel times, a digest to compare, and pseudorandom numbers.
#pragma once

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

// Runs `launch` `runs` times. Returns the median time between device events around it, in milliseconds.
template <typename Launch>
float median_ms(int runs, Launch launch)
{
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<float> times;
    for (int run = 0; run < runs; ++run) {
        check(cudaEventRecord(begin), "cudaEventRecord");
        launch();
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaEventSynchronize(end), "kernel");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        times.push_back(ms);
    }
    for (size_t i = 1; i < times.size(); ++i) {
        for (size_t j = i; j > 0 && times[j] < times[j - 1]; --j) {
            std::swap(times[j], times[j - 1]);
        }
    }
    return times[times.size() / 2];
}

// Returns how often an example runs its kernel: its first argument, or 5.
inline int runs(int count, char **values)
{
    return count > 1 ? std::atoi(values[1]) : 5;
}

// Prints the kernel time to standard error.
inline void say_time(float ms)
{
    std::fprintf(stderr, "kernel_ms %.4f\n", ms);
}

template <typename T>
T *upload(const std::vector<T> &values)
{
    T *device = nullptr;
    check(cudaMalloc(&device, values.size() * sizeof(T) + 1), "cudaMalloc");
    check(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
    return device;
}

template <typename T>
std::vector<T> download(const T *device, size_t count)
{
    std::vector<T> values(count);
    check(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost), "copy to the host");
    return values;
}

// Returns the next pseudorandom number.
inline unsigned next_random(unsigned &state)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Returns an FNV-1a style hash of the bytes.
template <typename T>
unsigned long long digest(const std::vector<T> &values)
{
    unsigned long long sum = 1469598103934665603ull;
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T); ++i) {
        sum = (sum ^ bytes[i]) * 1099511628211ull;
    }
    return sum;
}
