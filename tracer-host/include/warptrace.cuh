// Trace points and values in CUDA C++ for `warptrace run`. Needs nvcc, NVRTC or clang. Host code gets empty
// macros.
//
//     #include "warptrace.cuh"
//
//     if (neighbour == ~0u) {
//         WARPTRACE("no neighbour");
//     }
//
// WARPTRACE(name) adds a trace point. Under `warptrace run`, lanes that execute it make an event at a
// location of this name, whatever `--points` says. The macro compiles to a PTX directive (`.pragma`), which
// costs nothing in untraced runs and needs no library. ptxas warns about the unknown pragma; `-Xptxas -w`
// disables the warning. The compiler may duplicate the trace point with the code around it, or drop it with
// unreachable code.
//
//     WARPTRACE_VALUE("residual", r);
//
// WARPTRACE_VALUE(name, value) names a value: an integer of up to 64 bits, float, double, bool, or a pointer.
// It makes no event. `warptrace run --accesses values` records the value of each lane. The macro compiles to
// a directive that names the register. Untraced runs compute the value, too, unless nothing else needs it:
// then ptxas drops it.
//
// A name is a string literal of ASCII characters without line ends and quotes. The name of a value must not
// contain % { | } either.
#pragma once

#if defined(__CUDA_ARCH__)
#define WARPTRACE(name) asm volatile(".pragma \"WARPTRACE " name "\";")

// Converts values from C++ types to the types of a trace.
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
