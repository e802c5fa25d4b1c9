// Named places: `warptrace run --points functions` shows how often lanes reach them.

#include "../../tracer-host/include/warptrace.cuh"
#include "example.cuh"

__global__ void collatz(const unsigned *starts, unsigned *steps, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned value = starts[index], taken = 0;
    while (value != 1) {
        if (value % 2 == 0) {
            WARPTRACE("even");
            value /= 2;
        } else {
            WARPTRACE("odd");
            value = 3 * value + 1;
        }
        ++taken;
    }
    steps[index] = taken;
}

int main(int argc, char **argv)
{
    const unsigned count = 50000;
    std::vector<unsigned> starts(count);
    for (unsigned index = 0; index < count; ++index) {
        starts[index] = index + 1;
    }
    unsigned *device_starts = upload(starts), *steps = upload(std::vector<unsigned>(count));
    say_time(median_ms(runs(argc, argv), [&] { collatz<<<(count + 127) / 128, 128>>>(device_starts, steps, count); }));
    std::printf("named %016llx\n", digest(download(steps, count)));
    return 0;
}
