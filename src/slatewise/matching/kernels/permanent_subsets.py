"""Sums over all permutations by subsets of columns, many matrices side by side.

    alpha[S] = sum_{j in S}     B[|S| - 1, j] alpha[S - j]       the first |S| rows on the columns S
    beta[S]  = sum_{j not in S} B[|S|, j]     beta[S + j]        the other rows on the other columns
    Z = alpha[all],     P_ij = B_ij sum_{|S| = i, j not in S} alpha[S] beta[S + j] / Z

O(M 2^M), and all terms are positive: no digits are lost. The innermost loop runs over matrices (*lanes*), which is what
the compiler turns into vector instructions.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel

LANES = 64
FEW = 8
"""Fewer matrices than this go one by one."""


@kernel
def count_bits(subset: int) -> int:
    """Return |S|."""
    count = 0
    while subset:
        subset &= subset - 1
        count += 1
    return count


@kernel
def add_product(out: Floats, left: Floats, right: Floats) -> None:
    """Add left * right, lane by lane; three arrays are few enough for the compiler to see that they do not overlap."""
    for lane in range(LANES):
        out[lane] += left[lane] * right[lane]


@kernel
def fill_alpha(weights: Floats, alpha: Floats) -> None:
    """Fill ``alpha[S, lane]`` for the matrices ``weights[:, :, lane]``."""
    alpha[:] = 0.0
    alpha[0] = 1.0
    for subset in range(1, len(alpha)):
        i = count_bits(subset) - 1
        for j in range(len(weights)):
            if (subset >> j) & 1:
                add_product(alpha[subset], weights[i, j], alpha[subset ^ (1 << j)])


@kernel
def fill_beta(weights: Floats, alpha: Floats, beta: Floats, sums: Floats) -> None:
    """Fill beta, and add alpha[S] beta[S + j] to ``sums[i, j]``."""
    beta[:] = 0.0
    beta[-1] = 1.0
    for subset in range(len(beta) - 2, -1, -1):
        i = count_bits(subset)
        for j in range(len(weights)):
            if not (subset >> j) & 1:
                after = beta[subset | (1 << j)]
                if i:
                    add_product(beta[subset], weights[i, j], after)
                    add_product(sums[i, j], alpha[subset], after)
                else:
                    sums[0, j] = after  # alpha is 1, and beta of the empty set, which is Z, is known


@kernel
def fill_one(weights: Floats, alpha: Floats, beta: Floats, sums: Floats) -> None:
    """Fill both for one matrix (M, M) alone, in the first column of the tables."""
    size = len(weights)
    full = (1 << size) - 1
    alpha[0, 0] = beta[full, 0] = 1.0
    for subset in range(1, full + 1):
        i, total = count_bits(subset) - 1, 0.0
        for j in range(size):
            if (subset >> j) & 1:
                total += weights[i, j] * alpha[subset ^ (1 << j), 0]
        alpha[subset, 0] = total
    for subset in range(full - 1, -1, -1):
        i, total, before = count_bits(subset), 0.0, alpha[subset, 0]
        for j in range(size):
            if not (subset >> j) & 1:
                part = beta[subset | (1 << j), 0]
                total += weights[i, j] * part
                sums[i, j] += before * part
        beta[subset, 0] = total


@kernel
def sum_few(matrices: Floats, alpha: Floats, beta: Floats, z: Floats) -> None:
    """Fill ``z`` (B,) and put marginals, 0 where z is, in the place of the weights (B, M, M), one by one."""
    sums = np.empty(matrices.shape[1:])
    for number in range(len(matrices)):
        sums[:] = 0.0
        fill_one(matrices[number], alpha, beta, sums)
        z[number] = alpha[-1, 0]
        matrices[number] *= sums * (1.0 / z[number] if z[number] > 0.0 else 0.0)


@kernel
def sum_many(matrices: Floats, alpha: Floats, beta: Floats, z: Floats) -> None:
    """Do the same for LANES at a time; the tables are (2^M, LANES)."""
    count, size, _ = matrices.shape
    lanes, sums = np.zeros((size, size, LANES)), np.empty((size, size, LANES))
    for first in range(0, count, LANES):
        used = min(LANES, count - first)
        if used < FEW:
            sum_few(matrices[first:], alpha, beta, z[first:])
            break
        for lane in range(used):
            for i in range(size):
                for j in range(size):
                    lanes[i, j, lane] = matrices[first + lane, i, j]
        sums[:] = 0.0
        fill_alpha(lanes, alpha)
        fill_beta(lanes, alpha, beta, sums)
        for lane in range(used):
            total = alpha[-1, lane]
            inverse = 1.0 / total if total > 0.0 else 0.0
            z[first + lane] = total
            for i in range(size):
                for j in range(size):
                    matrices[first + lane, i, j] *= sums[i, j, lane] * inverse
