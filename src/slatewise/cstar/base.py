"""Base scores: what every label's log-odds are by themselves, learned here and cross-fitted.

A training row gets the log-odds of models that did not see it, as a new row will: what learns on top would else trust
scores that have seen the answers. A new row gets those of a model of all training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import Features
from slatewise.core.executor import Executor
from slatewise.core.row_kernels import Rbf
from slatewise.cstar.logistic import Labels, LinearLogOdds, LogisticRows, Weights, fit_logistic

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

FOLDS = 5
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of the logistic base: C times the total variance of the features."""
_PATIENCE = 2
_SVC_C = 2.0
_LEAST_CHANCE = 1e-7
"""Probabilities of foreign estimators are kept away from 0 and 1 by this, whose log-odds are infinite."""


class FittedBase(Protocol):
    """What scores new rows."""

    def log_odds(self, X: Features) -> Floats:
        """Return (rows, labels)."""
        ...


class CrossFitted(NamedTuple):
    """Log-odds of training rows by models that did not see them, and the model of all rows."""

    out_of_fold: Floats
    fitted: FittedBase
    n_folds: int


class Base(Protocol):
    """A way to learn base scores."""

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Score training rows, and learn to score others."""
        ...


def make_folds(n_rows: int, seed: int) -> list[Ints]:
    """Cut rows at random into at most five parts, which warns where there are too few rows for five.

    Examples
    --------
    >>> [part.tolist() for part in make_folds(5, seed=0)]
    [[2], [0], [1], [3], [4]]
    """
    count = min(FOLDS, n_rows)
    if count < FOLDS:
        warnings.warn(f"base: expected at least {FOLDS} rows for {FOLDS} inner folds, found {n_rows}", stacklevel=2)
    order = np.random.default_rng(seed).permutation(n_rows)
    return [np.sort(order[part::count]) for part in range(count)]


def _without(n_rows: int, part: Ints) -> Ints:
    return np.setdiff1d(np.arange(n_rows), part)


@dataclass(frozen=True)
class LogisticBase:
    """One logistic regression per label; one strength for all, by the likelihood of the first inner fold."""

    strengths: tuple[float, ...] = STRENGTHS

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Choose the strength on a path of growing ones, each started where the one before ended."""
        n_rows = int(X.shape[0])
        parts = make_folds(n_rows, seed)
        out = np.zeros(labels.sign.shape)
        if len(parts) < 2:
            p = labels.frequency()
            fitted = LinearLogOdds(np.zeros((len(p), int(X.shape[1]))), np.log(p) - np.log1p(-p))
            return CrossFitted(out + fitted.intercept, fitted, len(parts))
        strength, out[parts[0]] = self._choose(X, labels, parts[0], executor)
        for part in parts[1:]:
            kept = _without(n_rows, part)
            rows = LogisticRows.of(X[kept])
            fit = fit_logistic(rows, labels.some(kept), strength, executor)
            out[part] = rows.coefficients(*fit).log_odds(X[part])
        rows = LogisticRows.of(X)
        return CrossFitted(out, rows.coefficients(*fit_logistic(rows, labels, strength, executor)), len(parts))

    def _choose(self, X: Features, labels: Labels, part: Ints, executor: Executor) -> tuple[float, Floats]:
        """Return the strength under which held-out labels are most likely, and their log-odds by it."""
        kept = _without(int(X.shape[0]), part)
        rows, held_out = LogisticRows.of(X[kept]), labels.some(part)
        start: Weights | None = None
        best, losses = (self.strengths[0], np.zeros(held_out.sign.shape)), list[float]()
        for strength in self.strengths:
            start = fit_logistic(rows, labels.some(kept), strength, executor, start)
            scores = rows.coefficients(*start).log_odds(X[part])
            losses.append(float((held_out.weight * np.logaddexp(0.0, -held_out.sign * scores)).sum()))
            if losses[-1] == min(losses):
                best = strength, scores
            if min(losses) < min(losses[-_PATIENCE:]):
                break
        return best


@dataclass(frozen=True, eq=False)
class KernelLogOdds:
    """Log-odds by a kernel with some training rows."""

    gamma: float
    basis: Floats
    coef: Floats
    """(labels, rows of the basis)"""
    intercept: Floats

    def log_odds(self, X: Features) -> Floats:
        """Compare with the basis."""
        return Rbf(self.gamma).compare(cast("Floats", X), self.basis) @ self.coef.T + self.intercept


@dataclass(frozen=True)
class SvcBase:
    """Support vector machines with an rbf kernel, one per label; Platt's sigmoid makes log-odds of their margins."""

    C: float = _SVC_C

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """One machine per label and fold."""
        rows = np.asarray(X, dtype=np.float64)
        gamma = Rbf.of(rows, None).gamma
        n_rows = len(rows)
        parts = make_folds(n_rows, seed)
        out = np.zeros(labels.sign.shape)
        for part in parts if len(parts) > 1 else []:
            kept = _without(n_rows, part)
            out[part] = self._fit(rows[kept], labels.some(kept), gamma).log_odds(rows[part])
        margins = self._fit(rows, labels, gamma)
        slope, shift = platt(out, labels)
        fitted = KernelLogOdds(gamma, margins.basis, margins.coef * slope[:, None], margins.intercept * slope + shift)
        return CrossFitted(out * slope + shift, fitted, len(parts))

    def _fit(self, X: Floats, labels: Labels, gamma: float) -> KernelLogOdds:
        machines: Any = import_module("sklearn.svm")
        coef, intercept = np.zeros((labels.sign.shape[1], len(X))), np.zeros(labels.sign.shape[1])
        for label, (sign, weight) in enumerate(zip(labels.sign.T, labels.weight.T, strict=True)):
            told = np.flatnonzero(weight > 0)
            if len(np.unique(sign[told])) == 2:
                machine = machines.SVC(C=self.C, gamma=gamma).fit(X[told], sign[told], sample_weight=weight[told])
                coef[label, told[machine.support_]] = machine.dual_coef_[0]
                intercept[label] = machine.intercept_[0]
        used = np.flatnonzero((coef != 0).any(axis=0))
        return KernelLogOdds(gamma, X[used], coef[:, used], intercept)


@dataclass(frozen=True, eq=False)
class ForeignLogOdds:
    """Log-odds of a classifier of somebody else's, or of one per label."""

    classifiers: list[Any]
    """One of all labels, or one per label; None: the label has its frequency."""
    together: bool
    slope: Floats
    shift: Floats

    def log_odds(self, X: Features) -> Floats:
        """Ask it for probabilities, or for margins where it has none."""
        return _raw(self.classifiers, self.together, X, len(self.slope)) * self.slope + self.shift


@dataclass(frozen=True, eq=False)
class ForeignBase:
    """Any scikit-learn classifier: of several labels at once where it can do that, else one clone per label."""

    estimator: Any

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Fit clones; Platt's sigmoid makes log-odds of what they say."""
        n_rows, n_labels = int(X.shape[0]), labels.sign.shape[1]
        together = bool(self.estimator.__sklearn_tags__().classifier_tags.multi_label) and bool(
            (labels.weight == 1.0).all()
        )
        parts = make_folds(n_rows, seed)
        out = np.zeros(labels.sign.shape)
        for part in parts if len(parts) > 1 else []:
            kept = _without(n_rows, part)
            out[part] = _raw(self._fit(X[kept], labels.some(kept), together), together, X[part], n_labels)
        slope, shift = platt(out, labels)
        fitted = ForeignLogOdds(self._fit(X, labels, together), together, slope, shift)
        return CrossFitted(out * slope + shift, fitted, len(parts))

    def _fit(self, X: Features, labels: Labels, together: bool) -> list[Any]:
        clone: Callable[[Any], Any] = import_module("sklearn.base").clone
        yes = (labels.sign > 0).astype(np.int64)
        if together:
            return [clone(self.estimator).fit(X, yes)]
        found: list[Any] = []
        for label in range(yes.shape[1]):
            told = np.flatnonzero(labels.weight[:, label] > 0)
            classes = np.unique(yes[told, label])
            found.append(clone(self.estimator).fit(X[told], yes[told, label]) if len(classes) == 2 else None)
        return found


def _raw(classifiers: list[Any], together: bool, X: Features, n_labels: int) -> Floats:
    if together:
        return _all_at_once(classifiers[0], X)
    columns = [np.zeros(int(X.shape[0])) if one is None else _of_one(one, X) for one in classifiers]
    return np.column_stack(columns) if columns else np.zeros((int(X.shape[0]), n_labels))


def _of_one(classifier: Any, X: Features) -> Floats:
    if hasattr(classifier, "predict_proba"):
        return _logit(np.asarray(classifier.predict_proba(X))[:, 1])
    return np.asarray(classifier.decision_function(X), dtype=np.float64)


def _all_at_once(classifier: Any, X: Features) -> Floats:
    if not hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.decision_function(X), dtype=np.float64)
    chances = classifier.predict_proba(X)
    if isinstance(chances, list):  # one (rows, classes) per label; a label that was never there has one class
        columns = [
            chance[:, 1] if chance.shape[1] == 2 else np.full(len(chance), float(classes[0]))
            for chance, classes in zip(cast("list[Any]", chances), classifier.classes_, strict=True)
        ]
        return _logit(np.column_stack(columns))
    return _logit(np.asarray(chances))


def _logit(p: Floats) -> Floats:
    p = np.clip(p.astype(np.float64), _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    return np.log(p) - np.log1p(-p)


def platt(margins: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Return slope and shift per label that make margins (rows, labels) the likeliest log-odds (Platt 1999).

    Smoothed as Platt did: half a made-up yes and no at either end. A label whose margins say nothing keeps its frequency.
    """
    count = margins.shape[1]
    slope, shift = np.ones(count), np.zeros(count)
    unit = np.maximum(np.sqrt((margins**2).mean(axis=0)), 1e-12) if len(margins) else np.ones(count)
    rows = margins / unit
    p = labels.frequency()
    shift[:] = np.log(p) - np.log1p(-p)
    slope[:] = 0.0
    target = np.where(labels.sign > 0, 1.0, 0.0)
    for _ in range(50):  # Newton, all labels at once, each damped by a little ridge
        chance = 0.5 + 0.5 * np.tanh(0.5 * (rows * slope + shift))
        residual, curvature = labels.weight * (chance - target), labels.weight * chance * (1.0 - chance)
        g0, g1 = (residual * rows).sum(axis=0) + 1e-3 * slope, residual.sum(axis=0)
        h00, h01, h11 = (curvature * rows**2).sum(axis=0) + 1e-3, (curvature * rows).sum(axis=0), curvature.sum(axis=0) + 1e-3
        determinant = h00 * h11 - h01**2
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        longest = np.maximum(1.0, np.maximum(np.abs(step0), np.abs(step1)))
        slope -= step0 / longest
        shift -= step1 / longest
        if max(np.abs(step0).max(initial=0.0), np.abs(step1).max(initial=0.0)) < 1e-8:
            break
    varies = (np.where(labels.sign > 0, labels.weight, 0).sum(axis=0) > 0) & (
        np.where(labels.sign < 0, labels.weight, 0).sum(axis=0) > 0
    )
    return np.where(varies, np.maximum(slope, 0.0) / unit, 0.0), np.where(varies, shift, np.log(p) - np.log1p(-p))
