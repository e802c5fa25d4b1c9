// Points that the source names, in a loop and on one side of a branch.

#include "../../../../../tracer-host/include/warptrace.cuh"

extern "C" __global__ void named(const unsigned *values, unsigned *out, unsigned count)
{
    unsigned sum = 0;
    for (unsigned index = threadIdx.x; index < count; index += blockDim.x) {
        const unsigned value = values[index];
        if (value % 3 == 0) {
            WARPTRACE("multiple of three");
            sum += value;
            continue;
        }
        WARPTRACE("another value");
        sum ^= value;
    }
    out[threadIdx.x] = sum;
}
