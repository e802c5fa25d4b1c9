// A program with 1,000 kernels that launches three of them.
#include <utility>

#include "example.cuh"

template <int N>
__global__ void kernel(unsigned *values, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned value = values[index];
    for (unsigned turn = 0; turn < value % (N % 7 + 2); ++turn) {
        value = value % 3 == 1 ? value * 3 + N : value / 2 + turn;
    }
    values[index] = value;
}

using Kernel = void (*)(unsigned *, unsigned);

template <int... N>
Kernel choose(int wanted, std::integer_sequence<int, N...>)
{
    static const Kernel all[] = {kernel<N>...};
    return all[wanted];
}

int main(int argc, char **argv)
{
    const unsigned count = 100000;
    std::vector<unsigned> values(count);
    for (unsigned index = 0; index < count; ++index) {
        values[index] = index;
    }
    unsigned *device_values = upload(values);
    for (int wanted : {3, 500, 999}) {
        choose(wanted, std::make_integer_sequence<int, 1000>())<<<(count + 255) / 256, 256>>>(device_values, count);
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::printf("many %016llx\n", digest(download(device_values, count)));
    return 0;
}
