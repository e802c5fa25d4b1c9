// Uses the driver like users' programs. WAY selects how it finds the driver's functions:
//   app WAY IMAGE [ACTION...]
// WAY: dlsym, dlvsym, proc (cuGetProcAddress), thread (the same, with per-thread streams), linked (if
// compiled so).
// IMAGE: a file with PTX or a fatbin. `wrapped:FILE` passes a fatbin wrapper, as programs of nvcc do.
// `file:FILE` loads the file by name.
// ACTIONS: block (one block with all warps), library, extra, twice, capture, nvrtc, link, link-two, graph,
// change, fail-last, fork, early-fork, exit (without exit handlers), abort, reset, late-reset, list, parts
// (records only the second and third of three launches), many (TEST_LAUNCHES launches of one small block).
// Prints the results of kernel `walk`, their sum, and errors.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "warptrace.h"

typedef int (*Function)();
typedef unsigned long long Address;

#ifdef LINKED
int cuInit(), cuDeviceGet(), cuDevicePrimaryCtxRetain(), cuDevicePrimaryCtxReset_v2(), cuCtxSetCurrent(), cuMemAlloc_v2();
int cuMemcpyHtoD_v2(), cuMemcpyDtoH_v2(), cuModuleLoadData(), cuModuleLoad(), cuModuleGetFunction();
int cuLibraryLoadData(), cuLibraryGetKernel(), cuLaunchKernel(), cuCtxSynchronize(), cuFuncSetAttribute();
int cuModuleGetFunctionCount(), cuModuleEnumerateFunctions();
#endif

static const char *way;
static void *library;
static int (*resolve)(const char *, void **, int, unsigned long long, int *);

static Function find(const char *name, const char *plain)
{
    void *found = NULL;
    if (strcmp(way, "linked") == 0) {
#ifdef LINKED
#define LINK(function) if (strcmp(name, #function) == 0) return (Function)function;
        LINK(cuInit) LINK(cuDeviceGet) LINK(cuDevicePrimaryCtxRetain) LINK(cuDevicePrimaryCtxReset_v2)
        LINK(cuCtxSetCurrent) LINK(cuMemAlloc_v2) LINK(cuMemcpyHtoD_v2) LINK(cuMemcpyDtoH_v2) LINK(cuModuleLoadData)
        LINK(cuModuleLoad) LINK(cuModuleGetFunction) LINK(cuLibraryLoadData) LINK(cuLibraryGetKernel)
        LINK(cuLaunchKernel) LINK(cuCtxSynchronize) LINK(cuFuncSetAttribute) LINK(cuModuleGetFunctionCount)
        LINK(cuModuleEnumerateFunctions)
#endif
    } else if (strcmp(way, "dlsym") == 0) {
        found = dlsym(library, name);
    } else if (strcmp(way, "dlvsym") == 0) {
        found = dlvsym(library, name, "no version");
        if (found == NULL) {
            found = dlsym(library, name);
        }
    } else {
        int status;
        if (resolve == NULL) {
            resolve = dlsym(library, "cuGetProcAddress_v2");
        }
        // Continues with the function that `cuGetProcAddress` returns for its own name.
        void *again = NULL;
        resolve("cuGetProcAddress", &again, 12000, 0, &status);
        if (again != NULL) {
            resolve = again;
        }
        resolve(plain, &found, 13000, strcmp(way, "thread") == 0 ? 2 : 0, &status);
    }
    if (found == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return (Function)found;
}

static void check(int answer, const char *what)
{
    if (answer != 0) {
        printf("%s: error %d\n", what, answer);
    }
}

static int has(int count, char **words, const char *word)
{
    for (int at = 3; at < count; at++) {
        if (strcmp(words[at], word) == 0) {
            return 1;
        }
    }
    return 0;
}

static int (*late_reset)();

static void reset_late(void)
{
    late_reset(0);
}

enum { THREADS = 96 };

int main(int count, char **words)
{
    way = words[1];
    if (has(count, words, "early-fork")) {
        // The child does the work.
        const pid_t child = fork();
        if (child != 0) {
            int status = 0;
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
    }
    if (strcmp(way, "linked") != 0) {
        library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == NULL) {
            puts("no driver");
            return 0;
        }
    }
    if (dlsym(RTLD_NEXT, "getpid") == NULL || dlsym(RTLD_DEFAULT, "no_such_function") != NULL) {
        puts("dlsym is broken");
    }
    int device = 0;
    void *context = NULL, *module = NULL, *function = NULL;
    check(find("cuInit", "cuInit")(0), "cuInit");
    check(find("cuDeviceGet", "cuDeviceGet")(&device, 0), "cuDeviceGet");
    check(find("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain")(&context, device), "retain");
    check(find("cuCtxSetCurrent", "cuCtxSetCurrent")(context), "set current");

    const char *path = words[2];
    char *image = calloc(1, 1 << 20);
    const int by_name = strncmp(path, "file:", 5) == 0, wrapped = strncmp(path, "wrapped:", 8) == 0;
    path += by_name ? 5 : wrapped ? 8 : 0;
    if (has(count, words, "nvrtc")) {
        // Compiles machine code at run time.
        void *compiler = dlopen("libnvrtc-test.so", RTLD_NOW);
        const char *options[] = {"-arch=sm_90"};
        size_t bytes = 0;
        setenv("NVRTC_PTX", path, 1);
        check(((Function)dlsym(compiler, "nvrtcCompileProgram"))(context, 1, options), "compile");
        check(((Function)dlsym(compiler, "nvrtcGetCUBINSize"))(context, &bytes), "size");
        check(((Function)dlsym(compiler, "nvrtcGetCUBIN"))(context, image), "code");
        printf("compiled: %s\n", bytes > 0 ? "yes" : "no");
        path = "/dev/null";
    }
    FILE *file = fopen(path, "rb");
    const int is_compiled = image[0] != 0;
    if (is_compiled) {
    } else if (file == NULL || fread(image, 1, (1 << 20) - 1, file) == 0) {
        return 2;
    }
    fclose(file);
    struct { unsigned magic, version; void *data, *unused; } wrapper = {0x466243b1, 1, image, NULL};
    const void *loaded = wrapped ? (void *)&wrapper : (void *)image;

    void *link = NULL;
    for (int input = 0; input < has(count, words, "link") + 2 * has(count, words, "link-two"); input++) {
        void *code = NULL;
        size_t bytes = 0;
        if (link == NULL) {
            check(find("cuLinkCreate_v2", "cuLinkCreate")(0, NULL, NULL, &link), "link");
        }
        check(find("cuLinkAddData_v2", "cuLinkAddData")(link, 1, image, strlen(image) + 1, "a", 0, NULL, NULL), "add");
        check(find("cuLinkComplete", "cuLinkComplete")(link, &code, &bytes), "complete");
        loaded = code;
    }

    const int is_library = has(count, words, "library");
    const char *kernel = "walk";
    if (is_library) {
        check(find("cuLibraryLoadData", "cuLibraryLoadData")(&module, loaded, NULL, NULL, 0, NULL, NULL, 0), "load");
        check(find("cuLibraryGetKernel", "cuLibraryGetKernel")(&function, module, kernel), "get");
    } else if (by_name) {
        check(find("cuModuleLoad", "cuModuleLoad")(&module, path), "load");
        check(find("cuModuleGetFunction", "cuModuleGetFunction")(&function, module, kernel), "get");
    } else {
        check(find("cuModuleLoadData", "cuModuleLoadData")(&module, loaded), "load");
        check(find("cuModuleGetFunction", "cuModuleGetFunction")(&function, module, kernel), "get");
    }
    if (has(count, words, "list")) {
        unsigned functions = 0;
        void *all[64];
        check(find("cuModuleGetFunctionCount", "cuModuleGetFunctionCount")(&functions, module), "count");
        check(find("cuModuleEnumerateFunctions", "cuModuleEnumerateFunctions")(all, functions, module), "list");
        printf("functions %u\n", functions);
    }
    check(find("cuFuncSetAttribute", "cuFuncSetAttribute")(function, 9, 50), "attribute");

    unsigned in[THREADS], out[THREADS] = {0}, total = 0;
    for (unsigned at = 0; at < THREADS; at++) {
        in[at] = at % 41;
    }
    Address input = 0, output = 0, sum = 0;
    Function allocate = find("cuMemAlloc_v2", "cuMemAlloc"), up = find("cuMemcpyHtoD_v2", "cuMemcpyHtoD");
    check(allocate(&input, sizeof in), "allocate");
    check(allocate(&output, sizeof out), "allocate");
    check(allocate(&sum, sizeof total), "allocate");
    check(up(input, in, sizeof in), "copy");
    check(up(output, out, sizeof out), "copy");
    check(up(sum, &total, sizeof total), "copy");

    const int is_many = has(count, words, "many");
    const int is_block = has(count, words, "block");
    unsigned threads = is_many ? 2 : THREADS - 3;
    void *parameters[] = {&input, &output, &sum, &threads};
    struct { Address input, output, sum; unsigned threads; } buffer = {input, output, sum, threads};
    // Without the padding at the end of the structure.
    size_t size = offsetof(__typeof__(buffer), threads) + sizeof threads;
    void *extra[] = {(void *)1, &buffer, (void *)2, &size, NULL};
    const int has_extra = has(count, words, "extra");
    void *stream = has(count, words, "capture") ? (void *)0x77 : NULL;
    Function launch = find("cuLaunchKernel", "cuLaunchKernel");
    const int launches = is_many ? atoi(getenv("TEST_LAUNCHES")) : has(count, words, "parts") ? 3 : has(count, words, "twice") ? 2 : 1;
    for (int round = 0; round < launches; round++) {
        if (has(count, words, "parts")) {
            // The second launch is recorded into a separate file, the third into the file of the settings.
            const int answer = round == 0 ? warptrace_end() : warptrace_begin(round == 1 ? getenv("OWN_TRACE") : NULL);
            fprintf(stderr, "told %d\n", answer);
        }
        check(launch(function, is_many || is_block ? 1 : 3, 1, 1, is_block ? THREADS : 32, 1, 1, 0, stream, has_extra ? NULL : parameters, has_extra ? extra : NULL),
              "launch");
    }
    if (has(count, words, "graph")) {
        // Two kernels, launched twice or three times. The third launch has fewer blocks of the second kernel.
        struct { void *function; unsigned sizes[7]; void **parameters, **extra; void *kernel, *context; }
            node = {function, {3, 1, 1, 32, 1, 1, 0}, parameters, NULL, NULL, NULL};
        void *graph = NULL, *nodes[2], *ready = NULL;
        check(find("cuGraphCreate", "cuGraphCreate")(&graph, 0), "graph");
        Function add = find("cuGraphAddKernelNode_v2", "cuGraphAddKernelNode");
        check(add(&nodes[0], graph, NULL, 0L, &node), "node");
        check(add(&nodes[1], graph, &nodes[0], 1L, &node), "node");
        check(find("cuGraphInstantiateWithFlags", "cuGraphInstantiate")(&ready, graph, 0L), "instantiate");
        const int is_changed = has(count, words, "change");
        if (!is_changed) {
            // The executable graph stays valid.
            check(find("cuGraphDestroy", "cuGraphDestroy")(graph), "destroy");
        }
        Function go = find("cuGraphLaunch", "cuGraphLaunch");
        check(go(ready, NULL), "launch of a graph");
        check(go(ready, NULL), "launch of a graph");
        if (is_changed) {
            node.sizes[0] = 1;
            check(find("cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams")(ready, nodes[1], &node), "set");
            check(go(ready, NULL), "launch of a graph");
            check(find("cuGraphDestroy", "cuGraphDestroy")(graph), "destroy");
        }
        check(find("cuGraphExecDestroy", "cuGraphExecDestroy")(ready), "destroy");
    }
    if (has(count, words, "fail-last")) {
        void *fails = NULL, *values[] = {&input};
        check(find("cuModuleGetFunction", "cuModuleGetFunction")(&fails, module, "fail"), "get");
        check(launch(fails, 1, 1, 1, 32, 1, 1, 0, NULL, values, NULL), "launch");
    }
    if (has(count, words, "fork") && fork() == 0) {
        // A forked child cannot use the driver. Its calls must not change the parent's trace.
        launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        exit(0);
    }
    while (wait(NULL) > 0) {
    }
    check(find("cuCtxSynchronize", "cuCtxSynchronize")(), "synchronize");
    Function down = find("cuMemcpyDtoH_v2", "cuMemcpyDtoH");
    check(down(out, output, sizeof out), "copy back");
    check(down(&total, sum, sizeof total), "copy back");
    for (unsigned at = 0; at < THREADS; at++) {
        printf("%u ", out[at]);
    }
    printf("\nsum %u\n", total);
    if (has(count, words, "late-reset")) {
        // Runs after this thread's thread-local data is freed.
        late_reset = find("cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset");
        atexit(reset_late);
    }
    if (has(count, words, "reset")) {
        check(find("cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset")(device), "reset");
    }
    fflush(stdout);
    if (has(count, words, "exit") || has(count, words, "abort")) {
        // On a busy machine, records are still being written.
        usleep(500000);
    }
    if (has(count, words, "exit")) {
        _exit(7);
    }
    if (has(count, words, "abort")) {
        abort();
    }
    return 5;
}
