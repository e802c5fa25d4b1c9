// Launches the kernels of memory.cu, which access memory in good and in bad ways:
//   memory IMAGE KERNEL  launches one of them on generated values, and prints a sum of the results
//   memory IMAGE lives   allocates memory in all ways, frees some, and launches `transpose` in between
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Function)();
typedef unsigned long long Address;

// Rows and columns of the matrix, number of values, and bins of a histogram.
enum { SIDE = 64, COUNT = SIDE * SIDE, BINS = 256 };

static void *driver;

static int call_failed(int answer, const char *what)
{
    if (answer != 0) {
        printf("%s: error %d\n", what, answer);
    }
    return answer;
}

#define CALL(name, ...) call_failed(((Function)dlsym(driver, #name))(__VA_ARGS__), #name)

static void launch(void *function, unsigned x, unsigned y, unsigned threads, Address in, Address out, unsigned n)
{
    void *parameters[] = {&in, &out, &n};
    CALL(cuLaunchKernel, function, x, y, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

int main(int count, char **words)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || count < 3) {
        return 2;
    }
    void *context = NULL, *module = NULL, *function = NULL;
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoad, &module, words[1]);
    const char *kernel = words[2];
    const int is_lives = strcmp(kernel, "lives") == 0;
    CALL(cuModuleGetFunction, &function, module, is_lives ? "transpose" : kernel);
    static unsigned values[COUNT], results[COUNT];
    for (unsigned at = 0; at < COUNT; at++) {
        // Two thirds of the values are 7.
        values[at] = at % 3 != 0 ? 7 : at * 5 % BINS;
    }
    Address in = 0, out = 0;
    if (is_lives) {
        Address pitched = 0, managed = 0, pool = 0;
        size_t pitch = 0;
        void *host = NULL;
        CALL(cuMemAllocPitch_v2, &pitched, &pitch, (size_t)SIDE * 4, (size_t)SIDE, 4);
        CALL(cuMemAllocManaged, &managed, sizeof values, 1);
        CALL(cuMemAllocAsync, &pool, sizeof values, NULL);
        CALL(cuMemHostAlloc, &host, (size_t)100, 0);
        launch(function, 1, 1, 32, pitched, managed, 32);
        CALL(cuMemFree_v2, pitched);
        launch(function, 1, 1, 32, managed, pool, 32);
        CALL(cuMemFreeAsync, pool, NULL);
        // Probably at the address of the first buffer.
        CALL(cuMemAlloc_v2, &out, (size_t)pitch * SIDE);
        launch(function, 1, 1, 32, managed, out, 32);
        launch(function, 1, 1, 32, out, managed, 32);
        CALL(cuCtxSynchronize);
        return 0;
    }
    const int is_histogram = strncmp(kernel, "histogram", 9) == 0;
    const size_t bytes = is_histogram ? BINS * sizeof *results : sizeof results;
    CALL(cuMemAlloc_v2, &in, sizeof values);
    CALL(cuMemAlloc_v2, &out, bytes);
    CALL(cuMemcpyHtoD_v2, in, values, sizeof values);
    CALL(cuMemcpyHtoD_v2, out, results, bytes);
    if (strncmp(kernel, "transpose", 9) == 0) {
        launch(function, SIDE / 32, SIDE / 32, 32, in, out, SIDE);
    } else if (strcmp(kernel, "halve") == 0) {
        launch(function, COUNT / 64, 1, 32, in, out, COUNT);
    } else if (strcmp(kernel, "shift") == 0) {
        launch(function, 1, 1, 32, in, out, 32);
    } else if (strcmp(kernel, "histogram_shared") == 0) {
        launch(function, 2, 1, 256, in, out, COUNT);
    } else {
        launch(function, COUNT / 128, 1, 128, in, out, COUNT);
    }
    CALL(cuCtxSynchronize);
    CALL(cuMemcpyDtoH_v2, results, out, bytes);
    unsigned sum = 0;
    // Without the first and last value: one kernel computes them from memory beyond the ends of its input.
    for (unsigned at = 1; at < COUNT - 1; at++) {
        sum = sum * 31 + results[at];
    }
    printf("%u\n", sum);
    CALL(cuMemFree_v2, in);
    CALL(cuMemFree_v2, out);
    CALL(cuModuleUnload, module);
    return 0;
}
