"""Glynn's formula for the permanent (2010), with its gradient, in O(M^2) memory.

    perm(B) = 2^{1-M} sum_delta (prod_j delta_j) prod_i r_i,    r = B delta,  delta in {-1, 1}^M with delta_0 = 1
    d perm / d B_ij = 2^{1-M} sum_delta delta_j L_i,            L_i = (prod_j delta_j) prod_{k != i} r_k

The signs are walked in Gray-code order: a step flips one column and adds +-2 B_j to r. Because delta_j changes only
when column j flips, its sum is taken at the flips alone (Abel summation): with T_i the sum of all L_i so far,

    sum_t delta_j(t) L_i(t) = sum over flips of j of 2 delta_j T_i  +  last delta_j * last T_i

Columns 1 .. 5 are not walked: their 32 sign patterns stand side by side (*lanes*), as vector instructions like it.
The last columns' signs are given by the block's number: blocks are summed elsewhere, by threads.

Rows go four at a time (*groups*, filled up with rows of r = 1). A pass up through the groups flips, and keeps the
product of each four and of all before; a pass down multiplies what is before, after and beside each row. A group's
numbers lie in one stretch of memory, 32 lanes a slot, so that the compiler sees that they do not overlap.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel

LANE_COLUMNS = 5
LANES = 1 << LANE_COLUMNS
SLOTS = 10
"""Slots of a group: 4 of r, 4 of T, the product of the four r, and the product of all groups before."""


@kernel
def restart(columns: Floats, delta: Floats, lane_signs: Floats, groups: Floats) -> None:
    """Compute r afresh: thousands of small steps would add up rounding."""
    size = len(columns)
    for i in range(4 * len(groups)):
        row = groups[i // 4][LANES * (i % 4) : LANES * (i % 4 + 1)]
        row[:] = 0.0 if i < size else 1.0
        for j in range(size if i < size else 0):
            for lane in range(LANES):
                row[lane] += columns[j, i] * (lane_signs[j - 1, lane] if 1 <= j <= LANE_COLUMNS else delta[j])


@kernel
def go_up(group: Floats, change: Floats, product: Floats) -> None:
    """Take ``change`` off the four rows of r; multiply them into the running product."""
    first, second, third, fourth = change[0], change[1], change[2], change[3]
    for lane in range(LANES):
        a, b = group[lane] - first, group[LANES + lane] - second
        c, d = group[2 * LANES + lane] - third, group[3 * LANES + lane] - fourth
        group[lane], group[LANES + lane] = a, b
        group[2 * LANES + lane], group[3 * LANES + lane] = c, d
        before, four = product[lane], (a * b) * (c * d)
        group[8 * LANES + lane] = four
        group[9 * LANES + lane] = before
        product[lane] = before * four


@kernel
def turn(product: Floats, sign: Floats, after: Floats, values: Floats) -> None:
    """Add the products to ``values``, their sizes to its second half; make ready for the pass down and the next up."""
    for lane in range(LANES):
        value = product[lane]
        values[lane] += value
        values[LANES + lane] += abs(value)
        product[lane] = -sign[lane]
        after[lane] = 1.0


@kernel
def go_down(group: Floats, after: Floats, double: float, sums: Floats) -> None:
    """Add L_i to T_i for the four rows, and double * T_i to the sums of the column that flips next."""
    for lane in range(LANES):
        a, b, c, d = group[lane], group[LANES + lane], group[2 * LANES + lane], group[3 * LANES + lane]
        others = after[lane] * group[9 * LANES + lane]
        after[lane] *= group[8 * LANES + lane]
        with_ab, with_cd = a * b * others, c * d * others
        total = group[4 * LANES + lane] + b * with_cd
        group[4 * LANES + lane] = total
        sums[lane] += double * total
        total = group[5 * LANES + lane] + a * with_cd
        group[5 * LANES + lane] = total
        sums[LANES + lane] += double * total
        total = group[6 * LANES + lane] + d * with_ab
        group[6 * LANES + lane] = total
        sums[2 * LANES + lane] += double * total
        total = group[7 * LANES + lane] + c * with_ab
        group[7 * LANES + lane] = total
        sums[3 * LANES + lane] += double * total


@kernel
def sum_signs(columns: Floats, block: int, block_columns: int, gradient: Floats) -> tuple[float, float]:
    """Return the sum over one block of sign patterns, which is 2^{M-1} times its part of perm, and that of its sizes.

    ``columns[j, i]`` is B_ij; ``gradient[j, i]`` gets the sum of delta_j L_i. Rounding is in proportion to the sizes.
    """
    size = len(columns)
    n_groups, first, walked = (size + 3) // 4, 1 + LANE_COLUMNS, size - 1 - LANE_COLUMNS - block_columns
    delta, lane_signs, sign = np.ones(size), np.empty((LANE_COLUMNS, LANES)), np.ones(LANES)
    for b in range(block_columns):
        if (block >> b) & 1:
            delta[first + walked + b] = -1.0
            sign *= -1.0
    for b in range(LANE_COLUMNS):
        for lane in range(LANES):
            lane_signs[b, lane] = -1.0 if (lane >> b) & 1 else 1.0
            sign[lane] *= lane_signs[b, lane]
    groups, sums = np.zeros((n_groups, SLOTS * LANES)), np.zeros((max(walked, 1), n_groups, 4 * LANES))
    product, after, values, change = sign.copy(), np.empty(LANES), np.zeros(2 * LANES), np.zeros((n_groups, 4))
    restart(columns, delta, lane_signs, groups)
    for step in range(1, (1 << walked) + 1):
        w = 0  # the column to flip after this step; after the last step there is none
        while w < walked and (step >> w) & 1 == 0:
            w += 1
        double, to = (2.0 * delta[first + w], w) if w < walked else (0.0, 0)
        for g in range(n_groups):
            go_up(groups[g], change[g], product)
        turn(product, sign, after, values)
        for g in range(n_groups - 1, -1, -1):
            go_down(groups[g], after, double, sums[to, g])
        if w < walked:
            for lane in range(LANES):
                sign[lane] = -sign[lane]
            delta[first + w] *= -1.0
            for i in range(size):
                change[i // 4, i % 4] = double * columns[first + w, i]
            if w >= 6:
                restart(columns, delta, lane_signs, groups)
                change[:] = 0.0
    for j in range(size):
        for i in range(size):
            total, flips = groups[i // 4][LANES * (4 + i % 4) :], sums[max(0, min(j - first, walked - 1)), i // 4]
            out = 0.0
            for lane in range(LANES):
                out += total[lane] * (lane_signs[j - 1, lane] if 1 <= j < first else delta[j])
                out += flips[LANES * (i % 4) + lane] if first <= j < first + walked else 0.0
            gradient[j, i] = out
    return values[:LANES].sum(), values[LANES:].sum()


@kernel
def sum_signs_of_all(columns: Floats, gradients: Floats, values: Floats, sizes: Floats) -> None:
    """Do many matrices in one block each."""
    for number in range(len(columns)):
        values[number], sizes[number] = sum_signs(columns[number], 0, 0, gradients[number])
