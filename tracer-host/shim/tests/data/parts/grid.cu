// A barrier across the grid of as many blocks as fit, by the occupancy function. usage: grid [cooperative]
#include <cstdio>
__global__ void rounds(volatile unsigned *count, float *x, int n, int turns) {
    float a = threadIdx.x, b = 1.5f, e = 2.5f, f = 3.5f;
    for (int t = 0; t < turns; t++) {
        for (int i = 0; i < n; i++) { if ((i ^ threadIdx.x) & 1) { a = a * b + e; } else { e = e * f + b; } if (a > 1e6f) a = 1; if (e > 1e6f) e = 1; }
        __syncthreads();
        if (threadIdx.x == 0) { __threadfence(); atomicAdd((unsigned *)count, 1); while (*count < (t + 1) * gridDim.x); }
        __syncthreads();
    }
    x[blockIdx.x * blockDim.x + threadIdx.x] = a + e;
}
int main() {
    int blocks, sms; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rounds, 256, 0);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    unsigned *c; float *x; cudaMalloc(&c, 4); cudaMemset(c, 0, 4); int n = blocks * sms; cudaMalloc(&x, n * 1024);
    rounds<<<n, 256>>>(c, x, 20, 10);
    cudaError_t e = cudaDeviceSynchronize(); unsigned h; cudaMemcpy(&h, c, 4, cudaMemcpyDeviceToHost);
    printf("%d blocks on each of %d multiprocessors, error %d, arrivals %s\n", blocks, sms, e, h == 10u * n ? "right" : "WRONG");
}
