// Launches a kernel that never ends between two others, each in a separate stream, and waits for all of them.
// Another thread continues, and ends the process.
//   hangs PTX KERNEL GRID BLOCK SECONDS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *Handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(Handle *, int), cuCtxSetCurrent(Handle), cuCtxSynchronize(void);
int cuModuleLoadData(Handle *, const void *), cuModuleGetFunction(Handle *, Handle, const char *);
int cuStreamCreate(Handle *, unsigned), cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);

static void *go_on(void *seconds)
{
    usleep(atof(seconds) * 1e6);
    puts("the other thread went on");
    fflush(stdout);
    exit(3);
}

int main(int count, char **words)
{
    static char image[1 << 20], zeros[1 << 12];
    Handle context, module, quick, kernel, streams[3];
    unsigned long long memory;
    FILE *file = fopen(words[1], "rb");
    if (file == NULL || fread(image, 1, sizeof image - 1, file) == 0) {
        return 2;
    }
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    if (cuModuleLoadData(&module, image) != 0 || cuModuleGetFunction(&kernel, module, words[2]) != 0) {
        return 2;
    }
    cuModuleGetFunction(&quick, module, "quick");
    cuMemAlloc_v2(&memory, sizeof zeros);
    cuMemcpyHtoD_v2(memory, zeros, sizeof zeros);
    pthread_t thread;
    pthread_create(&thread, NULL, go_on, words[5]);
    void *arguments[] = {&memory};
    for (int at = 0; at < 3; at++) {
        cuStreamCreate(&streams[at], 1);
        const unsigned grid = at == 1 ? atoi(words[3]) : 1, block = at == 1 ? atoi(words[4]) : 32;
        cuLaunchKernel(at == 1 ? kernel : quick, grid, 1, 1, block, 1, 1, 0, streams[at], arguments, NULL);
    }
    puts("launched");
    fflush(stdout);
    cuCtxSynchronize();
    return 0;
}
