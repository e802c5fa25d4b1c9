// Ends a program with the name of the call that failed.
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
