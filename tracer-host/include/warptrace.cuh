// Trace points of your own in CUDA C++, for `warptrace run`.
//
//     #include "warptrace.cuh"
//
//     if (neighbour == ~0u) {
//         WARPTRACE("no neighbour");
//     }
//
// The name is a string literal without line ends. Compiled, it is a comment in the PTX: it costs nothing where nothing
// is traced, and nothing is linked. Under `warptrace run` lanes that come there make an event at a location of this name,
// whatever `--points` says. The compiler may duplicate it with the code around, or drop code that is never reached. It
// needs nvcc, NVRTC or clang; on the host it is nothing.
#pragma once

#if defined(__CUDA_ARCH__)
#define WARPTRACE(name) asm volatile("// WARPTRACE " name)
#else
#define WARPTRACE(name) ((void)0)
#endif
