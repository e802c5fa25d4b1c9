"""Says which part of a program `warptrace run` records.

    with warptrace.trace("step.wtrc"):
        step()
"""

import contextlib
import ctypes
import os
import warnings

__all__ = ["begin", "end", "is_traced", "trace"]

_NOT_TRACED = 1


def _function(name):
    """Returns a function of the library that `warptrace run` loads; None without it."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None


def is_traced():
    """Tells whether this process runs under `warptrace run`."""
    return _function("warptrace_begin") is not None


def _done(answer, what):
    if answer == _NOT_TRACED:
        return False
    if answer != 0:
        raise RuntimeError(f"warptrace could not {what}: `warptrace run` says why when the program has ended")
    return True


def begin(path=None):
    """Ends what is being recorded, and records kernels that are launched from now on into `path`.

    `%p` in it stands for the process's number. None is the file of `warptrace run`, or the next one of that name.
    Returns whether anything is recorded: whether this process runs under `warptrace run`.
    """
    function = _function("warptrace_begin")
    if function is None:
        return False
    name = None
    if path is not None:
        name = os.fsencode(path)
        if not name or b"\0" in name:
            raise ValueError(f"{path!r} cannot be the name of a file")
    function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int
    return _done(function(name), "begin a trace")


def end():
    """Ends what is being recorded, after launches that still run have ended. Returns what `begin` does."""
    function = _function("warptrace_end")
    if function is None:
        return False
    function.restype = ctypes.c_int
    return _done(function(), "end a trace")


@contextlib.contextmanager
def trace(path=None):
    """Records what is launched in a `with` block, or in a function if used as its decorator, into `path`.

    Without `warptrace run` the block runs as it is, and a warning says so.
    """
    if not begin(path):
        warnings.warn(
            "nothing is recorded: start the program with `warptrace run --manual -o FILE -- python ...`",
            RuntimeWarning,
            stacklevel=3,
        )
        yield
        return
    try:
        yield
    finally:
        end()
