#include <cstdio>
__global__ __launch_bounds__(256) void sums(const float *x, float *y, int n) {
    float s = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { if (x[i] > 0.5f) s += x[i]; else s -= 1; }
    atomicAdd(y, s); }
int main() { int b, m; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, sums, 256, 0); cudaDeviceGetAttribute(&m, cudaDevAttrMultiProcessorCount, 0);
    float *x, *y; int n = 1 << 20; cudaMalloc(&x, n * 4); cudaMemset(x, 0, n * 4); cudaMalloc(&y, 4); cudaMemset(y, 0, 4); sums<<<b * m, 256>>>(x, y, n);
    float h; cudaMemcpy(&h, y, 4, cudaMemcpyDeviceToHost); printf("%d blocks each, sum %g\n", b, h); }
