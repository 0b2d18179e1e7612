"""Base scores: one-vs-rest log-odds, cross-fitted, so that training rows are scored as new rows will be.

Training rows get the scores of models that did not see them (five inner folds); test rows those of a model of all
training rows. Nothing here looks at test labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise import metrics
from slatewise.core.arrays import Floats
from slatewise_papers.framework.arrays import Scorer, folds, logit, out_of_fold, sigmoid, smoothed_log_odds

_linear: Any = import_module("sklearn.linear_model")
_svm: Any = import_module("sklearn.svm")
_multioutput: Any = import_module("sklearn.multioutput")


class BaseScores(NamedTuple):
    """Log-odds of every label: out-of-fold for training rows, refitted for test rows."""

    train: Floats
    test: Floats


class BaseScorer(Protocol):
    """A way to make base scores."""

    def cross_fit(self, X: Floats, Y: Floats, X_test: Floats) -> BaseScores:
        """Score training and test rows."""
        ...


@dataclass(frozen=True)
class KernelSvm:
    """Support vector machines with an rbf kernel; Platt's sigmoid on the out-of-fold values gives log-odds."""

    C: float = 2.0

    def cross_fit(self, X: Floats, Y: Floats, X_test: Floats) -> BaseScores:
        """One label at a time."""
        inner, outer = out_of_fold(self._fit, X, Y), self._fit(X, Y)(X_test)
        for label in range(Y.shape[1]):
            if 0 < Y[:, label].sum() < len(Y):
                platt = _linear.LogisticRegression(C=1e6).fit(inner[:, [label]], Y[:, label])
                inner[:, label] = platt.decision_function(inner[:, [label]])
                outer[:, label] = platt.decision_function(outer[:, [label]])
        return BaseScores(inner, outer)

    def _fit(self, X: Floats, Y: Floats) -> Scorer:
        constant = smoothed_log_odds(Y)
        machines = [_svm.SVC(C=self.C).fit(X, y) if 0 < y.sum() < len(y) else None for y in np.ascontiguousarray(Y.T)]

        def score(rows: Floats) -> Floats:
            columns = [
                np.full(len(rows), odds) if machine is None else machine.decision_function(rows)
                for machine, odds in zip(machines, constant, strict=True)
            ]
            return np.column_stack(columns)

        return score


@dataclass(frozen=True)
class Logistic:
    """Logistic regression, its strength chosen by the break-even precision on the first inner fold."""

    strengths: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    """C times the features' total variance."""
    standardize: bool = False

    def cross_fit(self, X: Floats, Y: Floats, X_test: Floats) -> BaseScores:
        """All labels at once."""
        mean, spread = X.mean(axis=0), X.std(axis=0) if self.standardize else np.ones(X.shape[1])
        spread[spread == 0.0] = 1.0
        rows = (X - mean) / spread
        scale = max(float(rows.var(axis=0).sum()), 1e-300)
        kept, held_out = next(folds(len(rows)))
        measure, strengths = metrics.BreakEven(), [strength / scale for strength in self.strengths]
        tried = logistic_path(Spectrum.of(rows[kept]), Y[kept], strengths)
        quality = [measure(Y[held_out], score(rows[held_out])) for score in tried]
        C = strengths[int(np.argmax(quality))]
        fit = partial(fit_logistic, C=C)
        return BaseScores(out_of_fold(fit, rows, Y), fit(rows, Y)((X_test - mean) / spread))


class Spectrum(NamedTuple):
    """Rows in the eigenbasis of their covariance, where logistic regressions are nearly separable."""

    mean: Floats
    basis: Floats
    eigenvalues: Floats
    rows: Floats

    @classmethod
    def of(cls, X: Floats) -> Spectrum:
        """Rotate, which is most of the work where there are many features and few labels."""
        mean = X.mean(axis=0)
        eigenvalues, basis = np.linalg.eigh((X - mean).T @ (X - mean))
        return cls(mean, basis, np.maximum(eigenvalues, 0.0), (X - mean) @ basis)


def fit_logistic(X: Floats, Y: Floats, C: float) -> Scorer:
    """Fit one logistic regression a label, all at once: ``min 1/2 |w|^2 + C sum log(1 + exp(-+(w.x + b)))``.

    In the eigenbasis of the features' covariance the Hessian of a label is nearly the diagonal ``1 + C p(1-p) e``, with
    p the label's frequency; scaled by its root, L-BFGS needs about twenty rounds, each two matrix products.

    Examples
    --------
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> score = fit_logistic(X, np.array([[0.0], [0.0], [1.0], [1.0]]), C=1.0)
    >>> bool(score(np.array([[1.5]]))[0, 0] > 0)
    True
    """
    return next(logistic_path(Spectrum.of(X), Y, (C,)))


def logistic_path(spectrum: Spectrum, Y: Floats, strengths: Iterable[float]) -> Iterator[Scorer]:
    """Fit the same with one C after the other, each started where the one before ended."""
    sign, log_odds = 2.0 * Y - 1.0, smoothed_log_odds(Y)
    curvature = sigmoid(log_odds) * sigmoid(-log_odds)
    shape = (len(spectrum.mean) + 1, Y.shape[1])
    found = np.zeros(shape)  # weights in the eigenbasis, and intercepts of centered rows
    found[-1] = log_odds
    for C in strengths:
        unit = np.empty(shape)
        unit[:-1] = 1.0 / np.sqrt(1.0 + C * np.outer(spectrum.eigenvalues, curvature))
        unit[-1] = 1.0 / np.sqrt(C * len(Y) * curvature)
        found = _fit_scaled(spectrum.rows, sign, C, unit, found)
        yield _scorer(spectrum.mean, spectrum.basis @ found[:-1], found[-1])


def _fit_scaled(rows: Floats, sign: Floats, C: float, unit: Floats, start: Floats) -> Floats:
    """Return weights and intercepts; the search is over multiples of ``unit``."""

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        point = flat.reshape(unit.shape) * unit
        weights = point[:-1]
        margins = sign * (rows @ weights + point[-1])
        slope: Floats = -C * sign * sigmoid(-margins)
        gradient = np.vstack([rows.T @ slope + weights, slope.sum(axis=0)]) * unit
        value = C * np.logaddexp(0.0, -margins).sum() + 0.5 * np.vdot(weights, weights)
        return float(value), gradient.ravel()

    first = (start / unit).ravel()
    found = fmin_l_bfgs_b(value_and_gradient, first, maxiter=200, factr=1e-6 / np.finfo(float).eps)[0]
    return np.asarray(found, dtype=np.float64).reshape(unit.shape) * unit


def _scorer(mean: Floats, weights: Floats, intercept: Floats) -> Scorer:
    shifted = intercept - mean @ weights
    return lambda new: new @ weights + shifted


def chain_log_odds(base: BaseScores, Y: Floats, n_orders: int) -> Floats:
    """Log-odds of the test rows by scikit-learn's classifier chains on the base scores, averaged over random orders.

    The strength of the chains' logistic regressions is chosen with one chain on the first inner fold.
    """
    varied = np.flatnonzero((Y.sum(axis=0) > 1) & (Y.sum(axis=0) < len(Y) - 1))
    out = np.broadcast_to(smoothed_log_odds(Y), base.test.shape).copy()
    kept, held_out = next(folds(len(Y)))
    seen = varied[(np.ptp(Y[kept][:, varied], axis=0) > 0)]
    measure = metrics.BreakEven()

    def quality(C: float) -> float:
        chain = _chain(C, 0).fit(base.train[kept], Y[kept][:, seen])
        return measure(Y[held_out][:, seen], chain.predict_proba(base.train[held_out]))

    C = max((1e-3, 1e-2, 1e-1), key=quality)
    chains = [_chain(C, order).fit(base.train, Y[:, varied]) for order in range(n_orders)]
    mean = np.mean([chain.predict_proba(base.test) for chain in chains], axis=0)
    out[:, varied] = logit(np.clip(mean, 1e-9, 1.0 - 1e-9))
    return out


def _chain(C: float, seed: int) -> Any:
    base = _linear.LogisticRegression(C=C, solver="newton-cholesky", max_iter=100)
    return _multioutput.ClassifierChain(base, order="random", random_state=seed)
