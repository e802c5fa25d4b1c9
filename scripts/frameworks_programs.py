"""Programs of Python's frameworks for `gpu-frameworks.py`: each prints what it has computed, exactly.

    python3 scripts/frameworks_programs.py NAME
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("ROUNDS", 20))


def told(**figures):
    """Says figures that may differ from run to run, apart from what the program prints."""
    print("FIGURES " + json.dumps(figures), file=sys.stderr, flush=True)


def printed(name, array):
    """Prints what a program has computed, exactly."""
    import numpy

    array = numpy.ascontiguousarray(array)
    print(name, array.shape, array.dtype, hashlib.sha256(array.tobytes()).hexdigest(), flush=True)


def timed(run, synchronize):
    """Runs once to warm up, and then five times in rounds that are timed as a whole."""
    run()
    samples = []
    for _ in range(5):
        synchronize()
        start = time.perf_counter()
        for _ in range(ROUNDS):
            run()
        synchronize()
        samples.append((time.perf_counter() - start) / ROUNDS * 1e6)
    told(round_us=sorted(samples)[2])


def kernel_timed(run):
    """Times rounds of one kernel on the device, queued behind work that lasts until all are queued; five times."""
    import torch

    samples = []
    for _ in range(5):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(10_000_000)
        before.record()
        for _ in range(ROUNDS):
            run()
        after.record()
        after.synchronize()
        samples.append(before.elapsed_time(after) / ROUNDS * 1e3)
    told(kernel_us=sorted(samples)[2])


def triton_kernels():
    # Triton kernels look up these names in the globals of the module.
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

    @triton.jit
    def matmul_tma(a, b, c, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
        row = tl.program_id(0) * BLOCK_M
        column = tl.program_id(1) * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for at in tl.range(0, k, BLOCK_K):
            total = tl.dot(a.load([row, at]), b.load([at, column]), total)
        c.store([row, column], total.to(tl.float16))

    return triton, {kernel.__name__: kernel for kernel in [add, softmax, layer_norm, matmul, matmul_tma, attention]}


def row_sums():
    """Returns a kernel of two roles: one warp brings tiles by TMA, four add them up; each asks for registers of its own."""
    global gl, mbarrier, tma, bring, add_up
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

    @gluon.jit
    def bring(x, shared, full, empty, n, BLOCK: gl.constexpr, DEEP: gl.constexpr):
        for i in range(n):
            slot = i % DEEP
            mbarrier.wait(empty.index(slot), ((i // DEEP) & 1) ^ 1)
            mbarrier.expect(full.index(slot), BLOCK * BLOCK * 4)
            tma.async_copy_global_to_shared(x, [gl.program_id(0) * BLOCK, i * BLOCK], full.index(slot), shared.index(slot))

    @gluon.jit
    def add_up(out, shared, full, empty, n, BLOCK: gl.constexpr, DEEP: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [gl.num_warps(), 1], [1, 0])
        total = gl.zeros([BLOCK, BLOCK], gl.float32, layout)
        for i in range(n):
            slot = i % DEEP
            mbarrier.wait(full.index(slot), (i // DEEP) & 1)
            total += shared.index(slot).load(layout)
            mbarrier.arrive(empty.index(slot), count=1)
        rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(1, layout))
        gl.store(out + rows, gl.sum(total, 1))

    @gluon.jit
    def row_sums(x, out, n, BLOCK: gl.constexpr, DEEP: gl.constexpr):
        shared = gl.allocate_shared_memory(gl.float32, [DEEP, BLOCK, BLOCK], x.layout)
        full = gl.allocate_shared_memory(gl.int64, [DEEP, 1], mbarrier.MBarrierLayout())
        empty = gl.allocate_shared_memory(gl.int64, [DEEP, 1], mbarrier.MBarrierLayout())
        for i in gl.static_range(DEEP):
            mbarrier.init(full.index(i), count=1)
            mbarrier.init(empty.index(i), count=1)
        gl.warp_specialize([(add_up, (out, shared, full, empty, n, BLOCK, DEEP)), (bring, (x, shared, full, empty, n, BLOCK, DEEP))], [1], [24])

    return row_sums


def triton_part(name):
    import torch

    triton, kernels = triton_kernels()
    torch.manual_seed(1)
    kernel = row_sums() if name == "row_sums" else kernels[name]
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
    elif name == "matmul_tma":
        from triton.tools.tensor_descriptor import TensorDescriptor

        a, b = torch.randn(1024, 1024, **half), torch.randn(1024, 1024, **half)
        out, expected = torch.empty_like(a), a @ b
        tiles = [TensorDescriptor.from_tensor(*tile) for tile in [(a, [128, 64]), (b, [64, 128]), (out, [128, 128])]]
        run = lambda: kernel[(8, 8)](*tiles, 1024, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3)
    elif name == "row_sums":
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

        x = torch.randn(8192, 4096, device="cuda")
        out, expected = torch.empty(8192, device="cuda"), x.sum(1)
        tiles = TensorDescriptor.from_tensor(x, [64, 64], gl.NVMMASharedLayout.get_default_for([64, 64], gl.float32))
        run = lambda: kernel[(128,)](tiles, out, 64, BLOCK=64, DEEP=3, num_warps=4)
    else:
        q, k, v = (torch.randn(16, 1000, 64, **half) for _ in range(3))
        out = torch.empty_like(q)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        run = lambda: kernel[(16, 16)](q, k, v, out, 1000, 0.125, BLOCK_M=64, BLOCK_N=64, DIM=64, num_warps=4)
    timed(run, torch.cuda.synchronize)
    if "KERNEL_TIME" in os.environ:
        kernel_timed(run)
    difference = (out.float() - expected.float()).abs().max().item()
    tolerance = 0.25 if name.startswith("matmul") else 0.02
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


def transformer_block():
    """Returns a small block with attention and a feed-forward part."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(256), torch.nn.LayerNorm(256)
            self.taken, self.given = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)
            self.wide = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (4, 64)).transpose(1, 2) for part in self.taken(self.first(x)).chunk(3, -1))
            scores = (q @ k.transpose(-1, -2) / 8).softmax(-1)
            x = x + self.given((scores @ v).transpose(1, 2).flatten(2))
            return x + self.wide(self.second(x))

    torch.manual_seed(1)
    return Block().cuda()


def training(how):
    """Trains for ten steps: compiled, compiled with CUDA graphs, or with PyTorch's own operators alone."""
    import torch

    model = transformer_block()
    taught = model if how == "eager" else torch.compile(model, mode="reduce-overhead" if how == "graphs" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = (torch.randn(8, 128, 256, device="cuda") for _ in range(2))
    losses = []

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(taught(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())

    for _ in range(10):
        step()
    print("losses", [loss.item().hex() for loss in losses])
    if how == "eager":
        for _ in range(300):
            step()
    timed(step, torch.cuda.synchronize)
    printed("weights", torch.cat([weight.detach().flatten() for weight in model.parameters()]).cpu().numpy())


def streams():
    """Launches two kernels of Triton on three streams, and as a graph."""
    import torch

    _, kernels = triton_kernels()
    torch.manual_seed(1)
    x = torch.randn(3, 1024, 781, device="cuda")
    out, sums = torch.empty_like(x), torch.empty_like(x)
    on = [torch.cuda.Stream() for _ in range(3)]

    def run(i):
        kernels["softmax"][(1024,)](x[i], out[i], 781, BLOCK=1024)
        kernels["add"][(782,)](x[i], out[i], sums[i], 1024 * 781, BLOCK=1024)

    def all_of_them():
        for i, stream in enumerate(on):
            with torch.cuda.stream(stream):
                run(i)

    timed(all_of_them, torch.cuda.synchronize)
    printed("streams", sums.cpu().numpy())
    graph = torch.cuda.CUDAGraph()
    sums.zero_()
    with torch.cuda.graph(graph):
        run(1)
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    printed("graph", sums.cpu().numpy())


def ranks():
    """Starts two processes on one card by torchrun; each is this program again, with a rank."""
    if "RANK" not in os.environ:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        return subprocess.run([*torchrun, __file__, "ranks"], check=True)
    import torch

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    _, kernels = triton_kernels()
    torch.manual_seed(rank)
    x = torch.randn(4096, 781, device="cuda")
    out = torch.empty_like(x)
    kernels["softmax"][(4096,)](x, out, 781, BLOCK=1024)
    total = out.sum(1).double().sum().cpu()
    torch.distributed.all_reduce(total)
    if rank == 0:
        print("sum over both", total.item().hex(), flush=True)
    torch.distributed.destroy_process_group()


def hugging_face():
    """Generates from a language model with random weights, whose forward pass is compiled."""
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    model.forward = torch.compile(model.forward)
    prompt = torch.arange(1, 65, device="cuda")[None]
    made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=2, do_sample=False, pad_token_id=0)
    printed("tokens", made.cpu().numpy())
    told(transformers=transformers.__version__)


def jax_part(cached=False):
    import jax
    import jax.numpy as jnp

    if cached:
        jax.config.update("jax_compilation_cache_dir", os.environ["XDG_CACHE_HOME"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    @jax.jit
    def step(x, w):
        y = jnp.tanh(x * w + 1.0)
        y = jnp.cumsum(jax.nn.softmax(y - y.mean(axis=1, keepdims=True), axis=1), axis=1)
        return jax.lax.scan(lambda carry, row: (0.9 * carry + row, carry.max()), y[0], y[:50])

    x = jax.random.normal(jax.random.PRNGKey(1), (1024, 1000))
    w = jax.random.normal(jax.random.PRNGKey(2), (1000,))
    out = []
    timed(lambda: out.append(jax.block_until_ready(step(x, w))), lambda: None)
    for name, array in zip(["carry", "rows"], jax.device_get(out[-1])):
        printed(name, array)
    told(jax=jax.__version__, platform=jax.devices()[0].platform)


def numba_part():
    import numpy

    # Numba uses a name that NumPy 2.5 has removed.
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack
    import numba
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

    @cuda.jit
    def histogram(steps, bins):
        counts = cuda.shared.array(64, numba.int32)
        if cuda.threadIdx.x < 64:
            counts[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        at = cuda.grid(1)
        if at < steps.size:
            cuda.atomic.add(counts, min(steps[at] // 8, 63), 1)
        cuda.syncthreads()
        if cuda.threadIdx.x < 64:
            cuda.atomic.add(bins, cuda.threadIdx.x, counts[cuda.threadIdx.x])

    starts = numpy.arange(1, 100_001, dtype=numpy.int64)
    steps = cuda.to_device(numpy.zeros_like(starts))
    given = cuda.to_device(starts)
    timed(lambda: collatz[391, 256](given, steps), cuda.synchronize)
    printed("collatz", steps.copy_to_host())
    bins = cuda.to_device(numpy.zeros(64, dtype=numpy.int32))
    histogram[391, 256](steps, bins)
    printed("histogram", bins.copy_to_host())
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
    scale = cupy.ElementwiseKernel("float32 x, float32 a", "float32 y", "y = x > 0 ? a * x : x", "scale")
    length = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
    numbers = cupy.arange(-50_000, 50_000, dtype=cupy.float32)
    printed("scaled", cupy.asnumpy(scale(numbers, cupy.float32(2.5))))
    printed("lengths", cupy.asnumpy(length(numbers.reshape(100, 1000), axis=1)))
    module = cupy.RawModule(
        code=r"""template<typename T> __global__ void reverse(const T *from, T *to, int n) {
            __shared__ T tile[256];
            int at = blockIdx.x * 256 + threadIdx.x;
            if (at < n) tile[threadIdx.x] = from[at];
            __syncthreads();
            if (at < n) to[n - 1 - at] = tile[threadIdx.x];
        }""",
        options=("-std=c++17",),
        name_expressions=["reverse<float>"],
    )
    reversed_numbers = cupy.empty_like(numbers)
    module.get_function("reverse<float>")((391,), (256,), (numbers, reversed_numbers, cupy.int32(numbers.size)))
    printed("reversed", cupy.asnumpy(reversed_numbers))
    told(cupy=cupy.__version__)


TRITON = ["add", "softmax", "layer_norm", "matmul", "matmul_tma", "attention", "row_sums"]
PARTS = {f"triton-{name}": (functools.partial(triton_part, name), "triton") for name in TRITON}
PARTS |= {
    "jax": (jax_part, "jax"),
    "jax-cached": (functools.partial(jax_part, cached=True), "jax"),
    "numba": (numba_part, "numba"),
    "cupy": (cupy_part, "cupy"),
    "torch-eager": (functools.partial(training, "eager"), "torch"),
    "streams": (streams, "triton"),
    "ranks": (ranks, "triton"),
    "torch-compile": (torch_compile, "torch"),
    "torch-training": (functools.partial(training, "compiled"), "torch"),
    "torch-graphs": (functools.partial(training, "graphs"), "torch"),
    "hugging-face": (hugging_face, "transformers"),
}
# Programs that compile for a long time. They run together, because most cores are idle.
TOGETHER = ["torch-compile", "torch-training", "torch-graphs", "hugging-face"]


if __name__ == "__main__":
    PARTS[sys.argv[1]][0]()
