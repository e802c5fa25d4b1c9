// Small kernels that show what nvcc and NVRTC write: see README.md beside this file.
#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

__constant__ float weights[16];
__device__ int counter = 7;
__device__ __managed__ int shared_with_host;
extern __shared__ float dynamic[];

__device__ __noinline__ int square_or_zero(int x, bool zero) {
    if (zero) return 0;
    return x * x;
}

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void loop(const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (int k = 0; k < 16; ++k) sum += weights[k] * x[(i + k) % n];
        y[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) choose(int *out, const int *kind) {
    int i = threadIdx.x, result;
    switch (kind[i]) {
    case 0: result = out[i] + 3; break;
    case 1: result = out[i] * 5; break;
    case 2: result = square_or_zero(out[i], i == 3); break;
    case 3: result = out[i] ^ counter; break;
    case 4: result = __popc(out[i]); break;
    case 5: result = out[i] << counter; break;
    case 6: result = __clz(out[i]) / (i + 1); break;
    default: __trap();
    }
    out[i] = result;
}

extern "C" __global__ void recurse(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x & 7); }

extern "C" __global__ void print(int n) {
    if (threadIdx.x == 0) printf("%d \"quoted\" // not a comment { %f\n", n, 1.5);
    shared_with_host = n;
}

extern "C" __global__ void sum_shared(float *out) {
    __shared__ float tile[32][8];
    tile[threadIdx.x & 31][threadIdx.x & 7] = out[threadIdx.x];
    dynamic[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < blockDim.x; ++i) sum += dynamic[i] * tile[i & 31][i & 7];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void sample(unsigned long long texture, float4 *out) {
    float4 texel;
    asm("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
        : "=f"(texel.x), "=f"(texel.y), "=f"(texel.z), "=f"(texel.w)
        : "l"(texture), "f"((float)threadIdx.x), "f"(0.5f));
    out[threadIdx.x] = texel;
}

typedef int (*operation)(int);
__device__ __noinline__ int negate(int x) { return -x; }
__device__ __noinline__ int twice(int x) { return x + x; }
__device__ operation operations[] = {negate, twice};

extern "C" __global__ void call_pointer(int *out, int which) {
    out[threadIdx.x] = operations[which](out[threadIdx.x]);
}

extern "C" __global__ void marked(unsigned *out) {
    unsigned lane;
    asm volatile("// warptrace.loc 3");
    if (threadIdx.x & 1) asm volatile("// warptrace.loc 4\n\tmov.u32 %0, %%laneid;" : "=r"(lane));
    else asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0; @p bra DONE; mov.u32 %0, 9; DONE: }" : "=r"(lane) : "r"(out[1]));
    out[threadIdx.x] = lane;
}
