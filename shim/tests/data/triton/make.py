#!/usr/bin/env python3
"""Compiles the kernels beside this file for sm_90, which needs Triton and no GPU:

    mkdir /kernels && cp *.py /kernels && cd /kernels && python3 make.py

Triton 3.9 made what is here. Paths of files stand in the machine code.
"""

import pathlib

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FLOATS, HALVES = "*fp32", "*fp16"
KERNELS = {
    "collatz": ({"starts": "*i32", "steps": "*i32", "n": "i32", "limit": "i32"}, {}, {"num_warps": 1}),
    "softmax": ({"x": FLOATS, "out": FLOATS, "columns": "i32"}, {"BLOCK": 1024}, {}),
    "layer_norm": (
        {"x": FLOATS, "weight": FLOATS, "bias": FLOATS, "out": FLOATS, "columns": "i32", "epsilon": "fp32"},
        {"BLOCK": 1024},
        {},
    ),
    "matmul": (
        {"a": HALVES, "b": HALVES, "c": HALVES, "m": "i32", "n": "i32", "k": "i32"},
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        {"num_warps": 8, "num_stages": 3},
    ),
    "attention": (
        {"q": HALVES, "k": HALVES, "v": HALVES, "out": HALVES, "length": "i32", "scale": "fp32"},
        {"BLOCK_M": 64, "BLOCK_N": 64, "DIM": 64},
        {},
    ),
    "specialised": (
        {"a": HALVES, "b": HALVES, "c": HALVES, "m": "i32", "n": "i32", "k": "i32"},
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        {"num_stages": 3},
    ),
}

for name, (types, constants, options) in KERNELS.items():
    kernel = getattr(kernels, name)
    signature = types | {constant: "constexpr" for constant in constants}
    aligned = [argument for argument, kind in types.items() if kind.startswith("*") or argument in "mnk"]
    place = kernel.arg_names.index
    source = ASTSource(
        fn=kernel,
        signature={argument: signature[argument] for argument in kernel.arg_names},
        constexprs={(place(constant),): value for constant, value in constants.items()},
        attrs={(place(argument),): [["tt.divisibility", 16]] for argument in aligned},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    pathlib.Path(f"{name}.cubin").write_bytes(made.asm["cubin"])
    pathlib.Path(f"{name}.ptx").write_text(made.asm["ptx"])
    print(name, made.metadata.num_warps * 32, "threads,", made.metadata.shared, "bytes")
