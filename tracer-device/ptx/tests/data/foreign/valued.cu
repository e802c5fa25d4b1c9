// Values with names, of each type; compiled by NVRTC 13.5.
#include "warptrace.cuh"

__device__ __noinline__ void far_away(float *out, float value)
{
    WARPTRACE_VALUE("in a function", value);
    *out = value * 2.0f;
}

extern "C" __global__ void valued(const float *data, float *out, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    float sum = 0.0f;
    for (unsigned k = 0; k < index % 5; ++k) {
        const float part = 1.0f / (data[k] - 2.0f);
        WARPTRACE_VALUE("part", part);
        WARPTRACE_VALUE("rows left", (int)(index % 5) - 7 - (int)k);
        sum += part;
    }
    WARPTRACE_VALUE("sum", (double)sum);
    WARPTRACE_VALUE("is even", index % 2 == 0);
    WARPTRACE_VALUE("byte", (unsigned char)(index + 250));
    WARPTRACE_VALUE("far", (long long)index - (1ll << 40));
    WARPTRACE_VALUE("out", out + index);
    far_away(out + index, sum);
}
