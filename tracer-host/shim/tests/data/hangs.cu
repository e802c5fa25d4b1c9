// Kernels that never end, each with one pointer to zeros. The interpreter of the test driver runs them.
//   nvcc -O3 -lineinfo -ptx -arch=compute_90 -o hangs.ptx hangs.cu

// One lock for a whole warp: the lane that has it waits for the 31 others. <<<1, 32>>>
extern "C" __global__ void lock(unsigned *m)
{
    while (atomicCAS(m, 0, 1) != 0) {
    }
    m[1] += 1;
    __syncwarp();
    atomicExch(m, 0);
}

// Warp 0 waits at a barrier for warps that wait for a flag, which it sets after that barrier. <<<1, 128>>>
extern "C" __global__ void roles(volatile unsigned *m)
{
    __shared__ unsigned tile[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        tile[lane] = lane;
        __syncthreads();
        __syncthreads();
        if (lane == 0) m[0] = 1;
    } else {
        __syncthreads();
        while (m[0] == 0) {
        }
    }
    if (warp != 0) atomicAdd((unsigned *)&m[1], tile[lane]);
}

__device__ void sync_on(int id, int threads)
{
    asm volatile("barrier.cta.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

__device__ void arrive_on(int id, int threads)
{
    asm volatile("barrier.cta.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

// The producer ends without its last arrival at a numbered barrier. <<<1, 64>>>
extern "C" __global__ void named(unsigned *m)
{
    __shared__ unsigned buffer[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        for (unsigned round = 0; round < 5; ++round) {
            if (round > 0) sync_on(2, 64);
            buffer[lane] = round + lane;
            if (round < 4) arrive_on(1, 64);
        }
    } else {
        unsigned sum = 0;
        for (unsigned round = 0; round < 5; ++round) {
            sync_on(1, 64);
            sum += buffer[31 - lane];
            arrive_on(2, 64);
        }
        atomicAdd(m, sum);
    }
}

// Each block waits for the one before it; block 2 forgets its successor. <<<8, 32>>>
extern "C" __global__ void chain(volatile unsigned *m)
{
    const unsigned block = blockIdx.x;
    if (block > 0) {
        while (m[block - 1] == 0) {
        }
    }
    if (block != 2) m[block] = 1;
}

// A barrier of the whole grid at which block 1 does not arrive. <<<4, 64>>>
extern "C" __global__ void grid_barrier(volatile unsigned *m)
{
    if (blockIdx.x == 1) return;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd((unsigned *)m, 1);
        while (m[0] < gridDim.x) {
        }
    }
    __syncthreads();
    m[1 + blockIdx.x] = 1;
}

// Each block waits for the flag of the previous block, in a ring that no block starts. <<<3, 32>>>
extern "C" __global__ void ring_of_flags(volatile unsigned *m)
{
    const unsigned before = (blockIdx.x + gridDim.x - 1) % gridDim.x;
    while (m[before] == 0) {
    }
    m[blockIdx.x] = 1;
}

// Warp 1 skips a barrier once, and waits for a flag that warp 0 sets after its last barrier. <<<1, 64>>>
extern "C" __global__ void passed_over(volatile unsigned *m)
{
    for (unsigned round = 0; round < 4; ++round) {
        if (threadIdx.x / 32 == 1 && round == 2) continue;
        m[2 + round] = round;
        __syncthreads();
    }
    if (threadIdx.x / 32 == 1) {
        while (m[0] == 0) {
        }
    }
    m[0] = 1;
}

// The consumer waits for a second phase of an mbarrier; the producer has ended. <<<1, 64>>>
extern "C" __global__ void specialised(unsigned *m)
{
    __shared__ unsigned long long full;
    __shared__ unsigned value;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
    __syncthreads();
    if (threadIdx.x / 32 == 0) {
        if (threadIdx.x == 0) {
            value = 7;
            asm volatile("{ .reg .b64 %%t; mbarrier.arrive.shared.b64 %%t, [%0]; }" :: "r"(at) : "memory");
        }
        return;
    }
    for (unsigned phase = 0; phase < 2; ++phase) {
        unsigned done = 0;
        while (!done) {
            asm volatile("{ .reg .pred %%p; mbarrier.test_wait.parity.shared.b64 %%p, [%1], %2; selp.u32 %0, 1, 0, %%p; }"
                         : "=r"(done) : "r"(at), "r"(phase) : "memory");
        }
    }
    atomicAdd(m, value);
}

// Two blocks take two locks in opposite order. <<<2, 32>>>
extern "C" __global__ void lock_order(volatile unsigned *m)
{
    if (threadIdx.x != 0) return;
    const unsigned first = blockIdx.x, second = 1 - first;
    while (atomicCAS((unsigned *)&m[first], 0, 1) != 0) {
    }
    m[2 + first] = 1;
    while (m[2 + second] == 0) {
    }
    while (atomicCAS((unsigned *)&m[second], 0, 1) != 0) {
    }
    m[4] += 1;
}

// Lanes wait for lane 5, which polls a flag that is never set. <<<1, 32>>>
extern "C" __global__ void missing_lane(volatile unsigned *m)
{
    if (threadIdx.x == 5) {
        while (m[0] == 0) {
        }
    }
    __syncwarp();
    m[1 + threadIdx.x] = __shfl_sync(~0u, threadIdx.x, 3);
}

// A loop with two ways through it, which fills any memory. <<<2, 64>>>
extern "C" __global__ void two_ways(volatile unsigned *m)
{
    for (unsigned round = 0; m[0] == 0; ++round) {
        if (round * 2654435761u >> 31) {
            m[1 + threadIdx.x] += 1;
        } else {
            m[65 + threadIdx.x] += 3;
        }
    }
}

__device__ __noinline__ unsigned poll(volatile unsigned *flag)
{
    unsigned polls = 0;
    while (*flag == 0) {
        ++polls;
    }
    return polls;
}

// The loop is in a function. <<<1, 32>>>
extern "C" __global__ void in_a_function(volatile unsigned *m)
{
    m[1] = poll(m);
}

// Ends. <<<1, 32>>>
extern "C" __global__ void quick(unsigned *m)
{
    if (m[512 + threadIdx.x] == 0) m[512 + threadIdx.x] = threadIdx.x;
}
