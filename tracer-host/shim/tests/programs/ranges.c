// Opens NVTX ranges around launches of the kernel `walk`:
//   ranges IMAGE [ACTION...]
// ACTIONS: graph (the last launches are in a graph), none (opens no range), many (one range for each of
// TEST_LAUNCHES launches).
// Uses NVTX's header with -DHAS_NVTX. Otherwise declares the parts that it needs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#ifdef HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#else
typedef void *nvtxDomainHandle_t, *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved;
    uint64_t payload;
    int32_t messageType;
    union { const char *ascii; const wchar_t *unicode; nvtxStringHandle_t registered; } message;
} nvtxEventAttributes_t;
enum { NVTX_VERSION = 3, NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t) };
enum { NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_UNICODE = 2, NVTX_MESSAGE_TYPE_REGISTERED = 3 };

// Tables of functions, filled by the injected library.
static void *core[16], *core2[16];
static void **core_slots[16], **core2_slots[16];

static int table_of(int module, void ****table, unsigned *size)
{
    if (module != 1 && module != 5) {
        return 0;
    }
    *table = module == 1 ? core_slots : core2_slots;
    *size = 16;
    return 1;
}

static const void *export_table(uint32_t table)
{
    static const struct { size_t size; int (*table)(int, void ****, unsigned *); } callbacks = {sizeof callbacks, table_of};
    return table == 1 ? &callbacks : NULL;
}

static void *injected(void **functions, int number)
{
    static int begun;
    if (!begun) {
        begun = 1;
        for (int at = 1; at < 16; at++) {
            core_slots[at] = &core[at];
            core2_slots[at] = &core2[at];
        }
        const char *path = getenv("NVTX_INJECTION64_PATH");
        void *library = path == NULL ? NULL : dlopen(path, RTLD_LAZY);
        int (*initialise)(const void *(*)(uint32_t)) = library == NULL ? NULL : dlsym(library, "InitializeInjectionNvtx2");
        if (initialise != NULL) {
            initialise(export_table);
        }
    }
    return functions[number];
}

#define CALL(functions, number, type, otherwise, ...) \
    type = injected(functions, number); \
    return f == NULL ? otherwise : f(__VA_ARGS__);
static int nvtxRangePushA(const char *m) { CALL(core, 9, int (*f)(const char *), -2, m) }
static int nvtxRangePushW(const wchar_t *m) { CALL(core, 10, int (*f)(const wchar_t *), -2, m) }
static int nvtxRangePop(void) { CALL(core, 11, int (*f)(void), -2) }
static nvtxRangeId_t nvtxRangeStartA(const char *m) { CALL(core, 5, nvtxRangeId_t (*f)(const char *), 0, m) }
static void nvtxRangeEnd(nvtxRangeId_t id) { void (*f)(nvtxRangeId_t) = injected(core, 7); if (f != NULL) f(id); }
static int nvtxDomainRangePushEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a) { CALL(core2, 4, int (*f)(void *, const void *), -2, d, a) }
// As NCCL does: the extension for payloads has a table of its own.
static int nvtxDomainRangePop(nvtxDomainHandle_t d)
{
    static void *slots[63];
    static int begun;
    if (!begun) {
        begun = 1;
        struct { size_t id, slots; void **functions; } segment = {0, 63, slots};
        struct { uint16_t version, size, module, compatible; size_t segments; void *first, *export, *info; }
            module = {3, sizeof module, 2, 0x104, 1, &segment, NULL, NULL};
        const char *path = getenv("NVTX_INJECTION64_PATH");
        void *library = path == NULL ? NULL : dlopen(path, RTLD_LAZY);
        int (*initialise)(void *) = library == NULL ? NULL : dlsym(library, "InitializeInjectionNvtxExtension");
        if (initialise != NULL && !initialise(&module)) {
            printf("the extension is refused\n");
        }
    }
    int (*f)(void *, const void *, size_t) = slots[4];
    return f == NULL ? -2 : f(d, NULL, 0);
}
static nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t d, const char *m) { CALL(core2, 10, void *(*f)(void *, const char *), NULL, d, m) }
static nvtxDomainHandle_t nvtxDomainCreateA(const char *m) { CALL(core2, 12, void *(*f)(const char *), NULL, m) }
#endif

typedef int (*Function)();
typedef unsigned long long Address;

static void *library, *walk;
static void **parameters;
static Function launch;

static Function find(const char *name)
{
    return (Function)dlsym(library, name);
}

static void check(int answer, const char *what)
{
    if (answer != 0) {
        printf("%s: error %d\n", what, answer);
    }
}

static void run(void)
{
    check(launch(walk, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "launch");
}

static void *current;

static void *elsewhere(void *unused)
{
    // Ranges of another thread do not apply to this thread.
    check(find("cuCtxSetCurrent")(current), "set current");
    run();
    return unused;
}

static void within_ranges(int has_graph)
{
    run();
    const int depth = nvtxRangePushA("step 1");
    run();
    nvtxDomainHandle_t own = nvtxDomainCreateA("own");
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(own, "forward");
    nvtxDomainRangePushEx(own, &attributes);
    run();
    const int inner = nvtxRangePushW(L"mm \x1b[31m\x00e9");
    run();
    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, NULL);
    pthread_join(thread, NULL);
    nvtxRangePop();
    nvtxDomainRangePop(own);
    run();
    nvtxRangePop();
    const nvtxRangeId_t started = nvtxRangeStartA("whole");
    run();
    nvtxRangeEnd(started);
    run();
    fprintf(stderr, "depths %d %d\n", depth, inner);
    nvtxRangePushA("step 2");
    if (has_graph) {
        struct { void *function; unsigned sizes[7]; void **parameters, **extra; void *kernel, *context; }
            node = {walk, {1, 1, 1, 32, 1, 1, 0}, parameters, NULL, NULL, NULL};
        void *graph = NULL, *nodes[2], *ready = NULL;
        check(find("cuGraphCreate")(&graph, 0), "graph");
        check(find("cuGraphAddKernelNode_v2")(&nodes[0], graph, NULL, 0L, &node), "node");
        check(find("cuGraphAddKernelNode_v2")(&nodes[1], graph, &nodes[0], 1L, &node), "node");
        check(find("cuGraphInstantiateWithFlags")(&ready, graph, 0L), "instantiate");
        check(find("cuGraphLaunch")(ready, NULL), "launch of a graph");
        nvtxRangePop();
        check(find("cuGraphLaunch")(ready, NULL), "launch of a graph");
        check(find("cuGraphExecDestroy")(ready), "destroy");
        return;
    }
    run();
    nvtxRangePop();
}

int main(int count, char **words)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    const char *action = count > 2 ? words[2] : "";
    int device = 0;
    void *module = NULL;
    check(find("cuInit")(0), "cuInit");
    check(find("cuDevicePrimaryCtxRetain")(&current, device), "retain");
    check(find("cuCtxSetCurrent")(current), "set current");
    char *image = calloc(1, 1 << 20);
    FILE *file = fopen(words[1], "rb");
    if (file == NULL || fread(image, 1, (1 << 20) - 1, file) == 0) {
        return 2;
    }
    check(find("cuModuleLoadData")(&module, image), "load");
    check(find("cuModuleGetFunction")(&walk, module, "walk"), "get");
    unsigned in[32], out[32] = {0}, total = 0, threads = 32;
    for (unsigned at = 0; at < 32; at++) {
        in[at] = at % 7;
    }
    Address input = 0, output = 0, sum = 0;
    Function allocate = find("cuMemAlloc_v2"), up = find("cuMemcpyHtoD_v2");
    check(allocate(&input, sizeof in) || allocate(&output, sizeof out) || allocate(&sum, sizeof total), "allocate");
    check(up(input, in, sizeof in) || up(output, out, sizeof out) || up(sum, &total, sizeof total), "copy");
    void *all[] = {&input, &output, &sum, &threads};
    parameters = all;
    launch = find("cuLaunchKernel");
    if (strcmp(action, "none") == 0) {
        run();
    } else if (strcmp(action, "many") == 0) {
        for (int round = 0; round < atoi(getenv("TEST_LAUNCHES")); round++) {
            char text[32];
            sprintf(text, "step %d", round % 3);
            nvtxRangePushA(text);
            run();
            nvtxRangePop();
        }
    } else {
        within_ranges(strcmp(action, "graph") == 0);
    }
    check(find("cuCtxSynchronize")(), "synchronize");
    check(find("cuMemcpyDtoH_v2")(&total, sum, sizeof total), "copy back");
    printf("sum %u\n", total);
    return 0;
}
