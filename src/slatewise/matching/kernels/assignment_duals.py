"""Prices that make the best matching cost nothing: the duals of the assignment problem.

    w_ij <= u_i + v_j for all i, j,  equal on the best matching,  v_j >= 0, and 0 for columns it leaves free

So weights ``exp(w_ij - u_i - v_j)`` are at most 1 and the best matching weighs 1: sums over all matchings then need no
logarithms. Rows enter one by one along a shortest augmenting path (Jonker and Volgenant 1987), O(M^2 N).
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel


@kernel
def assign_rows(w: Floats, u: Floats, v: Floats, column: Ints) -> bool:
    """Fill the duals and each row's column for one matrix with M <= N; False: no matching has finite weight."""
    n_rows, n_columns = w.shape
    row_of = np.full(n_columns, -1)
    gap, before, done = np.empty(n_columns), np.empty(n_columns, np.int64), np.empty(n_columns, np.bool_)
    v[:] = 0.0
    for first in range(n_rows):
        u[first] = 0.0
        gap[:] = np.inf
        done[:] = False
        last, row = -1, first
        while row >= 0:
            step, nearest = np.inf, -1
            for j in range(n_columns):
                if not done[j]:
                    slack = u[row] + v[j] - w[row, j]
                    if slack < gap[j]:
                        gap[j], before[j] = slack, last
                    if gap[j] < step:
                        step, nearest = gap[j], j
            if nearest < 0:
                return False
            u[first] -= step
            for j in range(n_columns):
                if done[j]:
                    u[row_of[j]] -= step
                    v[j] += step
                else:
                    gap[j] -= step
            done[nearest] = True
            last, row = nearest, row_of[nearest]
        while last >= 0:  # turn the path: each column takes the row of the one before it
            row_of[last] = row_of[before[last]] if before[last] >= 0 else first
            last = before[last]
    for j in range(n_columns):
        if row_of[j] >= 0:
            column[row_of[j]] = j
    return True


@kernel
def assign_all(w: Floats, u: Floats, v: Floats, column: Ints) -> int:
    """Fill duals and columns of every matrix; return the number of the first without a matching, or -1."""
    for number in range(len(w)):
        if not assign_rows(w[number], u[number], v[number], column[number]):
            return number
    return -1
