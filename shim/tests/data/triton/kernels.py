"""Kernels that tests take through `warptrace run`, as Triton assembles them: `make.py` writes the files beside this one."""

import triton
import triton.language as tl


@triton.jit
def collatz(starts, steps, n, limit):
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    mask = at < n
    value = tl.load(starts + at, mask=mask, other=1)
    count = tl.zeros((32,), dtype=tl.int32)
    for _ in range(limit):
        count += tl.where(value > 1, 1, 0)
        following = tl.where((value & 1) == 1, 3 * value + 1, value >> 1)
        value = tl.where(value > 1, following, value)
    tl.store(steps + at, count, mask=mask)


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
    tl.store(out + base + rows[:, None] * DIM + inner[None, :], (total / weights[:, None]).to(tl.float16), mask=rows[:, None] < length)


@triton.jit
def specialised(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    a_at = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_at = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[BLOCK_N, BLOCK_K])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in tl.range(0, tl.cdiv(k, BLOCK_K), warp_specialize=True):
        left = a_at.load([row, start * BLOCK_K])
        right = b_at.load([column, start * BLOCK_K])
        total = tl.dot(left, right.T, total)
    c_at = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BLOCK_M, BLOCK_N])
    c_at.store([row, column], total.to(tl.float16))
