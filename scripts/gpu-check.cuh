// If a CUDA call fails, prints the call and returns 1 from the enclosing function.
#pragma once

#include <cstdio>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                             \
    do {                                                                                                        \
        const cudaError_t error = (call);                                                                       \
        if (error != cudaSuccess) {                                                                             \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                      \
            return 1;                                                                                           \
        }                                                                                                       \
    } while (0)
