// A process with several devices. A separate thread for each device launches kernels of memory.cu:
//   devices IMAGE DEVICES [again|peer]
// Each thread launches `transpose` once more than its device's number. `again`: resets the first device's
// context, and repeats the work in a new one. `peer`: the kernel of each device reads memory of the next
// device.
// Prints a sum for each device, and errors.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Function)();
typedef unsigned long long Address;

enum { SIDE = 32, COUNT = SIDE * SIDE, MOST = 16 };

static void *driver;
static const char *image;
static int devices, is_peer;
static Address inputs[MOST], outputs[MOST];
static unsigned sums[MOST];
static pthread_barrier_t all;

static int call_failed(int answer, const char *what)
{
    if (answer != 0) {
        printf("%s: error %d\n", what, answer);
    }
    return answer;
}

#define CALL(name, ...) call_failed(((Function)dlsym(driver, #name))(__VA_ARGS__), #name)

static void work(int device, int waits)
{
    void *context = NULL, *module = NULL, *function = NULL;
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoad, &module, image);
    CALL(cuModuleGetFunction, &function, module, "transpose");
    unsigned values[COUNT], results[COUNT];
    for (unsigned at = 0; at < COUNT; at++) {
        values[at] = at * (device + 1);
    }
    CALL(cuMemAlloc_v2, &inputs[device], sizeof values);
    CALL(cuMemAlloc_v2, &outputs[device], sizeof results);
    CALL(cuMemcpyHtoD_v2, inputs[device], values, sizeof values);
    if (waits) {
        pthread_barrier_wait(&all);
    }
    Address in = inputs[is_peer ? (device + 1) % devices : device], out = outputs[device];
    unsigned side = SIDE;
    void *parameters[] = {&in, &out, &side};
    for (int round = 0; round <= device; round++) {
        CALL(cuLaunchKernel, function, 1, 1, 1, SIDE, 1, 1, 0, NULL, parameters, NULL);
    }
    CALL(cuCtxSynchronize);
    CALL(cuMemcpyDtoH_v2, results, outputs[device], sizeof results);
    for (unsigned at = 0; at < COUNT; at++) {
        sums[device] += results[at] * at;
    }
}

static void *run(void *number)
{
    work((int)(size_t)number, 1);
    return NULL;
}

int main(int count, char **words)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || count < 3) {
        return 2;
    }
    image = words[1];
    devices = atoi(words[2]);
    is_peer = count > 3 && strcmp(words[3], "peer") == 0;
    CALL(cuInit, 0);
    pthread_t threads[MOST];
    pthread_barrier_init(&all, NULL, devices);
    for (int device = 0; device < devices; device++) {
        pthread_create(&threads[device], NULL, run, (void *)(size_t)device);
    }
    for (int device = 0; device < devices; device++) {
        pthread_join(threads[device], NULL);
    }
    if (count > 3 && strcmp(words[3], "again") == 0) {
        CALL(cuDevicePrimaryCtxReset_v2, 0);
        work(0, 0);
    }
    for (int device = 0; device < devices; device++) {
        printf("device %d: %u\n", device, sums[device]);
    }
    return 0;
}
