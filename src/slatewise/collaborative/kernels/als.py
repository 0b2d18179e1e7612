"""Rows of a factor table, each solved against the other table by block coordinate descent.

Row u minimizes, over its entries j with weights w_j,

    sum_j w_j (1 - u.v_j)^2 + a0 sum over all v of (u.v)^2 + ridge_u |u|^2

one block of coordinates after the other, each exactly (Rendle et al. 2022).
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Ints, Shorts, Singles
from slatewise.core.running.kernel import kernel

LEAST_DAMPING = 1e-6
"""The penalty of a step relative to the largest curvature, where its own is less: single precision holds no more."""


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
            hessian: Singles = np.dot(near.T, scaled)
            hessian += gram[low:high, low:high]
            largest = rows.dtype.type(0.0)
            for c in range(n):
                largest = max(largest, hessian[c, c])
            damping = max(ridge[u], rows.dtype.type(LEAST_DAMPING) * largest)
            for c in range(n):
                hessian[c, c] += damping
            gradient: Singles = np.dot(scaled.T, residuals) + np.dot(gram[low:high], row) + ridge[u] * row[low:high]
            step = np.linalg.solve(hessian, gradient)
            row[low:high] -= step
            residuals -= np.dot(near, step)
