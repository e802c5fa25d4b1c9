// Clocks of a GPU, and waits of known length. Prints lines `name value...`.
//   gpu-times clocks [SECONDS]  the step of %globaltimer, the rate of the multiprocessors' clocks relative to it, and how
//                               well a pair of readings at each end aligns the clocks of two blocks at their meetings
//   gpu-times waits CYCLES      one warp of each block arrives CYCLES late at a barrier, ten times
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

typedef long long Int;

__device__ __forceinline__ Int cycles() { Int now; asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)); return now; }
__device__ __forceinline__ Int nanoseconds() { Int now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); return now; }
__device__ __forceinline__ unsigned multiprocessor() { unsigned id; asm volatile("mov.u32 %0, %%smid;" : "=r"(id)); return id; }

__global__ void steps(Int *out, int count)
{
    Int last = nanoseconds();
    for (int at = 0; at < count;) {
        const Int now = nanoseconds();
        if (now != last) {
            out[at++] = now - last;
            last = now;
        }
    }
}

struct Pair { Int cycles, nanoseconds; unsigned multiprocessor, unused; };

__device__ Pair pair() { return {cycles(), nanoseconds(), multiprocessor(), 0}; }

__global__ void pairs(Pair *out) { out[blockIdx.x] = pair(); }

enum { MEETINGS = 200 };

// Each block records its clock when all blocks have arrived at a meeting, and a pair of readings at begin and end.
__global__ void meet(unsigned *came, Pair *ends, Int *at)
{
    ends[2 * blockIdx.x] = pair();
    for (int meeting = 0; meeting < MEETINGS; meeting++) {
        for (const Int until = cycles() + 20000; cycles() < until;) {
        }
        atomicAdd(came, 1);
        while (*(volatile unsigned *)came < gridDim.x * (meeting + 1)) {
        }
        at[blockIdx.x * MEETINGS + meeting] = cycles();
    }
    ends[2 * blockIdx.x + 1] = pair();
}

__global__ void late(Int wait, Int *waited)
{
    const int warp = threadIdx.x / 32;
    for (int turn = 0; turn < 10; turn++) {
        if (warp == 2) {
            for (const Int until = cycles() + wait; cycles() < until;) {
            }
        }
        const Int before = cycles();
        __syncthreads();
        const Int behind = cycles();
        if (threadIdx.x == 0) {
            waited[blockIdx.x * 10 + turn] = behind - before;
        }
    }
}

static void must(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <typename T> static T *memory(size_t count)
{
    T *found;
    must(cudaMallocManaged(&found, count * sizeof(T)));
    memset(found, 0, count * sizeof(T));
    return found;
}

template <typename T> static void spread(const char *name, std::vector<T> values)
{
    std::sort(values.begin(), values.end());
    printf("%s min %.9g median %.9g p95 %.9g max %.9g\n", name, (double)values.front(), (double)values[values.size() / 2],
           (double)values[values.size() * 95 / 100], (double)values.back());
}

static double axis(const Pair *ends, Int at)
{
    const double rate = (double)(ends[1].nanoseconds - ends[0].nanoseconds) / (double)(ends[1].cycles - ends[0].cycles);
    return (double)(ends[0].nanoseconds % 1000000000000) + (double)(at - ends[0].cycles) * rate;
}

int main(int count, char **words)
{
    cudaDeviceProp card;
    must(cudaGetDeviceProperties(&card, 0));
    const int blocks = card.multiProcessorCount;
    if (count > 2 && strcmp(words[1], "waits") == 0) {
        Int *waited;
        must(cudaMalloc(&waited, blocks * 10 * sizeof(Int)));
        late<<<blocks, 128>>>(atoll(words[2]), waited);
        std::vector<Int> all(blocks * 10);
        must(cudaMemcpy(all.data(), waited, all.size() * sizeof(Int), cudaMemcpyDeviceToHost));
        spread("waited", all);
        return 0;
    }
    Int *diffs = memory<Int>(2000);
    steps<<<1, 1>>>(diffs, 2000);
    must(cudaDeviceSynchronize());
    spread("step_ns", std::vector<Int>(diffs, diffs + 2000));
    Pair *first = memory<Pair>(blocks), *last = memory<Pair>(blocks);
    pairs<<<blocks, 1024, 25 << 10>>>(first);
    must(cudaDeviceSynchronize());
    const double seconds = count > 2 ? atof(words[2]) : 10;
    // The clock keeps its rate only while a kernel runs.
    unsigned *came = memory<unsigned>(1);
    Pair *ends = memory<Pair>(2 * blocks);
    Int *at = memory<Int>(blocks * MEETINGS);
    std::vector<double> errors;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    must(cudaEventRecord(begin));
    for (float passed = 0; passed < seconds * 1000;) {
        *came = 0;
        meet<<<blocks, 1>>>(came, ends, at);
        must(cudaEventRecord(end));
        must(cudaEventSynchronize(end));
        must(cudaEventElapsedTime(&passed, begin, end));
        for (int meeting = 0; meeting < MEETINGS; meeting++) {
            double least = HUGE_VAL, most = -HUGE_VAL;
            for (int block = 0; block < blocks; block++) {
                const double time = axis(ends + 2 * block, at[block * MEETINGS + meeting]);
                least = std::min(least, time);
                most = std::max(most, time);
            }
            errors.push_back(most - least);
        }
    }
    // The spread over all blocks includes the time of polling.
    spread("meeting_ns", errors);
    pairs<<<blocks, 1024, 25 << 10>>>(last);
    must(cudaDeviceSynchronize());
    std::vector<double> rates, offsets;
    for (int block = 0; block < blocks; block++) {
        for (int other = 0; other < blocks; other++) {
            if (first[block].multiprocessor == last[other].multiprocessor) {
                rates.push_back((double)(last[other].cycles - first[block].cycles) /
                                (double)(last[other].nanoseconds - first[block].nanoseconds));
            }
        }
        offsets.push_back((double)(first[block].cycles - first[0].cycles));
    }
    spread("cycles_per_ns", rates);
    spread("offset_cycles", offsets);
}
