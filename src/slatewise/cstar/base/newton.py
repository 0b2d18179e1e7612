"""Logistic regressions of very many labels: Newton's method in float32, some labels side by side.

The problem is that of :mod:`slatewise.cstar.base.logistic`, with a constant as one more feature. A step solves

    (ridge + C X' diag(u p (1 - p)) X) step = gradient

by conjugate gradients, scaled as there; each costs two products with the rows. Every label takes steps of its own, and
stops when a step is expected to gain next to nothing. Values are added up in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from slatewise.core.arrays import Floats
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.cstar.base.logistic import FINE, Labels, LogisticRows, Weights, blocks_of_labels, scales

Singles: TypeAlias = NDArray[np.floating[Any]]  # float32: the checker takes a product with a number for float64

_MOST_STEPS, _MOST_INNER, _MOST_HALVINGS = 50, 20, 20
_LEFT_OVER = 0.3
"""Share of a gradient, in the norm of its scale, that a step may leave."""
_ROUNDING = 1e-6
"""Of a value: a step that goes up by less does not."""


class _Problem(NamedTuple):
    given: LogisticRows
    rows: Any
    """(n, r + 1) float32, dense or CSR, the last feature is 1."""
    labels: Labels
    C: float
    start: Weights | None
    tolerance: float


class _Known(NamedTuple):
    """What is given of some labels, which are the last axis."""

    sign: Singles
    weight: Singles
    """(n, labels) C u."""
    metric: Singles
    """(r + 1, labels) about the inverse of the Hessian's diagonal."""


class _Point(NamedTuple):
    """Where they are."""

    w: Singles
    """(r + 1, labels)"""
    scores: Singles
    """(n, labels)"""
    value: Floats
    """(labels,)"""


def fit_many(
    rows: LogisticRows,
    labels: Labels,
    strength: float,
    executor: Executor,
    start: Weights | None = None,
    tolerance: float = FINE,
) -> Weights:
    """Fit every label as :func:`slatewise.cstar.base.logistic.fit_logistic` does, to about six digits.

    Examples
    --------
    >>> from slatewise.core.running.executor import ONE_THREAD
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows, labels = LogisticRows.of(X), Labels(np.array([[0], [1], [0], [1]], dtype=np.int8), np.ones(4))
    >>> rows.coefficients(fit_many(rows, labels, 1.0, ONE_THREAD)).log_odds(X).ravel().round(2)
    array([-0.61, -0.2 ,  0.2 ,  0.61])
    """
    problem = _Problem(rows, _with_one(rows.rows), labels, strength / rows.scale, start, tolerance)
    with one_blas_thread():
        fits = list(executor.map_blocks(_fit_block, problem, blocks_of_labels(labels.known.shape[1])))
    w = np.hstack(fits)
    return Weights(w[:-1], w[-1].astype(np.float64))


def _with_one(rows: Any) -> Any:
    one = np.ones((rows.shape[0], 1), dtype=np.float32)
    if isinstance(rows, np.ndarray):
        return np.hstack([cast("Singles", rows).astype(np.float32), one])
    joined: Any = hstack([rows.astype(np.float32), cast("Any", csr_array(one))])
    return csr_array(joined)


def _fit_block(problem: _Problem, block: slice) -> Singles:
    labels, ridge = problem.labels.part(block), np.ones((problem.rows.shape[1], 1), dtype=np.float32)
    ridge[-1] = 0.0
    shrink, shift = scales(problem.given, labels, problem.C)
    # A label of all rows, or of none, has no best intercept: it keeps its smoothed frequency.
    w, left = np.vstack([np.zeros(shrink.shape), labels.log_odds()]).astype(np.float32), np.flatnonzero(labels.varies())
    if problem.start is not None:
        w[:-1], w[-1] = problem.start.features[:, block], problem.start.intercept[block]
    given = labels.sign, problem.C * labels.counts, np.vstack([shrink, shift]) ** 2
    known = _Known(*(part[:, left].astype(np.float32, order="C") for part in given))
    first = np.ascontiguousarray(w[:, left])
    at = _point(known, ridge, first, problem.rows @ first)
    for _ in range(_MOST_STEPS):
        if len(left) == 0:
            break
        at, expected = _moved(problem.rows, known, ridge, at)
        w[:, left] = at.w
        going = 0.5 * expected > problem.tolerance * at.value
        if not going.all():
            left, known = left[going], _Known(*(np.ascontiguousarray(part[:, going]) for part in known))
            at = _Point(at.w[:, going].copy(order="C"), at.scores[:, going].copy(order="C"), at.value[going])
    return w


def _point(known: _Known, ridge: Singles, w: Singles, scores: Singles) -> _Point:
    margins = known.sign * scores
    losses = known.weight * (np.log1p(np.exp(-np.abs(margins))) - np.minimum(margins, 0.0))
    return _Point(w, scores, losses.sum(axis=0, dtype=np.float64) + 0.5 * (ridge * w**2).sum(axis=0, dtype=np.float64))


def _moved(rows: Any, known: _Known, ridge: Singles, at: _Point) -> tuple[_Point, Floats]:
    """Take one step per label, shorter where it would go up; also return twice its expected gain."""
    margins = known.sign * at.scores
    small = np.exp(-np.abs(margins))
    wrong = np.where(margins >= 0.0, small, np.float32(1.0)) / (1.0 + small)
    gradient = ridge * at.w + rows.T @ (-known.weight * known.sign * wrong)
    step, scores = _solved(rows, known, ridge, known.weight * wrong * (1.0 - wrong), gradient)
    expected = (gradient * step).sum(axis=0, dtype=np.float64)
    share, found = np.ones(len(expected), dtype=np.float32), at
    for _ in range(_MOST_HALVINGS):
        found = _point(known, ridge, at.w - share * step, at.scores - share * scores)
        up = found.value > at.value - 1e-4 * share * expected + _ROUNDING * at.value
        if not up.any():
            break
        share[up] *= 0.5
    return found, expected


def _solved(rows: Any, known: _Known, ridge: Singles, bend: Singles, gradient: Singles) -> tuple[Singles, Singles]:
    """Return the steps (r + 1, labels) and what they add to the scores, (n, labels)."""
    step, scores = np.zeros_like(gradient), np.zeros_like(bend)
    left_over, towards = gradient, known.metric * gradient
    size = first = (left_over * towards).sum(axis=0)
    going = size > 0.0
    for _ in range(_MOST_INNER):
        added = rows @ towards
        curved = ridge * towards + rows.T @ (bend * added)
        length = np.where(going, size / np.where(going, (towards * curved).sum(axis=0), 1.0), 0.0).astype(np.float32)
        step, scores, left_over = step + length * towards, scores + length * added, left_over - length * curved
        scaled = known.metric * left_over
        size, before = (left_over * scaled).sum(axis=0), size
        going &= size > _LEFT_OVER**2 * first
        if not going.any():
            break
        towards = scaled + np.where(going, size / np.where(going, before, 1.0), 0.0).astype(np.float32) * towards
    return step, scores
