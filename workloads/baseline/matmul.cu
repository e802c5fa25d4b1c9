// The matrix multiplication in CUDA C++, to measure the Rust kernel against: the same tiles, the same arithmetic in the
// same order, the same memory layout, the same grid, no tracing.
//
//   nvcc -O3 -arch=native -o matmul matmul.cu
//   ./matmul [size = 2048] [runs = 9]
//
// Prints: program, size, runs, median and least milliseconds of the kernel. The elements are multiples of 1/16 in
// [-1, 1], so that no sum rounds up to the largest size; some rows are checked on the host, exactly.

#include <cstdint>

#include "timing.cuh"

// warptrace_kernels::matmul: QUADRANT_ROWS and QUADRANT_COLUMNS are ROWS and COLUMNS here, the others have their names.
constexpr unsigned TILE_ROWS = 64, TILE_COLUMNS = 128, DEPTH = 8, BLOCK = 128, ROWS = 16, COLUMNS = 32;
constexpr unsigned A_STRIDE = TILE_ROWS + 4, B_LINE = TILE_COLUMNS / 4;

static __device__ __forceinline__ void outer(float4 (&sums)[4], float4 rows, float4 columns)
{
    const float by[4] = {rows.x, rows.y, rows.z, rows.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        sums[i].x = fmaf(by[i], columns.x, sums[i].x);
        sums[i].y = fmaf(by[i], columns.y, sums[i].y);
        sums[i].z = fmaf(by[i], columns.z, sums[i].z);
        sums[i].w = fmaf(by[i], columns.w, sums[i].w);
    }
}

static __device__ __forceinline__ void fill(float *a_to, float4 *b_to, float4 a, float4 b, float4 more_b)
{
    a_to[0] = a.x;
    a_to[A_STRIDE] = a.y;
    a_to[2 * A_STRIDE] = a.z;
    a_to[3 * A_STRIDE] = a.w;
    b_to[0] = b;
    b_to[DEPTH / 2 * B_LINE] = more_b;
}

static __device__ __forceinline__ void store(float4 *c, unsigned size, unsigned row, unsigned column,
                                             const float4 (&sums)[4])
{
    if (row < size && column < size) {
        const size_t line = size / 4;
        const size_t first = row * line + column / 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            c[first + i * line] = sums[i];
        }
    }
}

// warptrace_kernels::matmul::matmul
__global__ void matmul(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *__restrict__ c,
                       unsigned size, unsigned tiles)
{
    __shared__ __align__(16) float tiles_a[2 * DEPTH * A_STRIDE];
    __shared__ float4 tiles_b[2 * DEPTH * B_LINE];
    const unsigned thread = threadIdx.x;
    const unsigned top = blockIdx.x / tiles * TILE_ROWS, left = blockIdx.x % tiles * TILE_COLUMNS;
    const unsigned line = size / 4;

    const unsigned a_row = thread / 2, a_part = thread % 2, b_row = thread / 32, b_part = thread % 32;
    const size_t b_half = size_t(DEPTH / 2) * line;
    const float4 *a_from = a + size_t(min(top + a_row, size - 1)) * line + a_part;
    const float4 *b_from = b + size_t(b_row) * line + min(left / 4 + b_part, line - 1);
    float *const a_to = tiles_a + a_part * 4 * A_STRIDE + a_row;
    float4 *const b_to = tiles_b + b_row * B_LINE + b_part;

    const unsigned warp = thread / 32, lane = thread % 32;
    const unsigned row = warp / 2 * 32 + lane / 8 * 4, column = warp % 2 * 64 + lane % 8 * 4;
    float4 sums[4][4] = {};

    fill(a_to, b_to, *a_from, *b_from, b_from[b_half]);
    __syncthreads();
    unsigned now = 0;
    for (unsigned pairs = size / DEPTH; pairs != 0;) {
        --pairs;
        const unsigned next = 1 - now;
        const size_t more = pairs != 0;
        a_from += more * (DEPTH / 4);
        b_from += more * 2 * b_half;
        const float4 next_a = *a_from, next_b = *b_from, more_b = b_from[b_half];
        const float *here_a = tiles_a + now * DEPTH * A_STRIDE + row;
        const float4 *here_b = tiles_b + now * DEPTH * B_LINE + column / 4;
#pragma unroll
        for (unsigned k = 0; k < DEPTH; ++k) {
            const float4 upper = *reinterpret_cast<const float4 *>(here_a + k * A_STRIDE);
            const float4 lower = *reinterpret_cast<const float4 *>(here_a + k * A_STRIDE + ROWS);
            const float4 near = here_b[k * B_LINE], far = here_b[k * B_LINE + COLUMNS / 4];
            outer(sums[0], upper, near);
            outer(sums[1], upper, far);
            outer(sums[2], lower, near);
            outer(sums[3], lower, far);
        }
        fill(a_to + next * DEPTH * A_STRIDE, b_to + next * DEPTH * B_LINE, next_a, next_b, more_b);
        now = next;
        __syncthreads();
    }

    store(c, size, top + row, left + column, sums[0]);
    store(c, size, top + row, left + column + COLUMNS, sums[1]);
    store(c, size, top + row + ROWS, left + column, sums[2]);
    store(c, size, top + row + ROWS, left + column + COLUMNS, sums[3]);
}

// SplitMix64 (Steele, Lea, Flood, 2014), as a multiple of 1/16 in [-1, 1].
static float next_random(uint64_t &state)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (static_cast<int>((z >> 32) % 33) - 16) / 16.0f;
}

int main(int argc, char **argv)
{
    const unsigned size = argument(argc, argv, 1, "size", 2048, 8, 1 << 14);
    const unsigned runs = argument(argc, argv, 2, "runs", 9, 1, 1 << 20);
    if (size % DEPTH != 0) {
        std::fprintf(stderr, "size is %u: it is a multiple of %u\n", size, DEPTH);
        return 2;
    }
    const size_t count = size_t(size) * size, bytes = count * sizeof(float);
    uint64_t state = 1;
    std::vector<float> left(count), right(count), product(count);
    for (size_t i = 0; i < count; ++i) {
        left[i] = next_random(state);
        right[i] = next_random(state);
    }
    float4 *a, *b, *c;
    check(cudaMalloc(&a, bytes), "cudaMalloc");
    check(cudaMalloc(&b, bytes), "cudaMalloc");
    check(cudaMalloc(&c, bytes), "cudaMalloc");
    check(cudaMemcpy(a, left.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");
    check(cudaMemcpy(b, right.data(), bytes, cudaMemcpyHostToDevice), "copy to the device");

    const unsigned tiles = (size + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const unsigned blocks = (size + TILE_ROWS - 1) / TILE_ROWS * tiles;
    std::vector<float> times;
    // The first run warms up and is not counted.
    for (unsigned run = 0; run <= runs; ++run) {
        const float ms = launch_ms([&] { matmul<<<blocks, BLOCK>>>(a, b, c, size, tiles); });
        if (run > 0) {
            times.push_back(ms);
        }
    }
    check(cudaMemcpy(product.data(), c, bytes, cudaMemcpyDeviceToHost), "copy to the host");
    for (const size_t row : {size_t(0), size_t(size / 3), size_t(size - 1)}) {
        std::vector<double> sums(size, 0.0);
        for (size_t k = 0; k < size; ++k) {
            for (size_t column = 0; column < size; ++column) {
                sums[column] += double(left[row * size + k]) * right[k * size + column];
            }
        }
        for (size_t column = 0; column < size; ++column) {
            if (product[row * size + column] != sums[column]) {
                std::fprintf(stderr, "wrong: element (%zu, %zu) is %g, not %g\n", row, column,
                             product[row * size + column], sums[column]);
                return 1;
            }
        }
    }
    std::printf("matmul,%u,%u,%.4f,%.4f\n", size, runs, median(times), *std::min_element(times.begin(), times.end()));
    return 0;
}
