// Kernels with known memory accesses. `gpu-accesses KERNEL [LAUNCHES]` launches one of them, and prints
// `kernel_ms` (the median of its launches) and a checksum.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>
#include "gpu-check.cuh"
#include "../tracer-host/include/warptrace.cuh"

enum { N = 1024, TILE = 32 };

__global__ void transpose_naive(const float *from, float *to)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const float value = from[y * N + x];
    to[x * N + y] = value;
}

template <int WIDTH>
__device__ void transpose(const float *from, float *to)
{
    __shared__ float tile[TILE][WIDTH];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int row = 0; row < TILE; row += blockDim.y)
        tile[threadIdx.y + row][threadIdx.x] = from[(y + row) * N + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int row = 0; row < TILE; row += blockDim.y)
        to[(y + row) * N + x] = tile[threadIdx.x][threadIdx.y + row];
}

__global__ void transpose_tiled(const float *from, float *to) { transpose<TILE>(from, to); }
__global__ void transpose_padded(const float *from, float *to) { transpose<TILE + 1>(from, to); }

__global__ void matmul_naive(const float *a, const float *b, float *c)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < N; k++)
        sum += a[y * N + k] * b[k * N + x];
    c[y * N + x] = sum;
}

__global__ void matmul_tiled(const float *a, const float *b, float *c)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < N; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[y * N + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * N + x];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[y * N + x] = sum;
}

__global__ void stencil(const float *from, float *to)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x == N - 1 || y == N - 1)
        return;
    const float *at = from + y * N + x;
    to[y * N + x] = 0.25f * (at[-1] + at[1] + at[-N] + at[N]) - at[0];
}

// The stencil with a name for its results.
__global__ void stencil_named(const float *from, float *to)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x == N - 1 || y == N - 1)
        return;
    const float *at = from + y * N + x;
    const float result = 0.25f * (at[-1] + at[1] + at[-N] + at[N]) - at[0];
    WARPTRACE_VALUE("result", result);
    to[y * N + x] = result;
}

__global__ void pairs(const float2 *from, float *to)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    to[x] = ((const float *)from)[2 * x];
}

__global__ void histogram(const unsigned *keys, unsigned *bins)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[keys[x] % 4096], 1u);
}

__global__ void gather(const unsigned *keys, const float *from, float *to)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    to[x] = from[keys[x] % (N * N)];
}

int main(int count, char **words)
{
    if (count < 2)
        return 2;
    const char *name = words[1];
    const int launches = count > 2 ? atoi(words[2]) : 1;
    const size_t bytes = sizeof(float) * N * N;
    std::vector<unsigned> keys(N * N);
    std::vector<float> values(N * N), result(N * N);
    unsigned state = 1;
    for (int at = 0; at < N * N; at++) {
        state = state * 1664525u + 1013904223u;
        keys[at] = state >> 8;
        values[at] = float(state >> 24);
    }
    unsigned *d_keys;
    float *a, *b, *c;
    CHECK(cudaMalloc(&d_keys, bytes));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&c, bytes));
    CHECK(cudaMemcpy(d_keys, keys.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(a, values.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, values.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(c, 0, bytes));
    const dim3 square(32, 32), grid(N / 32, N / 32), flat(32, 8);
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int launch = 0; launch < launches; launch++) {
        CHECK(cudaEventRecord(begin));
        if (!strcmp(name, "transpose_naive")) transpose_naive<<<grid, square>>>(a, c);
        else if (!strcmp(name, "transpose_tiled")) transpose_tiled<<<grid, flat>>>(a, c);
        else if (!strcmp(name, "transpose_padded")) transpose_padded<<<grid, flat>>>(a, c);
        else if (!strcmp(name, "matmul_naive")) matmul_naive<<<grid, square>>>(a, b, c);
        else if (!strcmp(name, "matmul_tiled")) matmul_tiled<<<grid, square>>>(a, b, c);
        else if (!strcmp(name, "stencil")) stencil<<<grid, square>>>(a, c);
        else if (!strcmp(name, "stencil_named")) stencil_named<<<grid, square>>>(a, c);
        else if (!strcmp(name, "pairs")) pairs<<<N * N / 512, 256>>>((const float2 *)a, c);
        else if (!strcmp(name, "histogram")) histogram<<<N * N / 256, 256>>>(d_keys, (unsigned *)c);
        else if (!strcmp(name, "gather")) gather<<<N * N / 256, 256>>>(d_keys, a, c);
        else return 2;
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        times.push_back(ms);
    }
    CHECK(cudaMemcpy(result.data(), c, bytes, cudaMemcpyDeviceToHost));
    unsigned long long sum = 0;
    for (int at = 0; at < N * N; at++) {
        unsigned word;
        memcpy(&word, &result[at], 4);
        sum = sum * 31 + word;
    }
    std::sort(times.begin(), times.end());
    fprintf(stderr, "kernel_ms %.5f\n", times[times.size() / 2]);
    printf("%s %llx\n", name, sum);
    return 0;
}
