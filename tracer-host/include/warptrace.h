// What a program may say to warptrace, where it runs under `warptrace run`: from when to when it is recorded.
//
//     warptrace_begin("step.wtrc");
//     launch_kernels();
//     warptrace_end();
//
// Nothing needs to be linked (before glibc 2.34, `-ldl`): the functions look for warptrace in the process, and do
// nothing where it is not. With `warptrace run --manual` nothing is recorded before the first `warptrace_begin`.
#ifndef WARPTRACE_H
#define WARPTRACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

// What the functions answer: it was done; the program does not run under warptrace; what `warptrace run` prints in the
// end says what was wrong.
enum { WARPTRACE_DONE = 0, WARPTRACE_NOT_TRACED = 1, WARPTRACE_FAILED = 2 };

// Ends what is being recorded, and records kernels that are launched from now on into `file`. `%p` in it stands for
// the process's number; NULL is the file of `warptrace run`, or the next one of that name (`trace-2.wtrc`). A file is
// made with the first launch; other contexts' launches have files of their own.
static inline int warptrace_begin(const char *file)
{
    int (*begin)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "warptrace_begin");
    return begin ? begin(file) : WARPTRACE_NOT_TRACED;
}

// Ends what is being recorded, after launches that still run have ended (it waits up to five seconds for those that
// are recorded; freeing memory waits for all others). Kernels that are launched from now on run untraced.
static inline int warptrace_end(void)
{
    int (*end)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "warptrace_end");
    return end ? end() : WARPTRACE_NOT_TRACED;
}

#endif
