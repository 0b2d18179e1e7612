"""A Markov chain over matchings: pick a row and a column, exchange, accept by Metropolis' rule.

    row i goes to column j, the row that had j, if any, to i's column;  accept with probability min(1, p(new) / p(old))

The proposal is symmetric, so the chain's limit is p(y) ~ exp(sum_i w[i, y(i)]). It starts at the best matching, where
most of p is when p is hard to sample.

Where edges are impossible, swaps alone may not lead from one matching to another. So some impossible edges are walked
through, as if they had a weight, and only the steps at possible matchings are counted and drawn from: what such a chain
shows when it is watched at some of its places only is a chain too, with p of those places as its limit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.kernels.random import uniform
from slatewise.core.running.kernel import kernel


@kernel
def walk_matchings(
    w: Floats,
    closed: Ints,
    column: Ints,
    burn_in: int,
    thinning: int,
    most_steps: int,
    random: NDArray[np.uint64],
    drawn: Ints,
) -> tuple[int, int, int]:
    """Fill ``drawn`` (n, M), each ``thinning`` steps after the one before; return counts of steps.

    They are: drawn, accepted, all; fewer are drawn than n after ``most_steps``. ``closed`` (M, N) is 1 for the edges
    that are only walked through.
    """
    n_rows, n_columns = w.shape
    row_of = np.full(n_columns, -1)
    for i in range(n_rows):
        row_of[column[i]] = i
    steps = accepted = n_closed = n_drawn = 0
    wait = burn_in + thinning
    while n_drawn < len(drawn) and steps < most_steps:
        i, j = int(uniform(random) * n_rows), int(uniform(random) * n_columns)
        old, other = column[i], row_of[j]
        gain = w[i, j] - w[i, old]
        if other >= 0:
            gain += w[other, old] - w[other, j]
        steps += 1
        if j != old and (gain >= 0.0 or uniform(random) < np.exp(gain)):
            accepted += 1
            column[i] = j
            row_of[j], row_of[old] = i, other
            n_closed += closed[i, j] - closed[i, old]
            if other >= 0:
                column[other] = old
                n_closed += closed[other, old] - closed[other, j]
        if n_closed == 0:
            wait -= 1
            if wait == 0:
                drawn[n_drawn] = column
                n_drawn += 1
                wait = thinning
    return n_drawn, accepted, steps
