"""Scores of the labels of a row: linear, pre-trained, or by a kernel.

    linear       s_i = w_i . (x - mean) / spread + v_i
    pretrained   s_i = (base + a_i) x_i + v_i          x is the row of given scores, base keeps their order at a = v = 0
    kernel       s_i = sum over basis rows p of alpha_pi k(x, x_p) + v_i

``prepare_*`` turns training rows into the features a learner works on and says how its weights become coefficients; the
leaves score any rows by these coefficients. Learners see one constant feature more, as large as a typical row, for v,
and features whose size does not depend on the unit of X, so that a strength means the same whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.numerics.row_kernels import RowKernel, kernel_basis

Coefficients: TypeAlias = tuple[Floats, Floats]
"""Coefficients and intercepts."""


_ROUNDING = 1e-12
"""A column that differs by less, relative to its values, is constant."""
_LEAST_SPREAD = 1e-150


class LabelScores(Protocol):
    """A way to score labels."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Return the scores (n, N) of any rows."""
        ...


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a learner works on, and the way back."""

    scores: LabelScores
    phi: Floats
    """(n, d) features shared by the labels of a row, or (n * N, d) with one row per row and label."""
    offset: Floats | None
    """(n, N) fixed part of the scores."""
    coefficients: Callable[[Floats], Coefficients]
    """Turns the learner's weights (N, d) into coefficients and intercepts."""


@dataclass(frozen=True)
class LinearScores:
    """s = X coef' + intercept."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """One matrix product."""
        return X @ coef.T + intercept


@dataclass(frozen=True)
class PretrainedScores:
    """s = X * coef + intercept, one coefficient per label."""

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Scale and shift every column."""
        return X * coef + intercept


@dataclass(frozen=True, eq=False)
class KernelScores:
    """s = k(X, basis) coef' + intercept."""

    kernel: RowKernel
    basis: NDArray[np.generic]

    def scores(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        """Compare with the basis rows."""
        return self.kernel.compare(X, self.basis) @ coef.T + intercept


def prepare_pretrained(X: Floats, typical_loss: float | None = None) -> Prepared:
    """Give every label two features of its own, its score and 1.

    For the hinge the scores are scaled to spread as much as a loss does; without a loss they stay as they are.
    """
    spread = float(X.std())
    base = 1.0 if typical_loss is None or spread == 0.0 else typical_loss / spread
    scaled = X * base
    phi = np.stack([scaled, np.ones_like(X)], axis=2).reshape(-1, 2)
    return Prepared(PretrainedScores(), phi, scaled, lambda W: (base * (1.0 + W[:, 0]), W[:, 1].copy()))


def prepare_kernel(kernel: RowKernel, X: Floats, n_components: int | None) -> Prepared:
    """Factor the kernel of the training rows: exactly, or with at most ``n_components`` basis rows."""
    diagonal = kernel.diagonal(X)
    basis = kernel_basis(lambda row: kernel.column(X, row), diagonal, n_components)
    length = float(np.sqrt(diagonal.mean())) or 1.0
    phi, split = _with_constant(basis.phi / length)

    def coefficients(W: Floats) -> Coefficients:
        weights, intercept = split(W)
        return np.ascontiguousarray(basis.dual(weights / length).T), intercept

    return Prepared(KernelScores(kernel, kernel.rows(X, basis.pivots)), phi, None, coefficients)


def column_spread(centred: Floats, largest: Floats, weight: Floats) -> Floats:
    """Return the standard deviation of each column, 1 of those that are constant but for rounding."""
    peak = np.abs(centred).max(axis=0, initial=0.0)
    unit = peak_unit(peak, largest)
    # Divided first: squares of tiny or huge numbers are 0 or infinite.
    return checked_spread(peak, largest, unit * np.sqrt(weight @ (centred / unit) ** 2 / weight.sum()))


def peak_unit(peak: Floats, largest: Floats) -> Floats:
    """Return the largest distance from the centre in each column, 1 of those that are constant but for rounding."""
    return np.where(peak > _ROUNDING * largest, peak, 1.0)


def checked_spread(peak: Floats, largest: Floats, deviation: Floats) -> Floats:
    """Return the standard deviation of each column, 1 of those that are constant but for rounding; refuse extremes."""
    spread = np.where(peak > _ROUNDING * largest, deviation, 1.0)
    wrong = (spread < _LEAST_SPREAD) | (spread > 1.0 / _LEAST_SPREAD)
    if wrong.any():
        column = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"X: expected columns with a standard deviation from {_LEAST_SPREAD} to {1 / _LEAST_SPREAD}, "
            f"found {spread[column]:.3g} in column {column}"
        )
    return spread


def typical_length(mean_square: float) -> float:
    """Return how large the constant feature is, for rows of so large a mean square; 1 where they are 0."""
    return float(np.sqrt(mean_square)) or 1.0


def _with_constant(X: Floats) -> tuple[Floats, Callable[[Floats], Coefficients]]:
    constant = typical_length(float((X**2).sum(axis=1).mean()) if X.size else 0.0)
    return (
        np.column_stack([X, np.full(len(X), constant)]),
        lambda W: (np.ascontiguousarray(W[:, :-1]), W[:, -1] * constant),
    )
