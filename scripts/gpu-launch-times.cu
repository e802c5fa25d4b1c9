// Cost of measuring the time of each launch: by events around it, and by CUPTI's activity records.
//   nvcc -O3 -arch=sm_90 -o gpu-launch-times gpu-launch-times.cu -lcuda -ldl
//   ./gpu-launch-times plain|events|cupti [LIBCUPTI]
// Prints nanoseconds per launch: of the host's call (no wait between launches, queue not full), and in total
// with the wait at the end; for a kernel of one warp and one of about 20 us. Medians of 9 repetitions of 500 launches.
#include <cuda.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>
#define C(x) do { auto r = (x); if (r) { printf("%s: %d\n", #x, (int)r); exit(1); } } while (0)
static double now() { using namespace std::chrono; return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count(); }
__global__ void quick(int *p) { p[threadIdx.x] += 1; }
__global__ void slow(int *p) { for (long long end = clock64() + 35000; clock64() < end;) p[threadIdx.x] += 1; }
static size_t records;
static void requested(unsigned char **buffer, size_t *size, size_t *most) { *size = 8 << 20; *buffer = (unsigned char *)aligned_alloc(8, *size); *most = 0; }
static int (*next_record)(unsigned char *, size_t, void **);
static void completed(CUcontext, unsigned, unsigned char *buffer, size_t, size_t valid) {
    void *record = nullptr; while (next_record(buffer, valid, &record) == 0) records++; free(buffer); }
int main(int argc, char **argv) {
    const int LAUNCHES = 500, REPETITIONS = 9; const char *mode = argv[1];
    int (*flush)(unsigned) = nullptr;
    if (!strcmp(mode, "cupti")) {
        void *lib = dlopen(argc > 2 ? argv[2] : "libcupti.so", RTLD_NOW); if (!lib) { printf("%s\n", dlerror()); return 1; }
        auto callbacks = (int (*)(decltype(&requested), decltype(&completed)))dlsym(lib, "cuptiActivityRegisterCallbacks");
        auto enable = (int (*)(int))dlsym(lib, "cuptiActivityEnable");
        next_record = (decltype(next_record))dlsym(lib, "cuptiActivityGetNextRecord"); flush = (decltype(flush))dlsym(lib, "cuptiActivityFlushAll");
        double t = now(); C(callbacks(requested, completed)); C(enable(10 /* CONCURRENT_KERNEL */)); cudaFree(0);
        printf("cupti ready after %.0f ms\n", (now() - t) / 1e6);
    }
    int *p; C(cudaMalloc(&p, 4096)); cudaStream_t s; C(cudaStreamCreate(&s));
    std::vector<cudaEvent_t> events(2 * LAUNCHES); for (auto &e : events) C(cudaEventCreate(&e));
    for (auto kernel : {quick, slow}) {
        std::vector<double> host, all; double measured = 0;
        for (int repetition = 0; repetition < REPETITIONS; repetition++) {
            C(cudaDeviceSynchronize()); double t = now();
            for (int i = 0; i < LAUNCHES; i++) {
                if (!strcmp(mode, "events")) cudaEventRecord(events[2 * i], s);
                kernel<<<1, 32, 0, s>>>(p);
                if (!strcmp(mode, "events")) cudaEventRecord(events[2 * i + 1], s);
            }
            double u = now(); C(cudaDeviceSynchronize()); double v = now();
            host.push_back((u - t) / LAUNCHES); all.push_back((v - t) / LAUNCHES);
            if (!strcmp(mode, "events")) { float ms; C(cudaEventElapsedTime(&ms, events[0], events[1])); measured = ms * 1e6; }
        }
        if (flush) flush(0);
        std::sort(host.begin(), host.end()); std::sort(all.begin(), all.end());
        printf("%-6s %-5s host %6.0f ns, whole %6.0f ns a launch", mode, kernel == quick ? "quick" : "slow", host[REPETITIONS / 2], all[REPETITIONS / 2]);
        if (measured) printf("; events say a launch took %.0f ns", measured); if (flush) printf("; %zu records", records);
        puts("");
    }
}
