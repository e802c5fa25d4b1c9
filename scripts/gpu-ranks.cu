// Ranks of a job without a library of collectives: each works on its GPU, then all synchronise in a kernel that writes to and
// reads from the others' memory.
//
//     RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 gpu-ranks FOLDER ROUNDS SLOW     one rank of two processes; the last is slow
//     gpu-ranks threads ROUNDS                                          one process, a thread for each of its two GPUs
//
// Prints `kernel_ms`, the sum of the exchanged values, and for rank 0 the lead of the other GPU's timer (`offset_ns`) and
// its error bound (`within_ns`), from the fastest of many messages through peer memory.
#include "gpu-check.cuh"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static const int BLOCKS = 64, THREADS = 256, PINGS = 2000;

// Memory of a rank that the other ranks access.
struct Shared {
    unsigned long long arrived;
    unsigned long long ping, pong;
    // Values of this round and the previous one. The other rank may read a round's values until it begins the next.
    unsigned long long values[2][BLOCKS * THREADS];
    unsigned long long sums[BLOCKS * THREADS];
};

static __device__ unsigned long long timer()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// Steps of the Collatz problem: the length of the loops depends on the numbers.
extern "C" __global__ void work(Shared *own, int round, int times)
{
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long steps = 0;
    for (int turn = 0; turn < times; turn++) {
        unsigned long long number = at + 1 + 977ull * (round + turn);
        while (number > 1) {
            number = number % 2 ? 3 * number + 1 : number / 2;
            steps++;
        }
    }
    own->values[round % 2][at] = steps;
}

// Runs after all blocks of its rank: signals the other rank, waits for its signal, and adds its values.
extern "C" __global__ void meet(Shared *own, volatile Shared *other, unsigned long long round)
{
    if (threadIdx.x == 0) {
        __threadfence_system();
        other->arrived = round;
        while (((volatile Shared *)own)->arrived < round) {
        }
        __threadfence_system();
    }
    __syncthreads();
    for (int at = threadIdx.x; at < BLOCKS * THREADS; at += blockDim.x)
        own->sums[at] += own->values[round % 2][at] + other->values[round % 2][at];
}

// Rank 0 requests the other rank's timer; the other rank replies.
extern "C" __global__ void ask(volatile Shared *own, volatile Shared *other, unsigned long long *found)
{
    unsigned long long best = ~0ull, ahead = 0;
    for (unsigned long long turn = 1; turn <= PINGS; turn++) {
        const unsigned long long sent = timer();
        other->ping = turn;
        unsigned long long answer;
        while ((answer = own->pong) == 0) {
        }
        const unsigned long long back = timer();
        own->pong = 0;
        if (back - sent < best) {
            best = back - sent;
            ahead = answer - (sent + (back - sent) / 2);
        }
    }
    found[0] = ahead;
    found[1] = (best + 1) / 2;
}

extern "C" __global__ void answer(volatile Shared *own, volatile Shared *other)
{
    for (unsigned long long turn = 1; turn <= PINGS; turn++) {
        while (own->ping < turn) {
        }
        other->pong = timer();
    }
}

static int rank_of(int rank, Shared *own, Shared *other, int rounds, int times)
{
    CHECK(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    for (int round = 1; round <= rounds; round++) {
        work<<<BLOCKS, THREADS>>>(own, round, times);
        meet<<<1, THREADS>>>(own, other, round);
    }
    CHECK(cudaDeviceSynchronize());
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    unsigned long long *found;
    CHECK(cudaMalloc(&found, 2 * sizeof *found));
    if (rank == 0)
        ask<<<1, 1>>>(own, other, found);
    else
        answer<<<1, 1>>>(own, other);
    CHECK(cudaDeviceSynchronize());
    unsigned long long result[2];
    CHECK(cudaMemcpy(result, found, sizeof result, cudaMemcpyDeviceToHost));
    std::vector<unsigned long long> sums(BLOCKS * THREADS);
    CHECK(cudaMemcpy(sums.data(), own->sums, sizeof own->sums, cudaMemcpyDeviceToHost));
    unsigned long long sum = 0;
    for (const unsigned long long of_thread : sums)
        sum += of_thread;
    fprintf(stderr, "rank %d\nkernel_ms %.3f\nsum %llu\n", rank, ms, sum);
    if (rank == 0)
        fprintf(stderr, "offset_ns %lld\nwithin_ns %llu\n", (long long)result[0], result[1]);
    return 0;
}

static int threads(int rounds)
{
    Shared *lent[2];
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        CHECK(cudaDeviceEnablePeerAccess(1 - device, 0));
        CHECK(cudaMalloc(&lent[device], sizeof(Shared)));
        CHECK(cudaMemset(lent[device], 0, sizeof(Shared)));
        CHECK(cudaDeviceSynchronize());
    }
    int failed[2] = {0, 0};
    auto of = [&](int device) {
        failed[device] = cudaSetDevice(device) != cudaSuccess || rank_of(device, lent[device], lent[1 - device], rounds, 4);
    };
    std::thread other(of, 1);
    of(0);
    other.join();
    return failed[0] || failed[1];
}

// Waits until a file is complete.
static void read_when_there(const std::string &path, void *bytes, size_t size)
{
    for (;;) {
        std::ifstream file(path, std::ios::binary);
        if (file.read(static_cast<char *>(bytes), size))
            return;
        usleep(1000);
    }
}

int main(int count, char **words)
{
    if (count > 2 && !strcmp(words[1], "threads"))
        return threads(std::atoi(words[2]));
    const char *rank_text = getenv("RANK"), *local = getenv("LOCAL_RANK");
    if (count < 4 || !rank_text || !local) {
        fprintf(stderr, "usage: RANK=0 LOCAL_RANK=0 gpu-ranks FOLDER ROUNDS SLOW, or gpu-ranks threads ROUNDS\n");
        return 2;
    }
    const int rank = std::atoi(rank_text), rounds = std::atoi(words[2]), slow = std::atoi(words[3]);
    CHECK(cudaSetDevice(std::atoi(local)));
    Shared *own, *other;
    CHECK(cudaMalloc(&own, sizeof(Shared)));
    CHECK(cudaMemset(own, 0, sizeof(Shared)));
    CHECK(cudaDeviceSynchronize());
    cudaIpcMemHandle_t handle;
    CHECK(cudaIpcGetMemHandle(&handle, own));
    const std::string folder = words[1];
    const auto name = [&](int of) { return folder + "/memory." + std::to_string(of); };
    std::ofstream(name(rank) + ".part", std::ios::binary).write(reinterpret_cast<char *>(&handle), sizeof handle);
    rename((name(rank) + ".part").c_str(), name(rank).c_str());
    read_when_there(name(1 - rank), &handle, sizeof handle);
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&other), handle, cudaIpcMemLazyEnablePeerAccess));
    const int failed = rank_of(rank, own, other, rounds, rank == 1 ? slow : 4);
    // The memory remains until the other rank has read it.
    std::ofstream(folder + "/done." + std::to_string(rank)).put('1');
    char done;
    read_when_there(folder + "/done." + std::to_string(1 - rank), &done, 1);
    return failed;
}
