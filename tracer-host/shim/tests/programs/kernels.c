// Launches kernels like Triton's programs:
//   kernels IMAGE NAME THREADS SHARED  launches one kernel twice, with attributes and dynamic shared memory
//   kernels IMAGE many                 looks up the kernels k0 to k99, and launches the first, a middle, and
//                                      the last
// IMAGE: a file. `library:FILE` loads it as a library. Prints the results of a kernel with `collatz` in its
// name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Function)();
typedef unsigned long long Address;

enum { COUNT = 70, ROOM = 1 << 16 };

static void *driver;

static int call_failed(int answer, const char *what)
{
    if (answer != 0) {
        printf("%s: error %d\n", what, answer);
    }
    return answer;
}

#define CALL(name, ...) call_failed(((Function)dlsym(driver, #name))(__VA_ARGS__), #name)

static void launch(void *function, unsigned blocks, unsigned threads, unsigned shared, void **parameters)
{
    struct { unsigned sizes[7]; void *stream, *attributes; unsigned count; } config = {{blocks, 1, 1, threads, 1, 1, shared}};
    CALL(cuLaunchKernelEx, &config, function, parameters, NULL);
}

int main(int count, char **words)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || count < 3) {
        return 2;
    }
    int device = 0;
    void *context = NULL, *module = NULL, *function = NULL;
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    const char *path = words[1];
    const int is_library = strncmp(path, "library:", 8) == 0;
    path += is_library ? 8 : 0;
    FILE *file = fopen(path, "rb");
    char *image = calloc(1, 4 << 20);
    if (file == NULL || fread(image, 1, (4 << 20) - 1, file) == 0) {
        return 2;
    }
    fclose(file);
    if (is_library) {
        CALL(cuLibraryLoadData, &module, image, NULL, NULL, 0, NULL, NULL, 0);
    } else {
        CALL(cuModuleLoadData, &module, image);
    }
    // Programs may free an image after loading. The shim must not read it later.
    memset(image, 0, 4 << 20);
    Address in = 0, out = 0;
    CALL(cuMemAlloc_v2, &in, (size_t)ROOM);
    CALL(cuMemAlloc_v2, &out, (size_t)ROOM);
    int numbers[COUNT], results[COUNT] = {0}, length = COUNT, limit = 120;
    for (int at = 0; at < COUNT; at++) {
        numbers[at] = at + 1;
    }
    CALL(cuMemcpyHtoD_v2, in, numbers, sizeof numbers);
    CALL(cuMemcpyHtoD_v2, out, results, sizeof results);
    if (strcmp(words[2], "many") == 0) {
        for (int at = 0; at < 100; at++) {
            char name[16];
            snprintf(name, sizeof name, "k%d", at);
            CALL(cuModuleGetFunction, &function, module, name);
            void *parameters[] = {&out};
            if (at == 0 || at == 50 || at == 99) {
                launch(function, 1, 32, 0, parameters);
                launch(function, 1, 32, 0, parameters);
            }
        }
    } else {
        const unsigned threads = atoi(words[3]), shared = atoi(words[4]);
        void *collatz[] = {&in, &out, &length, &limit, &in, &in};
        // The values are not used: the test driver computes no floating point.
        void *others[16];
        for (int at = 0; at < 16; at++) {
            others[at] = &in;
        }
        const int is_collatz = strstr(words[2], "collatz") != NULL;
        if (is_library) {
            CALL(cuLibraryGetKernel, &function, module, words[2]);
        } else {
            CALL(cuModuleGetFunction, &function, module, words[2]);
        }
        if (shared > 48 << 10) {
            CALL(cuFuncSetAttribute, function, 8, shared);
        }
        CALL(cuFuncSetAttribute, function, 9, 50);
        for (int round = 0; round < 2; round++) {
            launch(function, (COUNT + 31) / 32, threads, shared, is_collatz ? collatz : others);
        }
        CALL(cuFuncSetAttribute, function, 9, 60);
    }
    CALL(cuCtxSynchronize);
    CALL(cuMemcpyDtoH_v2, results, out, sizeof results);
    for (int at = 0; at < COUNT; at++) {
        printf("%d ", results[at]);
    }
    puts("");
    if (is_library) {
        CALL(cuLibraryUnload, module);
    } else {
        CALL(cuModuleUnload, module);
    }
    return 0;
}
