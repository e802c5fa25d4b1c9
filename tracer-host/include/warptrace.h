// Functions for programs that run under `warptrace run`: begin and end a recording.
//
//     warptrace_begin("step.wtrc");
//     launch_kernels();
//     warptrace_end();
//
// The functions look up warptrace in the process, and do nothing if it is not loaded. The program needs no
// library (before glibc 2.34: `-ldl`). With `warptrace run --manual`, recording starts at the first
// `warptrace_begin`.
#ifndef WARPTRACE_H
#define WARPTRACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

// Return values: success; the program does not run under warptrace; the call failed, and `warptrace run`
// prints the reason at its end.
enum { WARPTRACE_DONE = 0, WARPTRACE_NOT_TRACED = 1, WARPTRACE_FAILED = 2 };

// Ends the current recording, and records kernels that are launched from now on into `file`. In `file`, `%p`
// stands for the process id. NULL selects the file of `warptrace run`, or its next numbered file
// (`trace-2.wtrc`). The first launch creates the file. Launches in other contexts have separate files.
static inline int warptrace_begin(const char *file)
{
    int (*begin)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "warptrace_begin");
    return begin ? begin(file) : WARPTRACE_NOT_TRACED;
}

// Ends the current recording. Waits up to five seconds for recorded launches that still run. (Freeing memory
// waits for all other launches.) Kernels that are launched from now on run untraced.
static inline int warptrace_end(void)
{
    int (*end)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "warptrace_end");
    return end ? end() : WARPTRACE_NOT_TRACED;
}

#endif
