# type: ignore  (kernels are written in Triton's language, of which Python's types know nothing)
"""Divide and conquer over the irrelevant items of many lists, in Triton; ``interleavings.try_all`` is its twin.

The best x_j rises with j, so an item between two that are decided only tries the x between theirs. One launch decides
every second item that is left: first the middle ones, at last all odd ones. A program takes a block of such items of
one list, a thread per item where few x are left; an item with many of them is tried by the whole block.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from slatewise.metric_learning.gpu.interleavings import BAD, Harmonic, Lists, Tensor

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")


@triton.jit
def gain(x, j, depth, price, sums, harmonic, inverse, on):
    """Return f_j(x), see ``interleavings``; -inf where not ``on``."""
    total = tl.load(sums + x, mask=on, other=0)
    h = tl.load(harmonic + x + j, mask=on, other=0.0)
    one = tl.load(inverse + x + j, mask=on, other=0.0)
    value = price * (x.to(tl.int64) * depth - total).to(tl.float64) - h - (j - 1) * one
    return tl.where(on, value, float("-inf"))


@triton.jit
def decide(
    key,
    sums,
    n_good,
    n_bad,
    prices,
    harmonic,
    inverse,
    found,
    N,
    SUMS,
    STRIDE,
    FIRST_BAD: tl.constexpr,
    BLOCK: tl.constexpr,
    FEW: tl.constexpr,
):
    """Fill ``found`` at the items STRIDE - 1, 3 STRIDE - 1, .. of each list's irrelevant ones; (B, N) as ``key``."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    node = tl.program_id(1) * BLOCK + lane
    good = tl.load(n_good + row).to(tl.int32)
    bad = tl.load(n_bad + row).to(tl.int32)
    price = tl.load(prices + row)
    sums += row * SUMS
    key += row * N + good
    found += row * N + good
    j = node * (2 * STRIDE) + STRIDE - 1
    inside = j < bad
    low = tl.load(found + j - STRIDE, mask=inside & (node > 0), other=0)
    high = tl.load(found + j + STRIDE, mask=j + STRIDE < bad, other=0)
    high = tl.where(j + STRIDE < bad, high, good)
    depth = (tl.load(key + j, mask=inside, other=FIRST_BAD) - FIRST_BAD).to(tl.int64)
    many = inside & (high - low >= FEW)
    width = tl.where(inside & ~many, high - low + 1, 0)
    best = tl.full((BLOCK,), float("-inf"), tl.float64)
    at = low
    x = low
    most = tl.max(width, axis=0)
    while most > 0:
        value = gain(x, j + 1, depth, price, sums, harmonic, inverse, x - low < width)
        better = value > best
        best = tl.where(better, value, best)
        at = tl.where(better, x, at)
        x += 1
        most -= 1
    tl.store(found + j, at, mask=inside & ~many)
    left = tl.sum(many.to(tl.int32), axis=0)
    while left > 0:
        chosen = lane == tl.min(tl.where(many, lane, BLOCK), axis=0)
        many = many & ~chosen
        item = tl.sum(tl.where(chosen, j, 0), axis=0)
        first = tl.sum(tl.where(chosen, low, 0), axis=0)
        last = tl.sum(tl.where(chosen, high, 0), axis=0)
        its_depth = tl.sum(tl.where(chosen, depth, 0), axis=0)
        best = tl.full((BLOCK,), float("-inf"), tl.float64)
        x = first + lane
        at = x
        while first <= last:
            value = gain(x, item + 1, its_depth, price, sums, harmonic, inverse, x <= last)
            better = value > best
            best = tl.where(better, value, best)
            at = tl.where(better, x, at)
            x += BLOCK
            first += BLOCK
        left -= 1
        largest = tl.max(best, axis=0)
        tl.store(found + item, tl.min(tl.where(best == largest, at, last), axis=0))


def conquer(
    lists: Lists, sums: Tensor, price: Tensor, tables: Harmonic, block: int = 128, few: int = 64, num_warps: int = 4
) -> Tensor:
    """Return the best x; see ``interleavings.Conquer``."""
    count, n = lists.key.shape
    found = torch.zeros((count, n), dtype=torch.int32, device=lists.key.device)
    most = int(lists.n_bad.max())
    stride = 1 << max(most.bit_length() - 1, 0)
    while stride > 0:
        decided = (most - stride) // (2 * stride) + 1
        decide[(count, triton.cdiv(decided, block))](
            lists.key,
            sums,
            lists.n_good,
            lists.n_bad,
            price,
            *tables,
            found,
            n,
            sums.shape[1],
            stride,
            BAD,
            block,
            few,
            num_warps=num_warps,
        )
        stride >>= 1
    return found
