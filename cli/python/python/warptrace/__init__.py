"""Reads traces of GPU kernels, and says which part of a program `warptrace run` records.

    trace = warptrace.open("step.wtrc")
    lines = trace.lines().to_pandas()
    runs = polars.DataFrame(trace.runs(launch=0))

    with warptrace.trace("step.wtrc"):
        step()
"""

from warptrace.parts import begin, end, is_traced, trace

__version__ = "0.1.0"
__all__ = ["LossWarning", "Table", "Trace", "TraceError", "begin", "end", "is_traced", "open", "trace"]

_READER = frozenset({"LossWarning", "Table", "Trace", "TraceError", "open"})


def __getattr__(name):
    # The reader is loaded on first use: a program that only marks its parts does not need it.
    if name in _READER:
        from warptrace import _native

        return getattr(_native, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_READER})
