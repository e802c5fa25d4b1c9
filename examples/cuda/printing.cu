// A kernel that prints from one thread; four launches of one block, one after the other.

#include "example.cuh"

__global__ void primes(unsigned first)
{
    __shared__ unsigned found;
    if (threadIdx.x == 0) {
        found = 0;
    }
    __syncthreads();
    const unsigned number = first + threadIdx.x;
    bool is_prime = number > 1;
    for (unsigned divisor = 2; divisor * divisor <= number; ++divisor) {
        if (number % divisor == 0) {
            is_prime = false;
            break;
        }
    }
    if (is_prime) {
        atomicAdd(&found, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        printf("%u primes from %u to %u\n", found, first, first + blockDim.x - 1);
    }
}

int main()
{
    for (unsigned first = 0; first < 1024; first += 256) {
        primes<<<1, 256>>>(first);
        check(cudaDeviceSynchronize(), "kernel");
    }
    return 0;
}
