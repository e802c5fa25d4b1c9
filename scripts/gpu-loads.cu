// Tests whether loading a module waits for running kernels, and whether a launch in another thread waits for such a load.
//   nvcc -O3 -arch=sm_90 -o gpu-loads gpu-loads.cu -lcuda
//   CUDA_MODULE_LOADING=EAGER CUDA_CACHE_DISABLE=1 ./gpu-loads IMAGE [module|library|none]
// Images, each made by `nvcc -O3 -arch=sm_90 -cubin` or `nvcc -O3 -arch=compute_90 -ptx` from a file with one of these lines:
//   plain   extern "C" __global__ void copied(int *p) { p[threadIdx.x] += 1; }
//   global  __device__ int big[1 << 20]; extern "C" __global__ void copied(int *p) { big[threadIdx.x * 7] += p[0]; p[threadIdx.x] += big[p[1]]; }
//   print   extern "C" __global__ void copied(int *p) { printf("%d\n", p[threadIdx.x]); }
//   stack   extern "C" __global__ void copied(int *p, int n) { int a[2000]; for (int i = 0; i < n; i++) a[p[i] & 1023] = i;
//             int s = 0; for (int i = 0; i < n; i++) s += a[p[i + n] & 1023]; p[threadIdx.x] = s; }
// IMAGE: a cubin or PTX with a kernel `copied`. A kernel polls for 1.5 s for a flag that a kernel of another stream sets.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <thread>
#include <fstream>
#include <sstream>
#include <string>
static double now() { using namespace std::chrono; return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count(); }
#define C(x) do { CUresult r = (x); if (r) { printf("%s: %d\n", #x, r); exit(1); } } while (0)
__global__ void waits(volatile int *flag, int *saw) {
    unsigned long long s, t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(s));
    while (*flag == 0) { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); if (t - s > 1500000000ull) return; }
    *saw = 1; }
__global__ void sets(volatile int *flag) { *flag = 1; }
int main(int argc, char **argv) {
    std::ifstream f(argv[1], std::ios::binary); std::stringstream b; b << f.rdbuf(); std::string image = b.str();
    bool library = argc > 2 && !strcmp(argv[2], "library"), none = argc > 2 && !strcmp(argv[2], "none");
    int *d, h[2] = {-1, -1}; cudaStream_t s, t;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
    cudaMalloc(&d, 8); cudaMemset(d, 0, 8);
    cudaFuncAttributes at; cudaFuncGetAttributes(&at, waits); cudaFuncGetAttributes(&at, sets);
    cudaDeviceSynchronize();
    CUcontext c; C(cuCtxGetCurrent(&c));
    waits<<<1, 1, 0, s>>>(d, d + 1);
    double t0 = now(), loaded = 0;
    std::thread other([&] { if (none) return; cuCtxSetCurrent(c);
        if (library) { CUlibrary l; C(cuLibraryLoadData(&l, image.c_str(), 0, 0, 0, 0, 0, 0)); CUkernel k; C(cuLibraryGetKernel(&k, l, "copied")); CUfunction fn; C(cuKernelGetFunction(&fn, k)); int regs; C(cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, fn)); }
        else { CUmodule m; C(cuModuleLoadData(&m, image.c_str())); CUfunction fn; C(cuModuleGetFunction(&fn, m, "copied")); int regs; C(cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, fn)); }
        loaded = now() - t0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    double before = loaded, l0 = now();
    sets<<<1, 1, 0, t>>>(d);
    double l1 = now();
    cudaDeviceSynchronize(); other.join();
    cudaMemcpy(h, d, 8, cudaMemcpyDeviceToHost);
    printf("%-14s %-8s loaded before the launch: %s; load %.1f ms, launch %.3f ms, %s\n", strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1], argc > 2 ? argv[2] : "module", before > 0 ? "yes" : "no", loaded, l1 - l0, h[1] == 1 ? "SEEN" : "TIMED OUT");
}
