// Launches a kernel often. usage: many LAUNCHES
#include <cstdio>
#include <cstdlib>
#include <chrono>
__global__ void step(int *p) { p[threadIdx.x] += 1; }
int main(int c, char **v) {
    int n = atoi(v[1]), *d; cudaMalloc(&d, 4096); cudaMemset(d, 0, 4096);
    step<<<1, 32>>>(d); cudaDeviceSynchronize();
    auto t = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i++) step<<<1, 32>>>(d);
    auto u = std::chrono::steady_clock::now();
    cudaDeviceSynchronize();
    auto w = std::chrono::steady_clock::now();
    int h; cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    using us = std::chrono::duration<double, std::micro>;
    printf("%d launches, result %d: %.3f us each to launch, %.3f us with the end\n", n, h, us(u - t).count() / n, us(w - t).count() / n);
}
