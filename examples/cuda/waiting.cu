// Kernels in two streams: the first one launched waits for the second.

#include "example.cuh"

__global__ void wait_for(volatile unsigned *flag, unsigned wanted, unsigned *turns)
{
    unsigned looked = 0;
    while (*flag < wanted) {
        ++looked;
    }
    if (threadIdx.x == 0) {
        *turns += looked > 0;
    }
}

__global__ void raise(volatile unsigned *flag)
{
    if (threadIdx.x == 0) {
        *flag += 1;
        __threadfence();
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
    unsigned *flag = upload(std::vector<unsigned>(1)), *turns = upload(std::vector<unsigned>(1));
    // The driver loads a kernel at its first use, and then waits for running kernels. So both are loaded first.
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, wait_for), "cudaFuncGetAttributes");
    check(cudaFuncGetAttributes(&attributes, raise), "cudaFuncGetAttributes");
    cudaStream_t one, other;
    check(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
    for (int round = 1; round <= rounds; ++round) {
        wait_for<<<1, 32, 0, one>>>(flag, round, turns);
        raise<<<1, 32, 0, other>>>(flag);
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    std::printf("waiting %u %s\n", download(flag, 1)[0], download(turns, 1)[0] <= unsigned(rounds) ? "yes" : "no");
    return 0;
}
