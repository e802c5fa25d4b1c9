// A test double of NVRTC. It "compiles" to the PTX in the file NVRTC_PTX, and has machine code only if the
// options ask for it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_cubin;

int nvrtcCompileProgram(void *program, int count, const char **options)
{
    has_cubin = 0;
    for (int at = 0; at < count; at++) {
        has_cubin |= strncmp(options[at], "-arch=sm_", 9) == 0;
    }
    return 0;
}

static char *text(void)
{
    static char bytes[1 << 20];
    FILE *file = fopen(getenv("NVRTC_PTX"), "rb");
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
    fclose(file);
    return bytes;
}

int nvrtcGetPTXSize(void *program, size_t *size)
{
    *size = strlen(text()) + 1;
    return 0;
}

int nvrtcGetPTX(void *program, char *code)
{
    strcpy(code, text());
    return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *size)
{
    *size = has_cubin ? 4 : 0;
    return 0;
}

int nvrtcGetCUBIN(void *program, char *code)
{
    memcpy(code, "\177ELF", 4);
    return has_cubin ? 0 : 6;
}
