"""Learning base scores: the log-odds of every label by itself.

Training rows are scored out of fold, so that the second stage does not overfit; a new row is scored by a model of all
training rows. Both are calibrated on the out-of-fold scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features
from slatewise.core.groups import blocks
from slatewise.core.numerics.row_kernels import Rbf
from slatewise.core.numerics.strengths import fell_behind, iterate_path
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import track
from slatewise.cstar.base.calibration import calibrate_log_odds, calibrate_margins
from slatewise.cstar.base.logistic import (
    FINE,
    ROUGH,
    Labels,
    LinearLogOdds,
    LogisticRows,
    Weights,
    blocks_of_labels,
    fit_logistic,
)
from slatewise.cstar.base.newton import fit_many

FOLDS = 5
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of the logistic base: C times the total variance of the features."""
MOST_LOG_ODDS = 745.0
"""The log-odds of the smallest number above 0; base scores are clipped to it."""
MANY = 1000
"""More labels than this are learned this many at a time."""
_MOST_UNIT, _ROUNDING = 1e6, 1e-12


class FittedBase(Protocol):
    """A fitted base, which scores new rows."""

    def learned(self) -> dict[str, Any]:
        """Return the learned attributes that it consists of, by name."""
        ...

    def log_odds(self, X: Features) -> Floats:
        """Return (rows, labels)."""
        ...


class CrossFitted(NamedTuple):
    """Log-odds of training rows by models that did not see them, and the model of all rows."""

    out_of_fold: Floats
    fitted: FittedBase


class Base(Protocol):
    """A way to learn base scores."""

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Score training rows, and learn to score others."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """What a classifier of the user's must have: scikit-learn's conventions."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, so that it can be cloned."""
        ...


def make_folds(n_rows: int, seed: int) -> list[Ints]:
    """Cut rows at random into five parts, or into fewer, with a warning, if there are not as many rows.

    Examples
    --------
    >>> [part.tolist() for part in make_folds(6, seed=0)]
    [[1, 3], [2], [5], [4], [0]]
    """
    count = min(FOLDS, n_rows)
    if count < FOLDS:
        found = f"{n_rows} different ones: {'as many folds' if n_rows > 1 else 'nothing is held out'}"
        warnings.warn(f"base: expected at least {FOLDS} rows for {FOLDS} folds, found {found}", stacklevel=2)
    order = np.random.default_rng(seed).permutation(n_rows)
    return [np.sort(order[part::count]) for part in range(count)]


def _without(n_rows: int, part: Ints) -> Ints:
    return np.setdiff1d(np.arange(n_rows), part)


def _out_of_fold(shape: tuple[int, ...], seed: int, score: Callable[[Ints, Ints], Floats]) -> Floats:
    """Return scores (rows, labels), of each fold by ``score(other rows, rows of the fold)``; 0 of a single fold."""
    out, parts = np.zeros(shape), make_folds(shape[0], seed)
    for part in track(parts if len(parts) > 1 else [], "folds"):
        out[part] = score(_without(shape[0], part), part)
    return out


@dataclass(frozen=True)
class LogisticBase:
    """One logistic regression per label; one strength for all, by the likelihood of the first fold.

    More than a thousand labels are learned by a thousand at a time, in float32, and their strength is chosen by some.
    """

    strengths: tuple[float, ...] = STRENGTHS

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Choose the strength on a path of growing ones, each started where the one before ended."""
        parts, n_labels = make_folds(int(X.shape[0]), seed), labels.known.shape[1]
        with one_blas_thread():
            if len(parts) < 2:
                alone = LinearLogOdds(np.zeros((n_labels, int(X.shape[1]))), labels.log_odds())
                return CrossFitted(alone.log_odds(X), alone)
            out, fit = np.empty(labels.known.shape), fit_logistic if n_labels <= MANY else fit_many
            strength, first = self._choose(X, labels.part(_of_every_frequency(labels)), parts[0], fit, executor)
            if n_labels <= MANY:
                out[parts[0]] = first
                parts = parts[1:]
            for part in track(parts, "folds"):
                kept = _without(len(out), part)
                rows, known = LogisticRows.of(X[kept]), labels.some(kept)
                for block in blocks(n_labels, MANY):
                    found = rows.coefficients(fit(rows, known.part(block), strength, executor, None, ROUGH))
                    out[part, block] = found.log_odds(X[part])
            np.clip(out, -MOST_LOG_ODDS, MOST_LOG_ODDS, out=out)
            slope, shift = _calibrated(out, labels, executor)
            rows = LogisticRows.of(X)
            coef, intercept = np.empty((n_labels, int(X.shape[1])), dtype=_kind(rows, n_labels)), np.empty(n_labels)
            for block in blocks(n_labels, MANY):
                found = rows.coefficients(fit(rows, labels.part(block), strength, executor, None, FINE))
                calibrated = found.adjusted(slope[block], shift[block])
                coef[block], intercept[block] = calibrated.coef, calibrated.intercept
            return CrossFitted(out, LinearLogOdds(coef, intercept))

    def _choose(
        self, X: Features, labels: Labels, part: Ints, fit: Callable[..., Weights], executor: Executor
    ) -> tuple[float, Floats]:
        """Return the strength under which held-out labels are most likely, and their log-odds by it."""
        kept = _without(int(X.shape[0]), part)
        rows, known, held_out = LogisticRows.of(X[kept]), labels.some(kept), labels.some(part)
        sign, counts = held_out.sign, held_out.counts

        def fit_one(fold: int, strength: float, before: _Validated | None) -> _Validated:
            del fold
            found = fit(rows, known, strength, executor, None if before is None else before.weights, ROUGH)
            return _Validated(found, rows.coefficients(found).log_odds(X[part]))

        def loss(fold: int, found: _Validated) -> float:
            del fold
            return float((counts * np.logaddexp(0.0, -sign * found.log_odds)).sum())

        path = iterate_path(self.strengths, 1, fit_one, loss, fell_behind)
        best = min(path, key=lambda step: (step.loss, -step.strength))  # of equals the largest strength
        return best.strength, best.found[0].log_odds


class _Validated(NamedTuple):
    """A fit, and the log-odds of held-out rows by it."""

    weights: Weights
    log_odds: Floats


def _kind(rows: LogisticRows, n_labels: int) -> type[np.floating[Any]]:
    """Return float32 for the coefficients of very many labels, if features have units that it can hold."""
    held = rows.spread.min(initial=1.0) > 1.0 / _MOST_UNIT and rows.spread.max(initial=1.0) < _MOST_UNIT
    return np.float32 if n_labels > MANY and held else np.float64


def _of_every_frequency(labels: Labels) -> Ints:
    """Return the labels to choose by: all, or of too many some, evenly from the rarest to the most frequent."""
    n_labels = labels.known.shape[1]
    if n_labels <= MANY:
        return np.arange(n_labels, dtype=np.int64)
    by_frequency = np.argsort(labels.yes(), kind="stable")
    return np.sort(by_frequency[(n_labels - 1) * np.arange(MANY) // (MANY - 1)])


def _calibrated(out: Floats, labels: Labels, executor: Executor) -> tuple[Floats, Floats]:
    """Calibrate log-odds of rows not trained on, in place; return how."""
    n_labels = out.shape[1]
    slope, shift, rounding = np.empty(n_labels), np.empty(n_labels), 0.0 if n_labels <= MANY else _ROUNDING

    def fill(block: slice) -> None:
        slope[block], shift[block] = calibrate_log_odds(out[:, block], labels.part(block), rounding)
        out[:, block] = out[:, block] * slope[block] + shift[block]

    executor.fill_blocks(fill, [slice(0, n_labels)] if n_labels <= MANY else blocks_of_labels(n_labels))
    return slope, shift


@dataclass(frozen=True, eq=False)
class KernelLogOdds:
    """Log-odds by an rbf kernel with some training rows."""

    gamma: float
    basis: Floats
    coef: NDArray[np.floating[Any]]
    """(labels, rows of the basis)"""
    intercept: Floats

    def log_odds(self, X: Features) -> Floats:
        """Compare with the basis."""
        return Rbf(self.gamma).compare(cast("Floats", X), self.basis) @ self.coef.T + self.intercept

    def learned(self) -> dict[str, Any]:
        """Coefficients of the kernel, and the rows of its basis."""
        return {
            "base_coef_": self.coef,
            "base_intercept_": self.intercept,
            "basis_": self.basis,
            "gamma_": self.gamma,
        }

    def adjusted(self, slope: Floats, shift: Floats) -> KernelLogOdds:
        """Return ``slope * log-odds + shift``, one of each per label."""
        return KernelLogOdds(self.gamma, self.basis, self.coef * slope[:, None], self.intercept * slope + shift)


@dataclass(frozen=True)
class SvcBase:
    """Support vector machines with an rbf kernel, one per label."""

    C: float = 2.0

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """One machine per label and fold."""
        rows = np.asarray(X, dtype=np.float64)
        gamma = Rbf.of(rows, None).gamma

        def score(kept: Ints, part: Ints) -> Floats:
            return self._fit(rows[kept], labels.some(kept), gamma).log_odds(rows[part])

        with one_blas_thread():
            out = _out_of_fold(labels.known.shape, seed, score)
            slope, shift = calibrate_margins(out, labels)
            return CrossFitted(out * slope + shift, self._fit(rows, labels, gamma).adjusted(slope, shift))

    def _fit(self, X: Floats, labels: Labels, gamma: float) -> KernelLogOdds:
        machines: Any = import_module("sklearn.svm")
        coef, intercept = np.zeros((labels.known.shape[1], len(X))), np.zeros(labels.known.shape[1])
        for label in np.flatnonzero(labels.varies()):
            known = np.flatnonzero(labels.known[:, label] >= 0)
            sign, weight = np.where(labels.known[known, label] > 0, 1.0, -1.0), labels.weight[known]
            machine = machines.SVC(C=self.C, gamma=gamma).fit(X[known], sign, sample_weight=weight)
            coef[label, known[machine.support_]] = machine.dual_coef_[0]
            intercept[label] = machine.intercept_[0]
        used = np.flatnonzero((coef != 0.0).any(axis=0))
        return KernelLogOdds(gamma, X[used], np.ascontiguousarray(coef[:, used]), intercept)


@dataclass(frozen=True, eq=False)
class ClassifierLogOdds:
    """Log-odds of a classifier of the user's."""

    margins: Callable[[Features], Floats]
    slope: Floats
    shift: Floats

    def log_odds(self, X: Features) -> Floats:
        """Calibrate its log-odds or margins."""
        return self.margins(X) * self.slope + self.shift

    def learned(self) -> dict[str, Any]:
        """Nothing: the classifier is an object of the user's."""
        return {}


@dataclass(frozen=True, eq=False)
class ClassifierBase:
    """Any scikit-learn classifier: of several labels at once if it can do that, else one clone per label."""

    estimator: Any

    def cross_fit(self, X: Features, labels: Labels, seed: int, executor: Executor) -> CrossFitted:
        """Fit clones, each on all rows but those of a fold."""
        tags = self.estimator.__sklearn_tags__().classifier_tags
        if tags is None:
            raise ValueError(f"base: expected a classifier, found {type(self.estimator).__name__}")
        fit = self._together if tags.multi_label and bool((labels.known >= 0).all()) else self._one_by_one
        out = _out_of_fold(labels.known.shape, seed, lambda kept, part: fit(X[kept], labels.some(kept))(X[part]))
        slope, shift = calibrate_margins(out, labels)
        return CrossFitted(out * slope + shift, ClassifierLogOdds(fit(X, labels), slope, shift))

    def _together(self, X: Features, labels: Labels) -> Callable[[Features], Floats]:
        n_rows, n_labels = labels.known.shape
        classifier = self._fitted(X, labels.known.astype(np.int64), labels.weight)
        return lambda rows: _margins(classifier, rows, n_labels, n_rows)

    def _one_by_one(self, X: Features, labels: Labels) -> Callable[[Features], Floats]:
        classifiers = dict[int, Any]()
        for label in np.flatnonzero(labels.varies()).tolist():
            known = np.flatnonzero(labels.known[:, label] >= 0)
            yes = labels.known[known, label].astype(np.int64)
            classifiers[label] = self._fitted(X[known], yes, labels.weight[known])

        def margins(rows: Features) -> Floats:
            found = np.zeros((int(rows.shape[0]), labels.known.shape[1]))
            for label, classifier in classifiers.items():
                found[:, label] = _margins(classifier, rows, 1, len(labels.known))[:, 0]
            return found

        return margins

    def _fitted(self, X: Features, yes: Ints, weight: Floats) -> Any:
        classifier = import_module("sklearn.base").clone(self.estimator)
        try:
            return self._fit_clone(classifier, X, yes, weight)
        except Exception as error:
            n_yes = ", ".join(str(count) for count in np.atleast_1d(yes.sum(axis=0)))
            error.add_note(
                f"base: {type(classifier).__name__} failed on {len(yes)} rows, of which {n_yes} have the label"
            )
            raise

    @staticmethod
    def _fit_clone(classifier: Any, X: Features, yes: Ints, weight: Floats) -> Any:
        if (weight == weight[0]).all():
            return classifier.fit(X, yes)
        if not import_module("sklearn.utils.validation").has_fit_parameter(classifier, "sample_weight"):
            name = type(classifier).__name__
            raise ValueError(f"sample_weight: expected equal weights, as base={name} takes none, found different ones")
        return classifier.fit(X, yes, sample_weight=weight)


def _margins(classifier: Any, X: Features, n_labels: int, n_training_rows: int) -> Floats:
    """Return log-odds (n, labels) of a user's classifier, or its margins if it has no probabilities."""
    chances = getattr(classifier, "predict_proba", None)  # scikit-learn leaves it out if there are none
    function = getattr(classifier, "decision_function", None) if chances is None else chances
    name, shape = type(classifier).__name__, (int(X.shape[0]), n_labels)
    if function is None:
        raise ValueError(f"base: expected a classifier with predict_proba or decision_function, found {name}")
    found: Any = function(X)
    if isinstance(found, list):  # of trees and neighbors: (rows, classes) per label, one class if it never changed
        each = zip(cast("list[Any]", found), classifier.classes_, strict=True)
        found = np.column_stack(
            [p[:, 1] if p.shape[1] == 2 else np.full(len(p), float(classes[0])) for p, classes in each]
        )
    margins = np.asarray(found, dtype=np.float64)
    if n_labels == 1:
        margins = (margins if chances is None else margins[:, 1]).reshape(-1, 1)
    if margins.shape != shape:
        raise ValueError(
            f"base: expected one score per row and label, shape {shape}, found {margins.shape} from {name}"
        )
    if chances is None:
        return margins
    least = 0.5 / (n_training_rows + 1.0)  # by Laplace's rule
    p = np.clip(margins, least, 1.0 - least)
    return np.log(p) - np.log1p(-p)
