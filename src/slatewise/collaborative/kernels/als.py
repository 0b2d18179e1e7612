"""Rows of a factor table, each solved against the other table by block coordinate descent.

Row u minimizes, over its entries j with weights w_j,

    sum_j w_j (1 - u.v_j)^2 + a0 sum over all v of (u.v)^2 + ridge_u |u|^2

one block of coordinates after the other, each exactly (Rendle et al. 2022).
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Ints, Shorts, Singles
from slatewise.core.running.kernel import kernel


@kernel
def solve(matrix: Singles, vector: Singles) -> None:
    """Put the solution into ``vector``, and the Cholesky factor into the lower triangle of ``matrix``."""
    n = len(vector)
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(total) if i == j else total / matrix[j, j]
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= matrix[i, k] * vector[k]
        vector[i] = total / matrix[i, i]
    for i in range(n - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, n):
            total -= matrix[k, i] * vector[k]
        vector[i] = total / matrix[i, i]


@kernel
def solve_rows(
    begin: int,
    end: int,
    offsets: Ints,
    places: Shorts,
    weights: Singles,
    others: Singles,
    gram: Singles,
    ridge: Singles,
    width: int,
    rows: Singles,
) -> None:
    """Improve the rows begin..end, in place; ``gram`` is a0 times the Gram matrix of ``others``."""
    n_components = others.shape[1]
    for u in range(begin, end):
        first, last = offsets[u], offsets[u + 1]
        m = last - first
        row = rows[u]
        if m == 0:
            row[:] = 0.0
            continue
        residuals = np.empty(m, dtype=rows.dtype)
        for j in range(m):
            total = rows.dtype.type(0.0)
            other = others[places[first + j]]
            for c in range(n_components):
                total += row[c] * other[c]
            residuals[j] = total - 1.0
        for low in range(0, n_components, width):
            high = min(n_components, low + width)
            n = high - low
            near = np.empty((m, n), dtype=rows.dtype)
            scaled = np.empty((m, n), dtype=rows.dtype)
            for j in range(m):
                other, weight = others[places[first + j]], weights[first + j]
                for c in range(n):
                    near[j, c] = other[low + c]
                    scaled[j, c] = weight * other[low + c]
            hessian = np.dot(near.T, scaled)
            step = np.dot(scaled.T, residuals)
            for c in range(n):
                total = step[c] + ridge[u] * row[low + c]
                for d in range(n_components):
                    total += gram[low + c, d] * row[d]
                step[c] = total
                for d in range(n):
                    hessian[c, d] += gram[low + c, low + d]
                hessian[c, c] += ridge[u]
            solve(hessian, step)
            for c in range(n):
                row[low + c] -= step[c]
            residuals -= np.dot(near, step)
