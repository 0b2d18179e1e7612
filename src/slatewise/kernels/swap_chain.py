"""A Markov chain over matchings: pick a row and a column, exchange, accept by Metropolis' rule.

    row i goes to column j, the row that had j, if any, to i's column;  accept with probability min(1, p(new) / p(old))

The proposal is symmetric, so the chain's limit is p(y) ~ exp(sum_i w[i, y(i)]). It starts at the best matching, where
most of p is when p is hard to sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.kernels._kernel import kernel
from slatewise.kernels.quadratic_tabu import uniform

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@kernel
def walk_matchings(w: Float, column: Int, burn_in: int, thinning: int, random: NDArray[np.uint64], drawn: Int) -> int:
    """Fill ``drawn`` (n, M), each ``thinning`` steps after the one before; return how many proposals were accepted."""
    n_rows, n_columns = w.shape
    row_of = np.full(n_columns, -1)
    for i in range(n_rows):
        row_of[column[i]] = i
    accepted = 0
    for step in range(-burn_in, len(drawn) * thinning):
        i, j = int(uniform(random) * n_rows), int(uniform(random) * n_columns)
        old, other = column[i], row_of[j]
        gain = w[i, j] - w[i, old]
        if other >= 0:
            gain += w[other, old] - w[other, j]
        if j != old and (gain >= 0.0 or uniform(random) < np.exp(gain)):
            accepted += 1
            column[i] = j
            row_of[j], row_of[old] = i, other
            if other >= 0:
                column[other] = old
        if step >= 0 and (step + 1) % thinning == 0:
            drawn[step // thinning] = column
    return accepted
