"""Kernels as features: K = Phi Phi' by pivoted Cholesky, one kernel column a step, never n x n memory.

Each step takes the row whose kernel value is worst explained so far (the pivot) and adds one column to Phi. Stopped
when nothing is left, the features are exact and a linear model on them is the kernel machine
``s(x) = sum over pivots of alpha_p k(x, x_p)``; stopped earlier, they are a Nystroem approximation with greedily chosen
landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from slatewise.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class KernelBasis:
    """Features of the training rows, and what maps weights on them back to the pivots."""

    phi: Floats
    """(n, r) with phi @ phi.T = K."""
    pivots: Ints
    """(r,) rows of the training data."""

    def dual(self, weights: Floats) -> Floats:
        """Return alpha (r, N) with ``k(x, pivots) @ alpha = phi(x) @ weights.T`` for weights (N, r)."""
        return solve_triangular(self.phi[self.pivots], weights.T, lower=True, trans="T")


def kernel_basis(
    column: Callable[[int], Floats], diagonal: Floats, n_components: int | None = None, tol: float = 1e-9
) -> KernelBasis:
    """Factor a positive semidefinite kernel given its diagonal and, on demand, its columns.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> basis = kernel_basis(lambda i: K[:, i], K.diagonal())
    >>> np.allclose(basis.phi @ basis.phi.T, K)
    True
    """
    n = len(diagonal)
    most = n if n_components is None else min(n_components, n)
    left = diagonal.astype(np.float64)
    smallest = tol * float(left.max(initial=0.0))
    phi = np.zeros((n, most))
    pivots: list[int] = []
    while len(pivots) < most:
        pivot, size = int(np.argmax(left)), len(pivots)
        if left[pivot] <= smallest:
            break
        residual = column(pivot) - phi[:, :size] @ phi[pivot, :size]
        phi[:, size] = residual / np.sqrt(left[pivot])
        phi[pivots, size] = 0.0  # rounding aside it is: earlier pivots are fully explained
        pivots.append(pivot)
        left = np.maximum(left - phi[:, size] ** 2, 0.0)
        left[pivots] = 0.0
    return KernelBasis(np.ascontiguousarray(phi[:, : len(pivots)]), np.array(pivots, dtype=np.int64))
