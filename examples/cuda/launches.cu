// Launches a small kernel ten thousand times without waiting: first about 5 us, then about 70 us each (on an
// H200). Prints to standard error the mean time of a launch, and the mean time of the host's call.
//
//   launches [LAUNCHES [TURNS...]]
#include <chrono>

#include "example.cuh"

__global__ void step(unsigned *values, unsigned count, unsigned turns)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned value = values[index];
    for (unsigned turn = 0; turn < turns; ++turn) {
        value = value * 1664525u + 1013904223u;
        if (value >> 28 == 0) {
            value ^= value >> 7;
        }
    }
    values[index] = value;
}

static double microseconds(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

int main(int argc, char **argv)
{
    const unsigned count = 8192;
    const int launches = argc > 1 ? std::atoi(argv[1]) : 10000;
    std::vector<unsigned> all_turns;
    for (int at = 2; at < argc; ++at) {
        all_turns.push_back(std::atoi(argv[at]));
    }
    if (all_turns.empty()) {
        all_turns = {180, 4500};
    }
    std::vector<unsigned> values(count);
    unsigned state = 7;
    for (unsigned &value : values) {
        value = next_random(state);
    }
    unsigned *device_values = upload(values);
    for (unsigned turns : all_turns) {
        step<<<count / 128, 128>>>(device_values, count, turns);
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const auto begin = std::chrono::steady_clock::now();
        for (int launch = 0; launch < launches; ++launch) {
            step<<<count / 128, 128>>>(device_values, count, turns);
        }
        check(cudaGetLastError(), "launch");
        const double host = microseconds(begin);
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double whole = microseconds(begin);
        std::fprintf(stderr, "turns %u: %.2f us a launch, of which the host took %.2f us to make it\n", turns, whole / launches, host / launches);
        std::printf("launches %u %016llx\n", turns, digest(download(device_values, count)));
    }
    return 0;
}
