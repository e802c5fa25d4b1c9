"""A CuPy program of which only a part is recorded, by `warptrace run --manual`; the package is in cli/python/."""

import pathlib
import sys

import cupy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli/python/python"))
import warptrace

values = cupy.arange(100_000, dtype=cupy.float32)
with warptrace.trace(sys.argv[1] if len(sys.argv) > 1 else None):
    values = cupy.where(values % 3 == 1, values * 2, values)
print("cupy_part", float(values.sum()), float(cupy.sqrt(values).max()))
