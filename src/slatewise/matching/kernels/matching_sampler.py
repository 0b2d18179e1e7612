"""Perfect samples of matchings: a table over the first rows, and rejection under a bound for the others.

For a matrix A of n rows with entries in [0, 1] and column sums c_j (Huber and Law 2008)

    perm(A) <= U(A) = prod_j h(c_j) / e,     h(c) = c + ln(c) / 2 + e - 1  for c >= 1,    1 + (e - 1) c  below
    sum_j A_0j U(A without row 0 and column j) <= U(A)

so a matching may be drawn row by row with the bound in place of the permanent; the mass left over rejects it, and one
starts again. What is accepted has exactly the right distribution. A table makes the bound tighter (*deep* sampling):

    t_d[S] = U(rows d .., columns not in S),      t_k[S] = sum_{j not in S} A_kj t_{k+1}[S + j]

The first d rows are drawn from the table and never rejected; with d = n nothing is. Level k lists the subsets of k
columns in the order of their numbers: s_1 < .. < s_k has place sum_m C(s_m, m).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Words
from slatewise.core.kernels.random import uniform
from slatewise.core.running.kernel import kernel


class Table(NamedTuple):
    """What matchings are drawn by."""

    weights: Floats
    """A."""
    bounds: Floats
    """``bounds[k, j]``, see :func:`fill_bounds`."""
    depth: int
    """d."""
    choose: Ints
    """``choose[a, b]`` is C(a, b)."""
    starts: Ints
    """Where each level begins in ``sums``."""
    sums: Floats
    """t."""


class Scratch(NamedTuple):
    """Of one matching while it is drawn."""

    taken: NDArray[np.bool_]
    columns: Ints
    places: Ints


@kernel
def fill_bounds(weights: Floats, bounds: Floats) -> None:
    """Fill ``bounds[k, j]`` with h(c_j) / e, c_j the sum of column j from row k on."""
    size = len(weights)
    sums = np.zeros(size)
    for k in range(size, -1, -1):
        for j in range(size):
            if k < size:
                sums[j] += weights[k, j]
            c = sums[j]
            h = c + 0.5 * np.log(c) + np.e - 1.0 if c >= 1.0 else 1.0 + (np.e - 1.0) * c
            bounds[k, j] = h / np.e


@kernel
def places_after(columns: Ints, count: int, choose: Ints, taken: NDArray[np.bool_], places: Ints) -> None:
    """Fill ``places[j]`` with the place of S + j for each j not in S = ``columns[:count]``, ascending."""
    above = 0
    for m in range(count):
        above += choose[columns[m], m + 2]
    below, m = 0, 0
    for j in range(len(taken)):
        if taken[j]:
            below += choose[j, m + 1]
            above -= choose[j, m + 2]
            m += 1
        else:
            places[j] = below + choose[j, m + 1] + above


@kernel
def fill_table(table: Table) -> None:
    """Fill t."""
    weights, bounds, depth, choose, starts, sums = table
    size = len(weights)
    taken, columns, places = np.zeros(size, np.bool_), np.empty(size, np.int64), np.empty(size, np.int64)
    for k in range(depth, -1, -1):
        for m in range(size):
            taken[m] = m < k
            columns[m] = m
        for place in range(starts[k + 1] - starts[k]):
            value = 0.0
            if k == depth:
                value = 1.0
                for j in range(size):
                    if not taken[j]:
                        value *= bounds[k, j]
            else:
                places_after(columns, k, choose, taken, places)
                for j in range(size):
                    if not taken[j]:
                        value += weights[k, j] * sums[starts[k + 1] + places[j]]
            sums[starts[k] + place] = value
            # The next subset: the first column that can move up does, those below it go back to the start.
            m = 0
            while m < k - 1 and columns[m] + 1 == columns[m + 1]:
                m += 1
            if k and columns[m] + 1 < size:
                taken[columns[m]] = False
                taken[columns[m] + 1] = True
                columns[m] += 1
                for b in range(m):
                    taken[columns[b]] = False
                for b in range(m):
                    taken[b], columns[b] = True, b


@kernel
def draw_one(table: Table, random: Words, scratch: Scratch, out: Ints) -> bool:
    """Draw one matching into ``out``, ``out[i]`` the column of row i; False: rejected."""
    weights, bounds, depth, choose, starts, sums = table
    taken, columns, places = scratch
    size = len(weights)
    taken[:] = False
    here = starts[0]
    for k in range(depth):
        count = 0
        for j in range(size):
            if taken[j]:
                columns[count] = j
                count += 1
        places_after(columns, count, choose, taken, places)
        left, last = uniform(random) * sums[here], 0
        while taken[last]:  # the first free column, should all parts be too small for a number
            last += 1
        for j in range(size):
            if not taken[j] and weights[k, j] > 0.0:
                part = weights[k, j] * sums[starts[k + 1] + places[j]]
                if part > 0.0:
                    last = j
                    left -= part
                    if left < 0.0:
                        break
        out[k] = last
        here = starts[k + 1] + places[last]
        taken[last] = True
    for k in range(depth, size):
        tighter = 1.0
        for j in range(size):
            if not taken[j]:
                tighter *= bounds[k + 1, j] / bounds[k, j]
        left, chosen = uniform(random), -1
        for j in range(size):
            if not taken[j]:
                left -= tighter * weights[k, j] / bounds[k + 1, j]
                if left < 0.0:
                    chosen = j
                    break
        if chosen < 0:
            return False
        out[k] = chosen
        taken[chosen] = True
    return True


@kernel
def draw_all(table: Table, random: Words, most: int, drawn: Ints) -> tuple[int, int]:
    """Fill ``drawn`` (n, M) until all are accepted or ``most`` were tried; return how many were, and how many tried."""
    size = len(table.weights)
    scratch = Scratch(np.zeros(size, np.bool_), np.empty(size, np.int64), np.empty(size, np.int64))
    accepted, tried = 0, 0
    while accepted < len(drawn) and tried < most:
        tried += 1
        accepted += draw_one(table, random, scratch, drawn[accepted])
    return accepted, tried
