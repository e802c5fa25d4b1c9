// A cooperative launch: all blocks of the grid wait for each other between the steps.

#include <cooperative_groups.h>

#include "example.cuh"

namespace cg = cooperative_groups;

__global__ void smooth(float *from, float *to, unsigned count, unsigned steps)
{
    cg::grid_group grid = cg::this_grid();
    for (unsigned step = 0; step < steps; ++step) {
        for (unsigned at = grid.thread_rank(); at < count; at += grid.size()) {
            const float left = at > 0 ? from[at - 1] : 0, right = at + 1 < count ? from[at + 1] : 0;
            to[at] = 0.25f * left + 0.5f * from[at] + 0.25f * right;
        }
        grid.sync();
        float *const other = from;
        from = to;
        to = other;
    }
}

int main(int argc, char **argv)
{
    unsigned count = 1 << 18, steps = 20;
    std::vector<float> values(count);
    unsigned state = 5;
    for (float &value : values) {
        value = float(next_random(state) % 1024);
    }
    float *from = upload(values), *to = upload(values);
    int device = 0, processors = 0, blocks = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, smooth, 128, 0), "occupancy");
    // Half of the blocks that fit: the traced kernel needs additional registers.
    const dim3 grid(processors * (blocks > 1 ? blocks / 2 : 1));
    say_time(median_ms(runs(argc, argv), [&] {
        check(cudaMemcpy(from, values.data(), count * sizeof(float), cudaMemcpyHostToDevice), "copy to the device");
        void *arguments[] = {&from, &to, &count, &steps};
        check(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(smooth), grid, dim3(128), arguments, 0, nullptr),
              "cudaLaunchCooperativeKernel");
    }));
    std::printf("cooperative %016llx\n", digest(download(from, count)));
    return 0;
}
