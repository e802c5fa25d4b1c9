// Kernels of docs/users/memory.md, each with its improved version, with integers: the interpreter of the test driver runs
// them.
//   nvcc -lineinfo -ptx -arch=compute_80 -o memory.ptx memory.cu

// A block of 32 threads moves a tile of 32 rows and columns; n is a multiple of 32.
extern "C" __global__ void transpose(const unsigned *in, unsigned *out, unsigned n)
{
    const unsigned x = 32 * blockIdx.x + threadIdx.x;
#pragma unroll 1
    for (unsigned row = 32 * blockIdx.y; row < 32 * blockIdx.y + 32; ++row) {
        out[x * n + row] = in[row * n + x];
    }
}

template <unsigned WIDTH>
__device__ void through_tile(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned tile[32][WIDTH];
    const unsigned lane = threadIdx.x;
#pragma unroll 1
    for (unsigned row = 0; row < 32; ++row) {
        tile[row][lane] = in[(32 * blockIdx.y + row) * n + 32 * blockIdx.x + lane];
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned row = 0; row < 32; ++row) {
        out[(32 * blockIdx.x + row) * n + 32 * blockIdx.y + lane] = tile[lane][row];
    }
}

extern "C" __global__ void transpose_tiled(const unsigned *in, unsigned *out, unsigned n)
{
    through_tile<32>(in, out, n);
}

extern "C" __global__ void transpose_padded(const unsigned *in, unsigned *out, unsigned n)
{
    through_tile<33>(in, out, n);
}

// Halves the values of a block of 32 threads: each takes every second word.
extern "C" __global__ void halve(const unsigned *in, unsigned *out, unsigned n)
{
    __shared__ unsigned values[64];
    const unsigned first = 64 * blockIdx.x, lane = threadIdx.x;
    values[lane] = in[first + lane];
    values[lane + 32] = in[first + lane + 32];
    __syncthreads();
    out[32 * blockIdx.x + lane] = values[2 * lane];
}

// n values from 0 to 255.
extern "C" __global__ void histogram(const unsigned *in, unsigned *bins, unsigned n)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        atomicAdd(&bins[in[index]], 1u);
    }
}

// First a histogram of each block.
extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *bins, unsigned n)
{
    __shared__ unsigned own[256];
    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        own[bin] = 0;
    }
    __syncthreads();
    for (unsigned index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += gridDim.x * blockDim.x) {
        atomicAdd(&own[in[index]], 1u);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        if (own[bin] != 0) {
            atomicAdd(&bins[bin], own[bin]);
        }
    }
}

// The sum of each value and its neighbours; the first and the last value have one neighbour.
extern "C" __global__ void stencil(const unsigned *in, unsigned *out, unsigned n)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        out[index] = in[(int)index - 1] + in[index] + in[index + 1];
    }
}

extern "C" __global__ void stencil_guarded(const unsigned *in, unsigned *out, unsigned n)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        const unsigned left = index > 0 ? in[index - 1] : 0, right = index + 1 < n ? in[index + 1] : 0;
        out[index] = left + in[index] + right;
    }
}

// A variable of the module. The program need not request its address.
__device__ unsigned offsets[32] = {3, 1, 4, 1, 5, 9, 2, 6};

extern "C" __global__ void shift(const unsigned *in, unsigned *out, unsigned n)
{
    out[threadIdx.x] = in[threadIdx.x] + offsets[threadIdx.x];
}
