"""One-vs-rest logistic regression of many labels at once.

    min over w_i, b_i of   1/2 |w_i|^2  +  C sum over the rows m that tell label i of  u_m log(1 + exp(-+(w_i.x_m + b_i)))

In the eigenbasis of the features' covariance the Hessian of a label is nearly the diagonal ``1 + C p(1-p) e``, with p the
label's frequency; scaled by its root, L-BFGS needs about twenty rounds, each two matrix products over a block of labels.
Where that basis would cost more than it saves, the features themselves are scaled by their own share of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b
from scipy.sparse import csr_array, issparse

from slatewise.core.checks import Features
from slatewise.core.executor import Executor, one_blas_thread

Floats: TypeAlias = NDArray[np.float64]

LABELS_A_BLOCK = 64
_MOST_BASIS = 2500
"""More features than this are not turned into their eigenbasis, whose cost grows with their cube."""
_TOLERANCE, _MOST_ROUNDS = 1e-6, 300


@dataclass(frozen=True, eq=False)
class LinearLogOdds:
    """Log-odds that are linear in the features of a row, dense or CSR."""

    coef: Floats
    """(labels, features)"""
    intercept: Floats

    def log_odds(self, X: Features) -> Floats:
        """Return (rows, labels)."""
        return np.asarray(X @ self.coef.T, dtype=np.float64) + self.intercept


@dataclass(frozen=True, eq=False)
class LogisticRows:
    """Training rows, turned once for every strength: standardised where dense, scaled where sparse."""

    rows: Any
    """(n, r) features in their eigenbasis, or as they are."""
    basis: Floats | None
    """(d, r)"""
    mean: Floats
    spread: Floats
    energy: Floats
    """(r,) sum over rows of each squared feature."""
    scale: float
    """Total variance: a strength is divided by it, so that it means the same for any unit and number of features."""

    @classmethod
    def of(cls, X: Features) -> LogisticRows:
        """Turn rows."""
        if issparse(X):
            return _sparse_rows(csr_array(X))
        mean = X.mean(axis=0)
        centred = np.asarray(X, dtype=np.float64) - mean
        spread = np.sqrt(np.einsum("nd,nd->d", centred, centred) / len(centred))
        spread[spread <= 1e-12 * np.abs(X).max(axis=0, initial=0.0)] = 1.0
        rows = centred / spread
        basis = None
        if rows.shape[1] <= _MOST_BASIS:
            basis = np.linalg.eigh(rows.T @ rows)[1]
            rows = rows @ basis
        energy = np.einsum("nr,nr->r", rows, rows)
        return cls(rows, basis, mean, spread, energy, max(float(energy.sum()) / len(rows), 1e-300))

    def coefficients(self, weights: Floats, intercept: Floats) -> LinearLogOdds:
        """Return what scores rows as they were given; ``weights`` is (r, labels)."""
        coef = ((weights if self.basis is None else self.basis @ weights) / self.spread[:, None]).T
        return LinearLogOdds(np.ascontiguousarray(coef), intercept - coef @ self.mean)


def _sparse_rows(X: csr_array) -> LogisticRows:
    """Divide every column by its root mean square: a centre would fill the zeros."""
    n, d = X.shape
    squares = np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=d) / n
    spread = np.where(squares > 0, np.sqrt(squares), 1.0)
    rows = csr_array((X.data / spread[X.indices], X.indices, X.indptr), shape=X.shape)
    energy = np.where(squares > 0, float(n), 0.0)
    return LogisticRows(rows, None, np.zeros(d), spread, energy, max(float(energy.sum()) / n, 1e-300))


class Labels(NamedTuple):
    """What rows tell of labels."""

    sign: Floats
    """(n, labels): 1 yes, -1 no."""
    weight: Floats
    """(n, labels): how much it counts; 0 where it is not known."""

    def part(self, labels: slice) -> Labels:
        """Return some of the labels."""
        return Labels(self.sign[:, labels], self.weight[:, labels])

    def some(self, rows: NDArray[np.int64]) -> Labels:
        """Return some of the rows."""
        return Labels(self.sign[rows], self.weight[rows])

    def frequency(self) -> Floats:
        """Return how often each label is told to be there, half a row added to either side."""
        yes = np.where(self.sign > 0, self.weight, 0.0).sum(axis=0)
        return (yes + 0.5) / (self.weight.sum(axis=0) + 1.0)


class Weights(NamedTuple):
    """(r, labels) weights and (labels,) intercepts, in the features of LogisticRows."""

    weights: Floats
    intercept: Floats


class _Problem(NamedTuple):
    rows: LogisticRows
    labels: Labels
    C: float
    start: Weights | None


def fit_logistic(
    rows: LogisticRows, labels: Labels, strength: float, executor: Executor, start: Weights | None = None
) -> Weights:
    """Fit every label; ``strength`` is C times the total variance of the features."""
    n_labels = labels.sign.shape[1]
    blocks = [slice(first, min(first + LABELS_A_BLOCK, n_labels)) for first in range(0, n_labels, LABELS_A_BLOCK)]
    with one_blas_thread():
        problem = _Problem(rows, labels, strength / rows.scale, start)
        fits: Sequence[Weights] = list(executor.map_blocks(_fit_block, problem, blocks))
    return Weights(np.hstack([fit.weights for fit in fits]), np.concatenate([fit.intercept for fit in fits]))


def _fit_block(problem: _Problem, block: slice) -> Weights:
    rows, labels, C = problem.rows, problem.labels.part(block), problem.C
    p = labels.frequency()
    log_odds, curvature = np.log(p) - np.log1p(-p), p * (1.0 - p)
    told = labels.weight.sum(axis=0)
    both = np.where(labels.sign > 0, labels.weight, 0.0).sum(axis=0)
    varies = (both > 0) & (both < told)
    share = told / len(labels.sign)
    shrink = 1.0 / np.sqrt(1.0 + C * np.outer(rows.energy, curvature * share))
    shift = 1.0 / np.sqrt(C * np.maximum(told, 1.0) * curvature)
    shape = (len(rows.energy) + 1, len(p))

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        point = flat.reshape(shape)
        weights = point[:-1] * shrink
        margins = labels.sign * (rows.rows @ weights + point[-1] * shift)
        slope = -C * labels.weight * labels.sign * _sigmoid(-margins) * varies
        gradient = np.vstack([(rows.rows.T @ slope + weights) * shrink, slope.sum(axis=0) * shift])
        losses = (labels.weight * np.logaddexp(0.0, -margins)).sum(axis=0) @ varies
        return float(C * losses + 0.5 * np.vdot(weights, weights)), gradient.ravel()

    first = np.zeros(shape)
    first[-1] = log_odds / shift
    if problem.start is not None:
        first[:-1] = problem.start.weights[:, block] / shrink
        first[-1] = problem.start.intercept[block] / shift
    found = fmin_l_bfgs_b(
        value_and_gradient, first.ravel(), maxiter=_MOST_ROUNDS, factr=_TOLERANCE / np.finfo(float).eps
    )[0]
    point = np.asarray(found, dtype=np.float64).reshape(shape)
    # A label that is told to be everywhere, or nowhere, has no best intercept: it keeps its smoothed frequency.
    return Weights(point[:-1] * shrink * varies, np.where(varies, point[-1] * shift, log_odds))


def _sigmoid(z: Floats) -> Floats:
    return 0.5 + 0.5 * np.tanh(0.5 * z)
