"""Launches a kernel from many kinds of Python code.

usage: stacks.py IMAGE WAY...
Prints one line of JSON for each launch: its call stack, innermost frame first, as [file, line, function].
"""

import atexit
import ctypes
import json
import os
import sys
import threading

cuda = ctypes.CDLL("libcuda.so.1")


def ready(image):
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory = ctypes.c_uint64()
    with open(image, "rb") as file:
        text = file.read() + b"\0"
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"_Z5scaleIjEvPT_S0_") == 0
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
    values = [memory, ctypes.c_uint32(3)]
    arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(value) for value in values))
    return context, kernel, arguments, values


def note(frame):
    stack = []
    while frame and len(stack) < 32:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append([code.co_filename, frame.f_lineno, name])
        frame = frame.f_back
    print(json.dumps(stack), flush=True)


def launch():
    note(sys._getframe()), cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)


class Model:
    def forward(self):
        launch()

    @property
    def launched(self):
        return launch()

    def __del__(self):
        if self.last:
            launch()

    last = False


def steps():
    for _ in range(2):
        yield (
            1,
            launch(),
        )


def deep(left):
    if left:
        deep(left - 1)
    else:
        launch()


def 計算():
    launch()


async def waits():
    launch()


def in_thread():
    # Each thread has a separate current context.
    cuda.cuCtxSetCurrent(context)
    launch()


WAYS = {
    "function": lambda: launch(),
    "method": lambda: Model().forward(),
    "property": lambda: Model().launched,
    "generator": lambda: list(steps()),
    "comprehension": lambda: [launch() for _ in range(2)],
    "deep": lambda: deep(50),
    "names": 計算,
    "generated": lambda: exec(compile("\n" * 300 + "launch()", "gén\u00e9r\u00e9.py", "exec"), globals()),
    "replaced": lambda: [exec(compile(f"def f{n}(): launch()\nf{n}()", f"{n}.py", "exec"), globals()) for n in range(9)],
    "sorted": lambda: sorted([1, 2], key=lambda _: launch() or 0),
    "deleted": lambda: setattr(Model(), "last", True),
    "coroutine": lambda: drive(waits()),
}


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def threads():
    started = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in started:
        thread.start()
        thread.join()


def at_exit():
    atexit.register(launch)


def as_it_ends():
    """Launches from a thread that is still in the driver when the interpreter ends."""

    def forever():
        cuda.cuCtxSetCurrent(context)
        while True:
            cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)

    for _ in range(2):
        threading.Thread(target=forever, daemon=True).start()
    threading.Event().wait(0.3 * int(os.environ.get("WARPTRACE_TEST_SLOW", 1)))


def subinterpreter():
    """Launches from an interpreter inside this one."""
    import _testcapi

    text = f"import sys; sys.argv = {[sys.argv[0], sys.argv[1], 'function']!r}; exec(open(sys.argv[0]).read())"
    assert _testcapi.run_in_subinterp(text) == 0


WAYS.update(threads=threads, at_exit=at_exit, as_it_ends=as_it_ends, subinterpreter=subinterpreter)


if __name__ == "__main__":
    context, kernel, arguments, values = ready(sys.argv[1])
    for way in sys.argv[2:]:
        WAYS[way]()
    cuda.cuCtxSynchronize()
