"""Kernels between rows, and their features.

rbf           k(x, y) = exp(-gamma |x - y|^2)
chi2          k(x, y) = exp(-gamma sum_j (x_j - y_j)^2 / (x_j + y_j))          x, y >= 0
intersection  k(x, y) = sum_j min(x_j, y_j)                                    x, y >= 0
precomputed   the caller's matrix: rows against the training rows

:func:`kernel_basis` finds features with K = Phi Phi' by pivoted Cholesky, one kernel column per step, never in n x n
memory. Each step takes the row whose kernel value is explained worst so far (the pivot) and adds one column to Phi. Run
to the end, the features are exact and a linear model on them is the kernel machine
``s(x) = sum over pivots of alpha_p k(x, x_p)``; stopped earlier, they are a Nystroem approximation with greedily chosen
landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from slatewise.core.arrays import Floats, Ints


class RowKernel(Protocol):
    """A positive semidefinite kernel, column by column."""

    def diagonal(self, X: Floats) -> Floats:
        """Return k(x, x) of every training row."""
        ...

    def column(self, X: Floats, row: int) -> Floats:
        """Return the kernel of every training row with one of them."""
        ...

    def rows(self, X: Floats, chosen: Ints) -> NDArray[Any]:
        """Return what :meth:`compare` needs to compare with the chosen training rows."""
        ...

    def compare(self, X: Floats, basis: NDArray[Any]) -> Floats:
        """Return the kernel (n, r) of any rows with the chosen ones."""
        ...


@dataclass(frozen=True)
class Rbf:
    """exp(-gamma |x - y|^2)."""

    gamma: float

    @classmethod
    def of(cls, X: Floats, gamma: float | None) -> Rbf:
        """Default gamma: 1 / (features * variance)."""
        return cls(gamma or _inverse(float(X.shape[1] * X.var())))

    def diagonal(self, X: Floats) -> Floats:
        """All ones."""
        return np.ones(len(X))

    def column(self, X: Floats, row: int) -> Floats:
        """One row against all."""
        return self.compare(X, X[row : row + 1])[:, 0]

    def rows(self, X: Floats, chosen: Ints) -> Floats:
        """The rows themselves."""
        return np.ascontiguousarray(X[chosen])

    def compare(self, X: Floats, basis: Floats) -> Floats:
        """Through one matrix product."""
        squares = (X**2).sum(axis=1)[:, None] + (basis**2).sum(axis=1) - 2.0 * (X @ basis.T)
        return np.exp(-self.gamma * np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Chi2(Rbf):
    """exp(-gamma chi2(x, y)) for histograms."""

    @classmethod
    def of(cls, X: Floats, gamma: float | None) -> Chi2:
        """Default gamma: 1 / the mean distance to the mean row."""
        check_histograms(X)
        return cls(gamma or _inverse(float(_filled("chi2_distances", X, X.mean(axis=0)[None]).mean())))

    def compare(self, X: Floats, basis: Floats) -> Floats:
        """Row by row."""
        check_histograms(X)
        return np.exp(-self.gamma * _filled("chi2_distances", X, basis))


@dataclass(frozen=True)
class Intersection(Rbf):
    """sum of minima, for histograms; gamma is not used."""

    @classmethod
    def of(cls, X: Floats, gamma: float | None) -> Intersection:
        """No parameter to choose."""
        check_histograms(X)
        return cls(1.0)

    def diagonal(self, X: Floats) -> Floats:
        """The row's sum."""
        return X.sum(axis=1)

    def compare(self, X: Floats, basis: Floats) -> Floats:
        """Row by row."""
        check_histograms(X)
        return _filled("intersections", X, basis)


@dataclass(frozen=True)
class Precomputed:
    """A kernel matrix given by the caller."""

    gamma: float = 1.0

    @classmethod
    def of(cls, X: Floats, gamma: float | None) -> Precomputed:
        """Check that the training matrix is square and symmetric."""
        if X.shape[0] != X.shape[1] or not np.allclose(X, X.T):
            raise ValueError(f"X: expected a symmetric kernel matrix, found shape {X.shape}")
        return cls()

    def diagonal(self, X: Floats) -> Floats:
        """The matrix's own."""
        return X.diagonal()

    def column(self, X: Floats, row: int) -> Floats:
        """The matrix's own."""
        return X[:, row]

    def rows(self, X: Floats, chosen: Ints) -> Ints:
        """The numbers of the columns."""
        return chosen

    def compare(self, X: Floats, basis: Ints) -> Floats:
        """The columns."""
        return X[:, basis]


KERNELS = {"rbf": Rbf, "chi2": Chi2, "intersection": Intersection, "precomputed": Precomputed}
"""By the name a constructor takes."""


def check_basis(kernel: str, basis: NDArray[Any], n_features: int) -> None:
    """Raise ValueError unless a kernel can compare rows of ``n_features`` features with a basis."""
    if kernel == "precomputed":
        if basis.dtype.kind != "i" or basis.max(initial=-1) >= n_features:
            raise ValueError(f"basis_: expected columns of {n_features}, found {basis.dtype} of shape {basis.shape}")
    elif kernel in KERNELS and (basis.ndim != 2 or basis.shape[1] != n_features):
        raise ValueError(f"basis_: expected rows of {n_features} features, found shape {basis.shape}")
    if kernel in ("chi2", "intersection") and basis.min(initial=0.0) < 0:
        raise ValueError(f"basis_: expected numbers >= 0 for a histogram kernel, found {basis.min()}")


def check_histograms(X: Floats) -> None:
    """Raise unless every value is >= 0."""
    if (X < 0).any():
        row, column = np.argwhere(X < 0)[0]
        raise ValueError(f"X[{row}, {column}]: expected a number >= 0 for a histogram kernel, found {X[row, column]}")


def _inverse(spread: float) -> float:
    return 1.0 / spread if spread > 0 else 1.0


def _filled(kernel: str, X: Floats, Y: Floats) -> Floats:
    from slatewise.core.kernels import rows

    out = np.empty((len(X), len(Y)))
    getattr(rows, kernel)(np.ascontiguousarray(X), np.ascontiguousarray(Y), out)
    return out


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
