#include <cstdio>
__global__ void first(int *p) { p[threadIdx.x] += 1; asm volatile("griddepcontrol.launch_dependents;"); }
__global__ void second(int *p) { asm volatile("griddepcontrol.wait;"); p[threadIdx.x] *= 3; }
int main() {
    int *d, h[32]; cudaMalloc(&d, 128); cudaMemset(d, 0, 128); cudaStream_t s; cudaStreamCreate(&s);
    for (int i = 0; i < 5; i++) {
        first<<<1, 32, 0, s>>>(d);
        cudaLaunchAttribute a; a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t c = {}; c.gridDim = 1; c.blockDim = 32; c.stream = s; c.attrs = &a; c.numAttrs = 1;
        cudaLaunchKernelEx(&c, second, d);
    }
    cudaError_t e = cudaDeviceSynchronize(); cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); printf("error %d result %d\n", e, h[7]);
}
