// Loads an image and launches its kernels one after the other. Arguments of each: an address of integers, and
// a number.
//   launches module|library IMAGE NUMBER [KERNEL GRID BLOCK]...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(Handle *, int), cuCtxSetCurrent(Handle), cuCtxSynchronize(void);
int cuModuleLoadData(Handle *, const void *), cuModuleGetFunction(Handle *, Handle, const char *);
int cuLibraryLoadData(Handle *, const void *, int *, void **, unsigned, int *, void **, unsigned);
int cuLibraryGetKernel(Handle *, Handle, const char *);
int cuMemAlloc_v2(unsigned long long *, size_t), cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);

int main(int count, char **words)
{
    static char image[1 << 20];
    int numbers[1024] = {0}, is_library = strcmp(words[1], "library") == 0;
    Handle context, code, kernel;
    unsigned long long memory, number = atoi(words[3]);
    FILE *file = fopen(words[2], "rb");
    if (file == NULL || fread(image, 1, sizeof image - 1, file) == 0) {
        return 2;
    }
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    int answer = is_library ? cuLibraryLoadData(&code, image, NULL, NULL, 0, NULL, NULL, 0) : cuModuleLoadData(&code, image);
    printf("loaded %d\n", answer);
    cuMemAlloc_v2(&memory, sizeof numbers);
    cuMemcpyHtoD_v2(memory, numbers, sizeof numbers);
    for (int at = 4; at + 2 < count; at += 3) {
        answer = is_library ? cuLibraryGetKernel(&kernel, code, words[at]) : cuModuleGetFunction(&kernel, code, words[at]);
        void *arguments[] = {&memory, &number, &memory};
        if (answer == 0) {
            answer = cuLaunchKernel(kernel, atoi(words[at + 1]), 1, 1, atoi(words[at + 2]), 1, 1, 0, NULL, arguments, NULL);
        }
        printf("%s %d\n", words[at], answer);
    }
    answer = cuCtxSynchronize();
    cuMemcpyDtoH_v2(numbers, memory, sizeof numbers);
    int sum = 0;
    for (int at = 0; at < 1024; at++) {
        sum += numbers[at];
    }
    printf("ended %d sum %d\n", answer, sum);
    return 0;
}
