"""Belief propagation for the Bethe permanent (Huang and Jebara 2009; Vontobel 2013).

    R_ij = 1 / sum_{k != j} B_ik C_ik,     C_ij = 1 / (free_j + sum_{k != i} B_kj R_kj),     P_ij = B R C / (1 + B R C)

R_ij is what row i says about its edge to column j, C_ij what column j says; free_j is what an unused column weighs (0:
each is used). The fixed point is the maximum of a concave function, and unique. Sums that leave one out are built from
both ends, never by subtraction: where one edge has nearly all the weight, the difference would be rounding.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel

TINY = 1e-150
"""Sums are kept above this, so no message is infinite: a probability is then off by as little."""


@kernel
def leave_one_out(values: Floats, start: float, out: Floats) -> None:
    """Fill ``out[k]`` with 1 / (start + sum of all values but the k-th)."""
    total = start
    for k in range(len(values)):
        out[k] = total
        total += values[k]
    total = 0.0
    for k in range(len(values) - 1, -1, -1):
        out[k] = 1.0 / max(out[k] + total, TINY)
        total += values[k]


@kernel
def propagate_one(weights: Floats, free: Floats, rounds: int, tolerance: float, beliefs: Floats) -> bool:
    """Fill the beliefs of one matrix; say whether they came to rest."""
    n_rows, n_columns = weights.shape
    from_rows, from_columns = np.empty((n_rows, n_columns)), np.ones((n_columns, n_rows))
    along_row, along_column = np.empty(n_columns), np.empty(n_rows)
    beliefs[:] = 0.0
    for _ in range(rounds):
        for i in range(n_rows):
            for j in range(n_columns):
                along_row[j] = weights[i, j] * from_columns[j, i]
            leave_one_out(along_row, 0.0, from_rows[i])
        change = 0.0
        for j in range(n_columns):
            for i in range(n_rows):
                along_column[i] = weights[i, j] * from_rows[i, j]
            leave_one_out(along_column, free[j], from_columns[j])
            for i in range(n_rows):
                odds = along_column[i] * from_columns[j, i]
                belief = odds / (1.0 + odds) if odds < 1.0 else 1.0 / (1.0 + 1.0 / odds)
                change = max(change, abs(belief - beliefs[i, j]))
                beliefs[i, j] = belief
        if change <= tolerance:
            return True
    return False


@kernel
def propagate(weights: Floats, free: Floats, rounds: int, tolerance: float, beliefs: Floats) -> int:
    """Fill the beliefs of all matrices; return how many did not come to rest."""
    restless = 0
    for number in range(len(weights)):
        restless += not propagate_one(weights[number], free[number], rounds, tolerance, beliefs[number])
    return restless
