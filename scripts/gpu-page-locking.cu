// Time to lock host memory, and of copies into it: alone (busy 0), while a kernel runs (1), and while another thread
// launches kernels (2). Then it tests whether unlocking and freeing wait for a running kernel.
//
//     nvcc -O3 -arch=sm_90 -o page-locking gpu-page-locking.cu && ./page-locking
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>
#include <cuda_runtime.h>
#include <sys/mman.h>

static double now()
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void pause_for(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

__global__ void spin(volatile int *flag)
{
    while (!*flag) {
    }
}

__global__ void nothing() {}

static const char *const NAMES[] = {"cudaHostAlloc", "mmap huge + register", "mmap + register"};
static const size_t HUGE_PAGE = 2 << 20;

static void *locked(int kind, size_t bytes)
{
    if (kind == 0) {
        void *memory = nullptr;
        cudaHostAlloc(&memory, bytes, 0);
        return memory;
    }
    char *memory = (char *)mmap(nullptr, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = (char *)(((size_t)memory + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    if (kind == 1)
        madvise(memory, bytes, MADV_HUGEPAGE);
    if (cudaError_t error = cudaHostRegister(memory, bytes, 0))
        printf("register: %s\n", cudaGetErrorString(error));
    return memory;
}

// Runs `call` on a thread, for at most `most` ms until `flag` ends the kernel. Returns true if it ended before that.
template <class Call>
static bool ends(Call call, double most, int *flag)
{
    std::atomic<bool> done{false};
    std::thread thread([&] {
        call();
        done = true;
    });
    for (double begin = now(); !done && now() - begin < most;)
        pause_for(100);
    const bool ended = done;
    *flag = 1;
    thread.join();
    return ended;
}

int main()
{
    int *flag;
    void *device;
    cudaHostAlloc(&flag, sizeof *flag, 0);
    cudaMalloc(&device, 512 << 20);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int busy = 0; busy < 3; busy++)
        for (int kind = 0; kind < 3; kind++)
            for (size_t megabytes : {8, 32, 128}) {
                *flag = 0;
                if (busy == 1)
                    spin<<<1, 1, 0, stream>>>(flag);
                std::atomic<bool> stops{false};
                std::vector<double> launches{0};
                std::thread launching([&] {
                    while (busy == 2 && !stops) {
                        const double begin = now();
                        nothing<<<1, 32, 0, stream>>>();
                        launches.push_back(now() - begin);
                        pause_for(20);
                    }
                });
                pause_for(5000);
                void *memory = nullptr;
                double took = 0;
                const auto lock = [&] {
                    const double begin = now();
                    memory = locked(kind, megabytes << 20);
                    took = now() - begin;
                };
                const bool ended = ends(lock, 1500, flag);
                stops = true;
                launching.join();
                cudaStreamSynchronize(stream);
                printf("%s %3zu MB busy %d: %.2f ms%s; copies", NAMES[kind], megabytes, busy, took,
                       ended ? "" : " WAITED FOR THE KERNEL");
                for (int copy = 0; copy < 3; copy++) {
                    const double begin = now();
                    cudaMemcpyAsync(memory, device, megabytes << 20, cudaMemcpyDeviceToHost, stream);
                    cudaStreamSynchronize(stream);
                    printf(" %.2f", now() - begin);
                }
                printf(" ms");
                if (busy == 2)
                    printf("; slowest of %zu launches %.2f ms", launches.size() - 1,
                           *std::max_element(launches.begin(), launches.end()));
                printf("\n");
            }
    for (int kind = 0; kind < 2; kind++) {
        void *memory = locked(kind, 8 << 20);
        *flag = 0;
        spin<<<1, 1, 0, stream>>>(flag);
        const auto unlock = [&] { kind == 0 ? cudaFreeHost(memory) : cudaHostUnregister(memory); };
        printf("%s: %s\n", kind == 0 ? "free" : "unregister", ends(unlock, 1000, flag) ? "does not wait" : "waits");
        cudaStreamSynchronize(stream);
    }
}
