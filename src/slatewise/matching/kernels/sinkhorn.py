"""Sinkhorn's scaling: divide rows and columns by their sums in turn, towards a doubly stochastic matrix.

    B_ij -> B_ij / (a_i b_j),   rows sum to 1,   columns to 1

A few sweeps are enough where the result need only be well scaled, as any a and b are allowed there. Matrices must have
a matching without zeros, so no sum is 0.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel


@kernel
def balance(matrices: Floats, sweeps: int, log_scale: Floats) -> None:
    """Scale square matrices in place; add the logarithm of the product of all a_i and b_j to ``log_scale``."""
    count, size, _ = matrices.shape
    sums = np.empty(size)
    for number in range(count):
        matrix = matrices[number]
        for _ in range(sweeps):
            sums[:] = 0.0
            for i in range(size):
                row, total = matrix[i], 0.0
                for j in range(size):
                    total += row[j]
                log_scale[number] += np.log(total)
                inverse = 1.0 / total
                for j in range(size):
                    row[j] *= inverse
                    sums[j] += row[j]
            for j in range(size):
                log_scale[number] += np.log(sums[j])
                sums[j] = 1.0 / sums[j]
            for i in range(size):
                row = matrix[i]
                for j in range(size):
                    row[j] *= sums[j]
