// Trace points of your own in CUDA C++, for `warptrace run`.
//
//     #include "warptrace.cuh"
//
//     if (neighbour == ~0u) {
//         WARPTRACE("no neighbour");
//     }
//
// The name is a string literal of ASCII without line ends and quotes. Compiled, it is a directive in the PTX
// (`.pragma`): it costs nothing where nothing is traced, and nothing is linked; ptxas warns that it does not know it,
// which `-Xptxas -w` leaves out. Under `warptrace run` lanes that come there make an event at a location of this name,
// whatever `--points` says. The compiler may duplicate it with the code around, or drop code that is never reached. It
// needs nvcc, NVRTC or clang; on the host it is nothing.
//
//     WARPTRACE_VALUE("residual", r);
//
// names a value: an integer of up to 64 bits, float, double, bool, or a pointer. `warptrace run --accesses values` records
// what each lane held; it makes no event. Compiled, it is a directive that names the register. The name is a string
// literal of ASCII without line ends and quotes, and without % { | }. The value is computed where nothing is traced, too, unless nothing else needs it:
// the assembler then drops it.
#pragma once

#if defined(__CUDA_ARCH__)
#define WARPTRACE(name) asm volatile(".pragma \"WARPTRACE " name "\";")

// The types that a trace has, from those of C++.
static __device__ __forceinline__ unsigned warptrace_wide(bool value) { return value; }
static __device__ __forceinline__ unsigned warptrace_wide(unsigned char value) { return value; }
static __device__ __forceinline__ unsigned warptrace_wide(unsigned short value) { return value; }
static __device__ __forceinline__ unsigned warptrace_wide(unsigned value) { return value; }
static __device__ __forceinline__ int warptrace_wide(char value) { return value; }
static __device__ __forceinline__ int warptrace_wide(signed char value) { return value; }
static __device__ __forceinline__ int warptrace_wide(short value) { return value; }
static __device__ __forceinline__ int warptrace_wide(int value) { return value; }
static __device__ __forceinline__ unsigned long long warptrace_wide(unsigned long value) { return value; }
static __device__ __forceinline__ unsigned long long warptrace_wide(unsigned long long value) { return value; }
static __device__ __forceinline__ long long warptrace_wide(long value) { return value; }
static __device__ __forceinline__ long long warptrace_wide(long long value) { return value; }
static __device__ __forceinline__ float warptrace_wide(float value) { return value; }
static __device__ __forceinline__ double warptrace_wide(double value) { return value; }
template <class T>
static __device__ __forceinline__ unsigned long long warptrace_wide(T *value)
{
    return (unsigned long long)value;
}
template <class A, class B>
struct warptrace_same {
    enum { value = 0 };
};
template <class A>
struct warptrace_same<A, A> {
    enum { value = 1 };
};

#define WARPTRACE_VALUE_AS(name, type, word, letter)                                                                  \
    if (warptrace_same<decltype(warptrace_wide_value), type>::value)                                                  \
    asm volatile(".pragma \"WARPTRACE_VALUE " word " %0 " name "\";" ::letter((type)warptrace_wide_value))
#define WARPTRACE_VALUE(name, value)                                                                                  \
    do {                                                                                                              \
        auto warptrace_wide_value = warptrace_wide(value);                                                            \
        WARPTRACE_VALUE_AS(name, unsigned, "u32", "r");                                                               \
        WARPTRACE_VALUE_AS(name, int, "i32", "r");                                                                    \
        WARPTRACE_VALUE_AS(name, unsigned long long, "u64", "l");                                                     \
        WARPTRACE_VALUE_AS(name, long long, "i64", "l");                                                              \
        WARPTRACE_VALUE_AS(name, float, "f32", "f");                                                                  \
        WARPTRACE_VALUE_AS(name, double, "f64", "d");                                                                 \
    } while (0)
#else
#define WARPTRACE(name) ((void)0)
#define WARPTRACE_VALUE(name, value) ((void)0)
#endif
