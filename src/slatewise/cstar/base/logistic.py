"""One-vs-rest logistic regression of many labels at once.

    min over w_i, b_i of   1/2 |w_i|^2  +  C sum over rows m of u_mi log(1 + exp(-y_mi (w_i.x_m + b_i)))

u is 0 where the label of a row is unknown. In the eigenbasis of the features' covariance the Hessian of a label is
nearly the diagonal ``1 + C p(1-p) e``, with p the label's frequency; scaled by its root, L-BFGS needs about twenty
rounds, each two matrix products over a block of labels. Where that basis would cost more than it saves, the features
themselves are scaled by their own share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b
from scipy.sparse import csr_array, issparse

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.groups import blocks
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.cstar.rows import column_spread

ROUGH, FINE = 1e-5, 1e-6
"""Relative decrease of the objective that ends a search: of a fit to choose by, and of one to keep."""
_LABELS_PER_BLOCK = 64
_MOST_BASIS = 2500
"""More features than this are not turned into their eigenbasis, whose cost grows with their cube."""
_MOST_ROUNDS = 300
_ROUNDING = 1e-12
_LEAST_VARIANCE = 1e-300


@dataclass(frozen=True, eq=False)
class LinearLogOdds:
    """Log-odds that are linear in the features of a row, dense or CSR."""

    coef: NDArray[np.floating[Any]]
    """(labels, features); float32 of very many labels."""
    intercept: Floats

    def log_odds(self, X: Features) -> Floats:
        """Return (rows, labels)."""
        if not isinstance(X, np.ndarray):
            # Only the features that some row has: SciPy would copy all coefficients.
            used, indices = np.unique(X.indices, return_inverse=True)
            rows = csr_array((X.data, indices, X.indptr), shape=(X.shape[0], len(used)))
            return np.asarray(rows @ self.coef[:, used].T, dtype=np.float64) + self.intercept
        if self.coef.dtype == X.dtype:
            return X @ self.coef.T + self.intercept
        found = np.empty((len(X), len(self.coef)))
        for block in blocks_of_labels(len(self.coef)):  # NumPy would make float64 of all at once
            found[:, block] = X @ self.coef[block].T + self.intercept[block]
        return found

    def learned(self) -> dict[str, Any]:
        """Return the learned attributes that it consists of, by name."""
        return {"base_coef_": self.coef, "base_intercept_": self.intercept}

    def adjusted(self, slope: Floats, shift: Floats) -> LinearLogOdds:
        """Return ``slope * log-odds + shift``, one of each per label."""
        return LinearLogOdds(self.coef * slope[:, None], self.intercept * slope + shift)


class Labels(NamedTuple):
    """The labels of rows."""

    known: Bytes
    """(n, labels): 1 yes, 0 no, -1 unknown."""
    weight: Floats
    """(n,): how much a row counts."""

    @property
    def sign(self) -> Floats:
        """(n, labels): 1 yes, -1 no."""
        return np.where(self.known > 0, 1.0, -1.0)

    @property
    def counts(self) -> Floats:
        """(n, labels): how much a label counts; 0 for an unknown one."""
        return self.weight[:, None] * (self.known >= 0)

    def part(self, labels: slice | Ints) -> Labels:
        """Return some of the labels."""
        return Labels(np.ascontiguousarray(self.known[:, labels]), self.weight)

    def some(self, rows: Ints) -> Labels:
        """Return some of the rows."""
        return Labels(self.known[rows], self.weight[rows])

    def yes(self) -> Floats:
        """Return the weight of the rows to which each label applies."""
        return (self.weight[:, None] * (self.known > 0)).sum(axis=0)

    def no(self) -> Floats:
        """Return the weight of the rows to which each label does not apply."""
        return (self.weight[:, None] * (self.known == 0)).sum(axis=0)

    def log_odds(self) -> Floats:
        """Return the log-odds of each label's frequency, half a row added to either side.

        Examples
        --------
        >>> Labels(np.array([[1], [1], [-1]], dtype=np.int8), np.ones(3)).log_odds().round(3)
        array([1.609])
        """
        yes = self.yes()
        return np.log(yes + 0.5) - np.log(np.maximum(self.counts.sum(axis=0) - yes, 0.0) + 0.5)

    def varies(self) -> Bools:
        """Return which labels apply to some rows and not to others."""
        return (self.yes() > 0.0) & (self.no() > 0.0)


@dataclass(frozen=True, eq=False)
class LogisticRows:
    """Training rows, turned once for every strength: standardized where dense, scaled where sparse."""

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
        dense = np.asarray(X, dtype=np.float64)
        mean = dense.mean(axis=0)
        centred = dense - mean
        spread = column_spread(centred, np.abs(dense).max(axis=0, initial=0.0), np.ones(len(dense)))
        rows, basis = centred / spread, None
        if min(rows.shape) <= _MOST_BASIS:
            basis = _eigenbasis(rows)
            rows = rows @ basis
        energy = np.einsum("nr,nr->r", rows, rows)
        return cls(rows, basis, mean, spread, energy, max(float(energy.sum()) / len(rows), _LEAST_VARIANCE))

    def coefficients(self, weights: Weights) -> LinearLogOdds:
        """Return what scores rows as they were given."""
        turned = weights.features if self.basis is None else self.basis @ weights.features
        coef = np.ascontiguousarray((turned / self.spread[:, None]).T)
        return LinearLogOdds(coef, weights.intercept - coef @ self.mean)


def _eigenbasis(rows: Floats) -> Floats:
    """Return (d, r) directions in which the rows do not correlate; no more of them than rows are needed."""
    if rows.shape[1] <= rows.shape[0]:
        return np.linalg.eigh(rows.T @ rows)[1]
    energy, directions = np.linalg.eigh(rows @ rows.T)
    kept = energy > _ROUNDING * max(float(energy.max(initial=0.0)), _LEAST_VARIANCE)
    return rows.T @ (directions[:, kept] / np.sqrt(energy[kept]))


def _sparse_rows(X: csr_array) -> LogisticRows:
    """Divide every column by its root mean square: a centre would fill the zeros."""
    n, d = X.shape
    squares = np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=d) / n
    spread = np.where(squares > 0.0, np.sqrt(squares), 1.0)
    rows = csr_array((X.data / spread[X.indices], X.indices, X.indptr), shape=X.shape)
    energy = np.where(squares > 0.0, float(n), 0.0)
    return LogisticRows(rows, None, np.zeros(d), spread, energy, max(float(energy.sum()) / n, _LEAST_VARIANCE))


class Weights(NamedTuple):
    """What was learned, in the features of LogisticRows."""

    features: NDArray[np.floating[Any]]
    """(r, labels)"""
    intercept: Floats


class _Problem(NamedTuple):
    rows: LogisticRows
    labels: Labels
    C: float
    start: Weights | None
    tolerance: float


def fit_logistic(
    rows: LogisticRows,
    labels: Labels,
    strength: float,
    executor: Executor,
    start: Weights | None = None,
    tolerance: float = FINE,
) -> Weights:
    """Fit every label; ``strength`` is C times the total variance of the features.

    Examples
    --------
    >>> from slatewise.core.running.executor import ONE_THREAD
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows, labels = LogisticRows.of(X), Labels(np.array([[0], [1], [0], [1]], dtype=np.int8), np.ones(4))
    >>> rows.coefficients(fit_logistic(rows, labels, 1.0, ONE_THREAD)).log_odds(X).ravel().round(2)
    array([-0.61, -0.2 ,  0.2 ,  0.61])
    """
    problem = _Problem(rows, labels, strength / rows.scale, start, tolerance)
    with one_blas_thread():
        fits = list(executor.map_blocks(_fit_block, problem, blocks_of_labels(labels.known.shape[1])))
    return Weights(np.hstack([fit.features for fit in fits]), np.concatenate([fit.intercept for fit in fits]))


def blocks_of_labels(n_labels: int) -> list[slice]:
    """Cut labels into blocks, each of which is one search."""
    return blocks(n_labels, _LABELS_PER_BLOCK)


def scales(rows: LogisticRows, labels: Labels, C: float) -> tuple[Floats, Floats]:
    """Return one over the root of about what the Hessian has on its diagonal: (r, labels), and of the intercepts."""
    known, curvature = labels.counts.sum(axis=0), 0.25 / np.cosh(0.5 * labels.log_odds()) ** 2  # p (1 - p)
    shrink = 1.0 / np.sqrt(1.0 + C * np.outer(rows.energy, curvature * known / len(labels.known)))
    return shrink, 1.0 / np.sqrt(np.maximum(C * known * curvature, _LEAST_VARIANCE))


def _fit_block(problem: _Problem, block: slice) -> Weights:
    rows, labels, C = problem.rows, problem.labels.part(block), problem.C
    log_odds, varies = labels.log_odds(), labels.varies()
    shrink, shift = scales(rows, labels, C)
    first = np.vstack([np.zeros(shrink.shape), log_odds / shift])
    if problem.start is not None:
        first = np.vstack([problem.start.features[:, block] / shrink, problem.start.intercept[block] / shift])
    objective = _objective(rows.rows, labels.sign, C * labels.counts * varies, shrink, shift)
    steps = problem.tolerance / np.finfo(np.float64).eps
    found = np.asarray(fmin_l_bfgs_b(objective, first.ravel(), maxiter=_MOST_ROUNDS, factr=steps)[0])
    point = found.reshape(first.shape)
    # A label of all rows, or of none, has no best intercept: it keeps its smoothed frequency.
    return Weights(point[:-1] * shrink * varies, np.where(varies, point[-1] * shift, log_odds))


def _objective(
    rows: Any, sign: Floats, weight: Floats, shrink: Floats, shift: Floats
) -> Callable[[Floats], tuple[float, Floats]]:
    signed = weight * sign

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        point = flat.reshape(len(shrink) + 1, -1)
        features = point[:-1] * shrink
        margins = sign * (rows @ features + point[-1] * shift)
        small = np.exp(-np.abs(margins))  # one exponential for both: log(1 + exp(-m)) and its slope
        losses = np.log1p(small) - np.minimum(margins, 0.0)
        slope = -signed * (np.where(margins >= 0.0, small, 1.0) / (1.0 + small))
        gradient = np.vstack([(rows.T @ slope + features) * shrink, slope.sum(axis=0) * shift])
        return float((weight * losses).sum() + 0.5 * (features**2).sum()), gradient.ravel()

    return value_and_gradient
