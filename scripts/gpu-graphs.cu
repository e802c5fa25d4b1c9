// Kernels over graphs, with accesses that depend on data. `gpu-graphs KERNEL [LAUNCHES]` launches one, and prints
// `kernel_ms` (the median of its launches) and a checksum. KERNEL is `spmv_row`, `spmv_warp` or `bfs`, then `_` and the graph:
// `road` (from the file named by ROAD, in the format of DIMACS' shortest paths) or `rmat` (2^17 nodes, generated).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <cuda_runtime.h>
#include "gpu-check.cuh"

__global__ void spmv_row(const unsigned *offsets, const unsigned *columns, const float *values, const float *x, float *y, unsigned rows)
{
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (unsigned at = offsets[row]; at < offsets[row + 1]; at++)
        sum += values[at] * x[columns[at]];
    y[row] = sum;
}

__global__ void spmv_warp(const unsigned *offsets, const unsigned *columns, const float *values, const float *x, float *y, unsigned rows)
{
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0;
    for (unsigned at = offsets[row] + lane; at < offsets[row + 1]; at += 32)
        sum += values[at] * x[columns[at]];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0)
        y[row] = sum;
}

// One level of a breadth-first search.
__global__ void bfs(const unsigned *offsets, const unsigned *columns, unsigned *distances, unsigned level, unsigned rows, unsigned *changed)
{
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || distances[row] != level)
        return;
    for (unsigned at = offsets[row]; at < offsets[row + 1]; at++) {
        if (distances[columns[at]] == ~0u) {
            distances[columns[at]] = level + 1;
            *changed = 1;
        }
    }
}

static unsigned next(unsigned &state)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Arcs of the graph, by source and target, and its number of nodes.
static unsigned arcs_of(bool is_road, std::vector<std::pair<unsigned, unsigned>> &arcs)
{
    unsigned nodes = 0;
    if (is_road) {
        const char *path = getenv("ROAD");
        FILE *file = path ? fopen(path, "r") : nullptr;
        char line[256], kind[16];
        unsigned from, to, arcs_said;
        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "p %15s %u %u", kind, &nodes, &arcs_said) == 3)
                continue;
            // In PACE's format, lines of edges begin without a letter.
            if (sscanf(line, "a %u %u", &from, &to) == 2 || sscanf(line, "%u %u", &from, &to) == 2) {
                arcs.push_back({from - 1, to - 1});
                arcs.push_back({to - 1, from - 1});
            }
        }
        if (file)
            fclose(file);
    } else {
        nodes = 1 << 17;
        unsigned state = 1;
        for (unsigned arc = 0; arc < nodes * 16; arc++) {
            unsigned from = 0, to = 0;
            for (int bit = 0; bit < 17; bit++) {
                const unsigned part = next(state) % 100;
                from = from * 2 + (part >= 76);
                to = to * 2 + ((part >= 57 && part < 76) || part >= 95);
            }
            arcs.push_back({from, to});
        }
    }
    std::sort(arcs.begin(), arcs.end());
    arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
    return nodes;
}

template <typename T>
static T *upload(const std::vector<T> &from)
{
    T *to = nullptr;
    if (cudaMalloc(&to, from.size() * sizeof(T)) != cudaSuccess ||
        cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice) != cudaSuccess) {
        fprintf(stderr, "cannot copy %zu numbers to the device: %s\n", from.size(), cudaGetErrorString(cudaGetLastError()));
        exit(1);
    }
    return to;
}

int main(int count, char **words)
{
    const std::string name = count > 1 ? words[1] : "";
    const size_t split = name.rfind('_');
    if (split == std::string::npos)
        return 2;
    const std::string kernel = name.substr(0, split);
    const int launches = count > 2 ? atoi(words[2]) : 1;
    std::vector<std::pair<unsigned, unsigned>> arcs;
    const unsigned rows = arcs_of(name.substr(split) == "_road", arcs);
    if (arcs.empty()) {
        fprintf(stderr, "no graph: ROAD names a file of DIMACS' format\n");
        return 1;
    }
    std::vector<unsigned> offsets(rows + 1), columns;
    std::vector<float> values, x(rows);
    unsigned state = 7;
    for (const auto &arc : arcs) {
        offsets[arc.first + 1]++;
        columns.push_back(arc.second);
        values.push_back(float(next(state) % 16));
    }
    for (unsigned row = 0; row < rows; row++)
        offsets[row + 1] += offsets[row];
    for (float &value : x)
        value = float(next(state) % 16);
    const unsigned *d_offsets = upload(offsets), *d_columns = upload(columns);
    const float *d_values = upload(values), *d_x = upload(x);
    unsigned *result = upload(std::vector<unsigned>(rows)), *changed = upload(std::vector<unsigned>(1));
    const unsigned blocks = (rows + 127) / 128, by_warp = (rows + 3) / 4;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int launch = 0; launch < launches; launch++) {
        float all = 0, ms;
        unsigned goes_on = 1;
        if (kernel == "bfs") {
            CHECK(cudaMemset(result, 0xff, rows * sizeof(unsigned)));
            CHECK(cudaMemset(result, 0, sizeof(unsigned)));
        }
        for (unsigned level = 0; goes_on; level++) {
            if (kernel == "bfs")
                CHECK(cudaMemset(changed, 0, sizeof(unsigned)));
            CHECK(cudaEventRecord(begin));
            if (kernel == "spmv_row") spmv_row<<<blocks, 128>>>(d_offsets, d_columns, d_values, d_x, (float *)result, rows);
            else if (kernel == "spmv_warp") spmv_warp<<<by_warp, 128>>>(d_offsets, d_columns, d_values, d_x, (float *)result, rows);
            else if (kernel == "bfs") bfs<<<blocks, 128>>>(d_offsets, d_columns, result, level, rows, changed);
            else return 2;
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            all += ms;
            goes_on = 0;
            if (kernel == "bfs")
                CHECK(cudaMemcpy(&goes_on, changed, sizeof goes_on, cudaMemcpyDeviceToHost));
        }
        times.push_back(all);
    }
    std::vector<unsigned> words_out(rows);
    CHECK(cudaMemcpy(words_out.data(), result, rows * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned long long sum = 0;
    for (unsigned word : words_out)
        sum = sum * 31 + word;
    std::sort(times.begin(), times.end());
    printf("%s %016llx\n", name.c_str(), sum);
    fprintf(stderr, "kernel_ms %.4f\n", times[times.size() / 2]);
    return 0;
}
