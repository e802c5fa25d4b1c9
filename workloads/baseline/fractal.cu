// The fractal kernel in CUDA C++, to measure the Rust kernel against: the same arithmetic in the same order, the same
// grid, no tracing.
//
//   nvcc -O3 -arch=native --fmad=false -o fractal fractal.cu
//   ./fractal [width = 2048] [depth = 512] [threads a block = 256] [runs = 9]
//
// `--fmad=false` keeps nvcc from fusing more than the two multiply-adds that the source asks for: the orbit is
// chaotic, and only with equal roundings do both kernels take equally many steps. Without it nvcc saves an
// instruction of the loop, and the sum of steps differs a little.
//
// Prints: program, width, depth, block, runs, median and least milliseconds of the kernel, sum of all pixels' steps.

#include "timing.cuh"

// warptrace_kernels::fractal::fractal
__global__ void fractal(unsigned *__restrict__ image, unsigned pixels, unsigned width, unsigned depth, double left,
                        double top, double pixel)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= pixels) {
        return;
    }
    const unsigned row = index / width;
    const unsigned column = index % width;
    const double cx = fma(double(column), pixel, left);
    const double cy = fma(-double(row), pixel, top);
    double x = cx, y = cy, size;
    unsigned steps = 0;
    do {
        const double x2 = x * x;
        const double y2 = y * y;
        const double next_x = fma(x, x, cx - y2);
        y = fma(x + x, y, cy);
        x = next_x;
        size = x2 + y2;
        ++steps;
    } while (steps < depth && !(size > 5.0));
    image[index] = steps;
}

int main(int argc, char **argv)
{
    const unsigned width = argument(argc, argv, 1, "width", 2048, 1, 1 << 15);
    const unsigned depth = argument(argc, argv, 2, "depth", 512, 1, 1L << 31);
    const unsigned block = argument(argc, argv, 3, "block", 256, 1, 1024);
    const unsigned runs = argument(argc, argv, 4, "runs", 9, 1, 1 << 20);
    // warptrace_workloads::fractal::Region::DEFAULT
    const double left = -0.74395, top = -0.10461, side = 0.00578;

    const unsigned pixels = width * width;
    unsigned *image;
    check(cudaMalloc(&image, pixels * sizeof(unsigned)), "cudaMalloc");
    const unsigned grid = (pixels + block - 1) / block;
    std::vector<float> times;
    // The first run warms up and is not counted.
    for (unsigned run = 0; run <= runs; ++run) {
        const float ms = launch_ms(
            [&] { fractal<<<grid, block>>>(image, pixels, width, depth, left, top, side / double(width)); });
        if (run > 0) {
            times.push_back(ms);
        }
    }
    std::vector<unsigned> steps(pixels);
    check(cudaMemcpy(steps.data(), image, pixels * sizeof(unsigned), cudaMemcpyDeviceToHost), "copy to the host");
    unsigned long long sum = 0;
    for (const unsigned count : steps) {
        sum += count;
    }
    std::printf("fractal,%u,%u,%u,%u,%.4f,%.4f,%llu\n", width, depth, block, runs, median(times),
                *std::min_element(times.begin(), times.end()), sum);
    return 0;
}
