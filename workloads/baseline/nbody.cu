// The N-body kernels in CUDA C++, to measure the Rust kernels against: the same arithmetic in the same order, the
// same memory layout, the same grid, no tracing.
//
//   nvcc -O3 -arch=native -o nbody nbody.cu
//   ./nbody [bodies = 50000] [steps = 2] [threads a block = 128] [runs = 9] [sources = bodies]
//
// Only the first `sources` bodies attract.
//
// Prints: program, bodies, steps, block, runs, median and least milliseconds of a run's kernels together. The time
// of these kernels does not depend on the bodies' places, so they are random in a cube. One body's last
// acceleration is checked on the host.

#include <cmath>
#include <cstdint>

#include "timing.cuh"

// warptrace_kernels::nbody::nbody_force
__global__ void nbody_force(const float4 *__restrict__ bodies, float4 *__restrict__ velocities,
                            float4 *__restrict__ accelerations, unsigned count, unsigned sources, unsigned step,
                            float half_step, float softening_squared)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    const float4 here = bodies[index];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned other = 0; other < sources; ++other) {
        const float4 there = bodies[other];
        const float dx = there.x - here.x;
        const float dy = there.y - here.y;
        const float dz = there.z - here.z;
        const float distance_squared = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening_squared)));
        const float inverse = rsqrtf(distance_squared);
        const float scale = (there.w * inverse) * (inverse * inverse);
        sum.x = fmaf(dx, scale, sum.x);
        sum.y = fmaf(dy, scale, sum.y);
        sum.z = fmaf(dz, scale, sum.z);
    }
    if (step > 0) {
        const float4 before = accelerations[index];
        float4 velocity = velocities[index];
        velocity.x = fmaf(sum.x - before.x, half_step, velocity.x);
        velocity.y = fmaf(sum.y - before.y, half_step, velocity.y);
        velocity.z = fmaf(sum.z - before.z, half_step, velocity.z);
        velocities[index] = velocity;
    }
    accelerations[index] = sum;
}

// warptrace_kernels::nbody::nbody_integrate
__global__ void nbody_integrate(float4 *__restrict__ bodies, float4 *__restrict__ velocities,
                                const float4 *__restrict__ accelerations, unsigned count, float whole_step,
                                float half_step)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    const float4 acceleration = accelerations[index];
    float4 velocity = velocities[index];
    float4 body = bodies[index];
    velocity.x = fmaf(acceleration.x, half_step, velocity.x);
    velocity.y = fmaf(acceleration.y, half_step, velocity.y);
    velocity.z = fmaf(acceleration.z, half_step, velocity.z);
    body.x = fmaf(velocity.x, whole_step, body.x);
    body.y = fmaf(velocity.y, whole_step, body.y);
    body.z = fmaf(velocity.z, whole_step, body.z);
    velocity.x = fmaf(acceleration.x, half_step, velocity.x);
    velocity.y = fmaf(acceleration.y, half_step, velocity.y);
    velocity.z = fmaf(acceleration.z, half_step, velocity.z);
    bodies[index] = body;
    velocities[index] = velocity;
}

// SplitMix64 (Steele, Lea, Flood, 2014), as a number in [-1, 1).
static float next_random(uint64_t &state)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<float>(z >> 40) * (2.0f / 16777216.0f) - 1.0f;
}

// The pull on body `index` in double precision, against the kernel's. Relative difference.
static double difference(const std::vector<float4> &bodies, size_t sources, size_t index, float4 found,
                         double softening_squared)
{
    double x = 0, y = 0, z = 0;
    for (size_t other = 0; other < sources; ++other) {
        const float4 there = bodies[other];
        const double dx = double(there.x) - bodies[index].x;
        const double dy = double(there.y) - bodies[index].y;
        const double dz = double(there.z) - bodies[index].z;
        const double square = dx * dx + dy * dy + dz * dz + softening_squared;
        const double scale = there.w / (square * std::sqrt(square));
        x += dx * scale;
        y += dy * scale;
        z += dz * scale;
    }
    const double off = std::hypot(found.x - x, std::hypot(found.y - y, found.z - z));
    return off / std::hypot(x, std::hypot(y, z));
}

int main(int argc, char **argv)
{
    const unsigned count = argument(argc, argv, 1, "bodies", 50000, 1, 1 << 30);
    const unsigned steps = argument(argc, argv, 2, "steps", 2, 1, 1 << 30);
    const unsigned block = argument(argc, argv, 3, "block", 128, 1, 1024);
    const unsigned runs = argument(argc, argv, 4, "runs", 9, 1, 1 << 20);
    const unsigned sources = argument(argc, argv, 5, "sources", count, 1, count);
    const float whole_step = 0.025f, half_step = 0.5f * whole_step, softening_squared = 0.05f * 0.05f;

    uint64_t state = 1;
    std::vector<float4> start(count);
    for (float4 &body : start) {
        body.x = next_random(state);
        body.y = next_random(state);
        body.z = next_random(state);
        body.w = 1.0f / count;
    }
    const size_t bytes = count * sizeof(float4);
    float4 *bodies, *velocities, *accelerations;
    check(cudaMalloc(&bodies, bytes), "cudaMalloc");
    check(cudaMalloc(&velocities, bytes), "cudaMalloc");
    check(cudaMalloc(&accelerations, bytes), "cudaMalloc");

    const unsigned grid = (count + block - 1) / block;
    std::vector<float> times;
    std::vector<float4> before_last(count);
    // The first run warms up and is not counted.
    for (unsigned run = 0; run <= runs; ++run) {
        check(cudaMemcpy(bodies, start.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");
        check(cudaMemset(velocities, 0, bytes), "cudaMemset");
        check(cudaMemset(accelerations, 0, bytes), "cudaMemset");
        float ms = 0;
        for (unsigned step = 0; step < steps; ++step) {
            if (run == 0 && step + 1 == steps) {
                check(cudaMemcpy(before_last.data(), bodies, bytes, cudaMemcpyDeviceToHost), "copy to the host");
            }
            ms += launch_ms([&] {
                nbody_force<<<grid, block>>>(bodies, velocities, accelerations, count, sources, step,
                                             half_step, softening_squared);
            });
            ms += launch_ms([&] {
                nbody_integrate<<<grid, block>>>(bodies, velocities, accelerations, count, whole_step, half_step);
            });
        }
        if (run > 0) {
            times.push_back(ms);
        }
    }
    std::vector<float4> found(count);
    check(cudaMemcpy(found.data(), accelerations, bytes, cudaMemcpyDeviceToHost), "copy to the host");
    // A body that only attracts itself is not accelerated.
    const double off =
        count == 1 ? 0 : difference(before_last, sources, count / 2, found[count / 2], softening_squared);
    if (!(off < 1e-3)) {
        std::fprintf(stderr, "wrong: an acceleration is off by %g of its length\n", off);
        return 1;
    }
    std::printf("nbody,%u,%u,%u,%u,%.4f,%.4f\n", count, steps, block, runs, median(times),
                *std::min_element(times.begin(), times.end()));
    return 0;
}
