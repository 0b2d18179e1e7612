"""Kernels between rows: the ``kernel`` of :class:`slatewise.MetricRanker`.

A kernel machine compares rows with a basis of training rows, chosen by pivoted Cholesky: the row that the basis
explains worst comes next. A basis of all rows that add anything is exact; a smaller one is a Nystroem approximation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.declarations import Settings, param
from slatewise.core.numerics import row_kernels
from slatewise.core.numerics.row_kernels import RowKernel
from slatewise.core.rules import NONE, POSITIVE, count

__all__ = ["Chi2", "Intersection", "Precomputed", "Rbf"]


_N_BASIS = count() | NONE
_N_BASIS_TEXT = "The maximum number of basis rows. None: all that add anything, which is exact."


class Rbf(Settings, shorthand="rbf"):
    """``k(x, y) = exp(-gamma |x - y|^2)``."""

    gamma: float | None = param(POSITIVE | NONE, "None: 1 / (number of features * variance).", default=None)
    n_basis: int | None = param(_N_BASIS, _N_BASIS_TEXT, default=None)

    def of(self, X: Floats) -> row_kernels.Rbf:
        """Return the kernel for training rows, which choose gamma if it is None."""
        return row_kernels.Rbf.of(X, self.gamma)


class Chi2(Settings, shorthand="chi2"):
    """``k(x, y) = exp(-gamma sum_j (x_j - y_j)^2 / (x_j + y_j))``, for rows of numbers >= 0 (histograms)."""

    gamma: float | None = param(
        POSITIVE | NONE, "None: 1 / the mean distance of a training row to the mean row.", default=None
    )
    n_basis: int | None = param(_N_BASIS, _N_BASIS_TEXT, default=None)

    def of(self, X: Floats) -> row_kernels.Chi2:
        """Return the kernel for training rows, which choose gamma if it is None."""
        return row_kernels.Chi2.of(X, self.gamma)


class Intersection(Settings, shorthand="intersection"):
    """``k(x, y) = sum_j min(x_j, y_j)``, for rows of numbers >= 0 (histograms)."""

    n_basis: int | None = param(_N_BASIS, _N_BASIS_TEXT, default=None)

    def of(self, X: Floats) -> row_kernels.Intersection:
        """Return the kernel for training rows."""
        return row_kernels.Intersection.of(X, None)


class Precomputed(Settings, shorthand="precomputed"):
    """X is the kernel matrix itself: the rows against all training rows."""

    n_basis: int | None = param(_N_BASIS, _N_BASIS_TEXT, default=None)

    def of(self, X: Floats) -> row_kernels.Precomputed:
        """Return the kernel for training rows, whose matrix must be symmetric."""
        return row_kernels.Precomputed.of(X, None)


Kernel: TypeAlias = Rbf | Chi2 | Intersection | Precomputed


def has_gamma(kernel: object) -> bool:
    """Tell whether a kernel has a gamma, which a fit learns if it is None."""
    return isinstance(kernel, Rbf | Chi2)


def learned_kernel(kernel: Kernel, gamma: float | None) -> RowKernel:
    """Return the kernel of a fitted estimator; ``gamma`` is None for a kernel without one."""
    return row_kernels.KERNELS[str(kernel.shorthand)](1.0 if gamma is None else gamma)


def check_basis(kernel: Kernel, basis: NDArray[Any], n_features: int) -> None:
    """Raise ValueError unless ``basis`` is what a kernel can compare rows of ``n_features`` with."""
    row_kernels.check_basis(str(kernel.shorthand), basis, n_features)
