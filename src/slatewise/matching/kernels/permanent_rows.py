"""Sums over matchings of M rows into N >= M columns, column by column, by subsets of rows already matched.

    f_0 = [S empty],    f_{j+1}[S] = free_j f_j[S]     + sum_{i in S}     B_ij f_j[S - i]
    g_N = [S full],     g_j[S]     = free_j g_{j+1}[S] + sum_{i not in S} B_ij g_{j+1}[S + i]
    Z = f_N[full],      P_ij = B_ij sum_{S without i} f_j[S] g_{j+1}[S + i] / Z

free_j is what a column weighs that no row takes. O(N M 2^M); a column with few candidates costs that much less.
"""

from __future__ import annotations

from slatewise.core.arrays import Floats, Ints, Words
from slatewise.core.kernels.random import uniform
from slatewise.core.running.kernel import kernel, kernel_fastmath


@kernel
def add_scaled(out: Floats, weight: float, values: Floats) -> None:
    """Add weight * values to out."""
    for k in range(len(out)):
        out[k] += weight * values[k]


@kernel_fastmath
def dot(left: Floats, right: Floats) -> float:
    """Return the inner product."""
    total = 0.0
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@kernel
def quads_forward(first: float, second: float, now: Floats, then: Floats) -> None:
    """Let rows 0 and 1 take the column: for them the runs of subsets are too short for ``add_scaled``."""
    for s in range(0, len(now), 4):
        nobody, row_0, row_1 = now[s], now[s + 1], now[s + 2]
        then[s + 1] += first * nobody
        then[s + 2] += second * nobody
        then[s + 3] += first * row_1 + second * row_0


@kernel_fastmath
def quads_backward(first: float, second: float, before: Floats, after: Floats, now: Floats) -> tuple[float, float]:
    """Do the same backwards; return the sums of f g for rows 0 and 1."""
    with_first, with_second = 0.0, 0.0
    for s in range(0, len(now), 4):
        row_0, row_1, both = after[s + 1], after[s + 2], after[s + 3]
        with_first += before[s] * row_0 + before[s + 2] * both
        with_second += before[s] * row_1 + before[s + 1] * both
        now[s] += first * row_0 + second * row_1
        now[s + 1] += second * both
        now[s + 2] += first * both
    return with_first, with_second


@kernel
def fill_forward(weights: Floats, free: Floats, tables: Floats) -> None:
    """Fill ``tables[j]`` with f_j for j = 0 .. N; ``weights[j, i]`` is B_ij."""
    n_columns, n_rows = weights.shape
    short = 2 if n_rows > 1 else 0
    tables[0] = 0.0
    tables[0, 0] = 1.0
    for j in range(n_columns):
        now, then = tables[j], tables[j + 1]
        for subset in range(len(now)):
            then[subset] = free[j] * now[subset]
        if short:
            quads_forward(weights[j, 0], weights[j, 1], now, then)
        for i in range(short, n_rows):
            if weights[j, i] > 0.0:
                bit = 1 << i
                for low in range(0, len(now), 2 * bit):  # all subsets without i are runs of 2^i
                    add_scaled(then[low + bit : low + 2 * bit], weights[j, i], now[low : low + bit])


@kernel
def sum_one(weights: Floats, free: Floats, tables: Floats, buffer: Floats, marginals: Floats) -> float:
    """Return Z of one matrix; fill ``marginals[j, i]``."""
    n_columns, n_rows = weights.shape
    short = 2 if n_rows > 1 else 0
    fill_forward(weights, free, tables)
    full = (1 << n_rows) - 1
    z = float(tables[n_columns, full])
    buffer[n_columns % 2] = 0.0
    buffer[n_columns % 2, full] = 1.0
    for j in range(n_columns - 1, -1, -1):
        after, now, before = buffer[(j + 1) % 2], buffer[j % 2], tables[j]
        for subset in range(len(now)):
            now[subset] = free[j] * after[subset]
        if short:
            first, second = quads_backward(weights[j, 0], weights[j, 1], before, after, now)
            marginals[j, 0], marginals[j, 1] = weights[j, 0] * first / z, weights[j, 1] * second / z
        for i in range(short, n_rows):
            total = 0.0
            if weights[j, i] > 0.0:
                bit = 1 << i
                for low in range(0, len(now), 2 * bit):
                    add_scaled(now[low : low + bit], weights[j, i], after[low + bit : low + 2 * bit])
                    total += dot(before[low : low + bit], after[low + bit : low + 2 * bit])
            marginals[j, i] = weights[j, i] * total / z
    return z


@kernel
def sum_matchings(weights: Floats, free: Floats, tables: Floats, buffer: Floats, z: Floats, marginals: Floats) -> None:
    """Fill ``z[g]`` and ``marginals[g, j, i]``; ``tables`` and ``buffer`` hold f_0 .. f_N and two tables of g."""
    for number in range(len(weights)):
        z[number] = sum_one(weights[number], free[number], tables, buffer, marginals[number])


@kernel
def draw_matchings(weights: Floats, free: Floats, tables: Floats, random: Words, drawn: Ints) -> None:
    """Fill ``drawn`` (n, M) with exact samples, last column first: f_{j+1}[S] sums up what may have led to S."""
    n_columns, n_rows = weights.shape
    for number in range(len(drawn)):
        subset = (1 << n_rows) - 1
        for i in range(n_rows):
            drawn[number, i] = i  # a matching already, should rounding leave a row without a column
        for j in range(n_columns - 1, -1, -1):
            left, chosen = uniform(random) * tables[j + 1, subset] - free[j] * tables[j, subset], -1
            for i in range(n_rows):
                if left < 0.0:
                    break
                if (subset >> i) & 1:
                    part = weights[j, i] * tables[j, subset ^ (1 << i)]
                    if part > 0.0:
                        chosen = i
                        left -= part
            if chosen >= 0:
                drawn[number, chosen] = j
                subset ^= 1 << chosen
