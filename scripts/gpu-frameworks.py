#!/usr/bin/env python3
"""Programs of Python's frameworks, each alone and under `warptrace run`: the same output, a trace that verifies, times.

    OUT=results python3 scripts/gpu-frameworks.py target/release/warptrace

It needs a GPU and builds nothing; a framework that is not there is said. Writes `frameworks.md`, `frameworks.json` and
`frameworks.log` into the folder OUT. With `--part NAME` it is one of the programs.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROUNDS = 20
LIMIT_SECONDS = 150


def told(**figures):
    """Says figures that may differ from run to run, apart from what the program prints."""
    print("FIGURES " + json.dumps(figures), file=sys.stderr, flush=True)


def printed(name, array):
    """Prints what a program has computed, exactly."""
    import numpy

    array = numpy.ascontiguousarray(array)
    print(name, array.shape, array.dtype, hashlib.sha256(array.tobytes()).hexdigest(), flush=True)


def timed(run, synchronize):
    """Runs once to warm up, and then in rounds that are timed as a whole."""
    run()
    synchronize()
    start = time.perf_counter()
    for _ in range(ROUNDS):
        run()
    synchronize()
    told(round_us=(time.perf_counter() - start) / ROUNDS * 1e6)


def triton_kernels():
    # Kernels find them among the names of the module.
    global triton, tl
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

    @triton.jit
    def softmax(x, out, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        mask = at < columns
        values = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
        values = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * columns + at, values / tl.sum(values, axis=0), mask=mask)

    @triton.jit
    def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            total += tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        mean = tl.sum(total, axis=0) / columns
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
            squares += tl.where(at < columns, (value - mean) * (value - mean), 0.0)
        scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            mask = at < columns
            value = tl.load(x + row * columns + at, mask=mask)
            value = (value - mean) * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
            tl.store(out + row * columns + at, value, mask=mask)

    @triton.jit
    def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
        rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K)
        a_at = a + rows[:, None] * k + inner[None, :]
        b_at = b + inner[:, None] * n + columns[None, :]
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            left = tl.load(a_at, mask=(rows[:, None] < m) & (inner[None, :] + start < k), other=0.0)
            right = tl.load(b_at, mask=(inner[:, None] + start < k) & (columns[None, :] < n), other=0.0)
            total = tl.dot(left, right, total)
            a_at += BLOCK_K
            b_at += BLOCK_K * n
        mask = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=mask)

    @triton.jit
    def attention(q, k, v, out, length, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DIM: tl.constexpr):
        rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        base = tl.program_id(1) * length * DIM
        inner = tl.arange(0, DIM)
        query = tl.load(q + base + rows[:, None] * DIM + inner[None, :], mask=rows[:, None] < length, other=0.0)
        highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
        weights = tl.zeros((BLOCK_M,), dtype=tl.float32)
        total = tl.zeros((BLOCK_M, DIM), dtype=tl.float32)
        for start in range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_N):
            at = start + tl.arange(0, BLOCK_N)
            key = tl.load(k + base + at[None, :] * DIM + inner[:, None], mask=at[None, :] < length, other=0.0)
            scores = tl.dot(query, key) * scale
            scores = tl.where((rows[:, None] >= at[None, :]) & (at[None, :] < length), scores, -1.0e30)
            new = tl.maximum(highest, tl.max(scores, axis=1))
            part = tl.exp(scores - new[:, None])
            shrink = tl.exp(highest - new)
            weights = weights * shrink + tl.sum(part, axis=1)
            value = tl.load(v + base + at[:, None] * DIM + inner[None, :], mask=at[:, None] < length, other=0.0)
            total = tl.dot(part.to(tl.float16), value, total * shrink[:, None])
            highest = new
        at = base + rows[:, None] * DIM + inner[None, :]
        tl.store(out + at, (total / weights[:, None]).to(tl.float16), mask=rows[:, None] < length)

    return triton, {"add": add, "softmax": softmax, "layer_norm": layer_norm, "matmul": matmul, "attention": attention}


def triton_part(name):
    import torch

    triton, kernels = triton_kernels()
    torch.manual_seed(1)
    kernel = kernels[name]
    half = {"device": "cuda", "dtype": torch.float16}
    if name == "add":
        n = 1_000_003
        x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        out, expected = torch.empty_like(x), x + y
        run = lambda: kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    elif name == "softmax":
        x = torch.randn(4096, 781, device="cuda")
        out, expected = torch.empty_like(x), torch.softmax(x, 1)
        run = lambda: kernel[(4096,)](x, out, 781, BLOCK=1024)
    elif name == "layer_norm":
        x, weight, bias = torch.randn(4096, 3001, device="cuda"), torch.randn(3001, device="cuda"), torch.randn(3001, device="cuda")
        out, expected = torch.empty_like(x), torch.nn.functional.layer_norm(x, (3001,), weight, bias)
        run = lambda: kernel[(4096,)](x, weight, bias, out, 3001, 1e-5, BLOCK=1024)
    elif name == "matmul":
        a, b = torch.randn(1024, 1024, **half), torch.randn(1024, 1024, **half)
        out, expected = torch.empty_like(a), a @ b
        run = lambda: kernel[(8, 8)](a, b, out, 1024, 1024, 1024, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3)
    else:
        q, k, v = (torch.randn(16, 1000, 64, **half) for _ in range(3))
        out = torch.empty_like(q)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        run = lambda: kernel[(16, 16)](q, k, v, out, 1000, 0.125, BLOCK_M=64, BLOCK_N=64, DIM=64, num_warps=4)
    timed(run, torch.cuda.synchronize)
    difference = (out.float() - expected.float()).abs().max().item()
    tolerance = 0.25 if name == "matmul" else 0.02
    print(name, "as PyTorch has it" if difference <= tolerance else f"DIFFERS by {difference}")
    printed(name, out.cpu().numpy())
    told(triton=triton.__version__, torch=torch.__version__)


def torch_compile():
    import torch

    torch.manual_seed(1)
    block = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 256))
    block = torch.compile(block.cuda().eval())
    x = torch.randn(512, 256, device="cuda")
    out = []
    with torch.no_grad():
        timed(lambda: out.append(block(x)), torch.cuda.synchronize)
    printed("block", out[-1].cpu().numpy())
    told(torch=torch.__version__)


def jax_part():
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x, w):
        y = jnp.tanh(x * w + 1.0)
        return jnp.cumsum(jax.nn.softmax(y - y.mean(axis=1, keepdims=True), axis=1), axis=1)

    x = jax.random.normal(jax.random.PRNGKey(1), (1024, 1000))
    w = jax.random.normal(jax.random.PRNGKey(2), (1000,))
    out = []
    timed(lambda: out.append(step(x, w).block_until_ready()), lambda: None)
    printed("step", jax.device_get(out[-1]))
    told(jax=jax.__version__, platform=jax.devices()[0].platform)


def numba_part():
    import numba
    import numpy
    from numba import cuda

    @cuda.jit
    def collatz(starts, steps):
        at = cuda.grid(1)
        if at < starts.size:
            value, count = starts[at], 0
            while value > 1:
                value = 3 * value + 1 if value & 1 else value >> 1
                count += 1
            steps[at] = count

    starts = numpy.arange(1, 100_001, dtype=numpy.int64)
    steps = cuda.to_device(numpy.zeros_like(starts))
    given = cuda.to_device(starts)
    timed(lambda: collatz[391, 256](given, steps), cuda.synchronize)
    printed("collatz", steps.copy_to_host())
    told(numba=numba.__version__)


def cupy_part():
    import cupy

    collatz = cupy.RawKernel(
        r"""extern "C" __global__ void collatz(const long long *starts, long long *steps, int n) {
            int at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at >= n) return;
            long long value = starts[at], count = 0;
            while (value > 1) { value = value & 1 ? 3 * value + 1 : value >> 1; ++count; }
            steps[at] = count;
        }""",
        "collatz",
    )
    starts = cupy.arange(1, 100_001, dtype=cupy.int64)
    steps = cupy.zeros_like(starts)
    timed(lambda: collatz((391,), (256,), (starts, steps, cupy.int32(starts.size))), cupy.cuda.Device().synchronize)
    printed("collatz", cupy.asnumpy(steps))
    printed("sorted", cupy.asnumpy(cupy.sort(cupy.sin(starts.astype(cupy.float32)))))
    told(cupy=cupy.__version__)


PARTS = {f"triton-{name}": (lambda name=name: triton_part(name), "triton") for name in ["add", "softmax", "layer_norm", "matmul", "attention"]}
PARTS |= {
    "torch-compile": (torch_compile, "torch"),
    "jax": (jax_part, "jax"),
    "numba": (numba_part, "numba"),
    "cupy": (cupy_part, "cupy"),
}


def ran(command, environment, log):
    """Runs a program to its end, or to the limit; returns its exit code, output, messages and seconds."""
    start = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        code, out, messages = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        text = lambda stream: stream.decode(errors="replace") if stream else ""
        code, out, messages = "timeout", text(error.stdout), text(error.stderr)
    seconds = time.perf_counter() - start
    log.write(f"$ {' '.join(map(str, command))}\n{out}{messages}exit {code} after {seconds:.1f} s\n\n")
    log.flush()
    return code, out, messages, seconds


def figures_of(messages):
    found = {}
    for line in messages.splitlines():
        if line.startswith("FIGURES "):
            found |= json.loads(line.removeprefix("FIGURES "))
    return found


def one(name, warptrace, options, folder, log):
    """Runs a part alone and traced, from caches of its own."""
    environment = dict(os.environ)
    for variable in ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"]:
        environment[variable] = str(folder / "caches" / name / variable.lower())
    environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    program = [sys.executable, str(pathlib.Path(__file__).resolve()), "--part", name]
    result = {"part": name}
    code, alone, messages, _ = ran(program, environment, log)
    if code != 0:
        lines = [line.strip() for line in messages.splitlines() if line.strip()] or ["no message"]
        last = next((line for line in reversed(lines) if "Error" in line), lines[-1])
        return result | {"problem": f"alone it ends with {code}: {last}"}
    # Once more, with what it has compiled.
    code, alone, messages, result["alone_s"] = ran(program, environment, log)
    result["alone_round_us"] = figures_of(messages).get("round_us")
    result["versions"] = {key: value for key, value in figures_of(messages).items() if key != "round_us"}
    trace = folder / f"{name}.%p.wtrc"
    traced = [warptrace, "run", *options, "-o", str(trace), "--", *program]
    for attempt in ["first", "again"]:
        for old in folder.glob(f"{name}.*.wtrc"):
            old.unlink()
        code, out, messages, result[f"traced_{attempt}_s"] = ran(traced, environment, log)
    result["traced_round_us"] = figures_of(messages).get("round_us")
    result["exit"] = code
    result["same_output"] = out == alone
    result["said"] = [line.removeprefix("warptrace: ") for line in messages.splitlines() if line.startswith("warptrace:")]
    result["events"] = result["launches"] = 0
    for line in result["said"]:
        found = re.search(r"(\d+) events? of (\d+) launch", line)
        if found:
            result["events"] += int(found[1])
            result["launches"] += int(found[2])
    result["verified"], result["bytes"] = [], 0
    for file in sorted(folder.glob(f"{name}.*.wtrc")):
        result["bytes"] += file.stat().st_size
        result["verified"].append(ran([warptrace, "verify", str(file)], environment, log)[0] == 0)
        ran([warptrace, "info", str(file)], environment, log)
        ran([warptrace, "lines", str(file)], environment, log)
        file.unlink()
    return result


def as_text(line):
    """Returns a message in Markdown: a kernel's name with `<float>` in it is no tag."""
    return re.sub(r"( launch(?:es)? of )(.*?)(: (?:only|its) )", r"\1`\2`\3", line)


def table(results):
    lines = [
        "# Kernels of Python's frameworks under `warptrace run`",
        "",
        "Made by `scripts/gpu-frameworks.py`; `frameworks.log` has what each program printed. A round is one call of the "
        f"function, of {ROUNDS} that follow each other, with all that the host does.",
        "",
        "| part | same output | verified | launches | events | alone, a round | traced, a round | alone | traced, first | again |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    micro = lambda value: "" if value is None else f"{value:,.0f} µs"
    for found in results:
        if "problem" in found:
            lines.append(f"| {found['part']} | {found['problem']} | | | | | | | | |")
            continue
        verified = "no trace" if not found["verified"] else "yes" if all(found["verified"]) else "NO"
        lines.append(
            f"| {found['part']} | {'yes' if found['same_output'] and found['exit'] == 0 else 'NO'} | {verified} | "
            f"{found['launches']:,} | {found['events']:,} | {micro(found['alone_round_us'])} | "
            f"{micro(found['traced_round_us'])} | {found['alone_s']:.1f} s | {found['traced_first_s']:.1f} s | "
            f"{found['traced_again_s']:.1f} s |"
        )
    lines.append("")
    for found in results:
        lines += [f"## {found['part']}", ""] + [f"- {as_text(line)}" for line in found.get("said", [])] + [""]
    return "\n".join(lines)


def main(words):
    if words[:1] == ["--part"]:
        PARTS[words[1]][0]()
        return 0
    if not words:
        print(__doc__)
        return 2
    warptrace, options = str(pathlib.Path(words[0]).resolve()), words[1:]
    out = pathlib.Path(os.environ.get("OUT", "."))
    out.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp())
    results = []
    with open(out / "frameworks.log", "w") as log:
        for name, (_, package) in PARTS.items():
            if importlib.util.find_spec(package) is None:
                results.append({"part": name, "problem": f"{package} is not installed"})
            else:
                try:
                    results.append(one(name, warptrace, options, folder, log))
                except Exception as error:
                    results.append({"part": name, "problem": repr(error)})
            print(json.dumps(results[-1]), flush=True)
            (out / "frameworks.json").write_text(json.dumps(results, indent=1))
            (out / "frameworks.md").write_text(table(results))
    shutil.rmtree(folder, ignore_errors=True)
    failed = [found["part"] for found in results if not found.get("same_output") or not all(found.get("verified", [False]))]
    print("failed:", ", ".join(failed) or "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
