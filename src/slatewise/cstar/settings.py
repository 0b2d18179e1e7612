"""What a CStarRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.checks import Features
from slatewise.core.executor import refuse_on_cluster
from slatewise.core.label_names import labels_like, separator_for
from slatewise.core.row_kernels import check_basis
from slatewise.cstar.base import MOST_LOG_ODDS
from slatewise.cstar.checks import Known
from slatewise.cstar.pair import StarPair
from slatewise.cstar.sums import MOST_SUMMED

if TYPE_CHECKING:
    from slatewise.cstar.ranker import CStarRanker

Floats: TypeAlias = NDArray[np.float64]
_LEAST_RANGE = 0.1

MOST_TERM = 100.0
"""Of a pair term of the likelihood: exponentials of several are multiplied."""


def check_settings(ranker: CStarRanker, X: Features, Y: Known) -> None:
    """Raise ValueError unless the parameters make sense together, and for these rows and labels."""
    check_together(ranker, int(Y.shape[1]))
    if ranker.scores == "pretrained" and X.shape != Y.shape:
        raise ValueError(f"X: expected one given score per label, shape {Y.shape}, found {X.shape}")
    if ranker.surrogate == "max-margin" and ranker.learner != "bundle":
        refuse_on_cluster(f"learner={ranker.learner!r}", "learner='bundle', or surrogate='likelihood'")
    if ranker.checkpoint is not None and ranker.surrogate == "max-margin":
        if ranker.learner == "subgradient":
            raise ValueError(
                "checkpoint: expected None with learner='subgradient', whose state is not kept, found a path"
            )
        if ranker.learner == "bcfw" and ranker.k != "relevant":
            raise ValueError("checkpoint: expected None with a fixed k unless learner is 'bundle', found a path")


def check_together(ranker: CStarRanker, n_labels: int) -> None:
    """Raise ValueError unless the parameters make sense together, for so many labels."""
    if ranker.surrogate != "max-margin":
        if ranker.scores not in ("base", "pretrained"):
            found = f"found {ranker.surrogate!r}, which needs log-odds: scores='base' or 'pretrained'"
            raise ValueError(f"surrogate: expected 'max-margin' with scores={ranker.scores!r}, {found}")
        if ranker.k != "relevant":
            raise ValueError(f"surrogate: expected 'max-margin' with a fixed k, found {ranker.surrogate!r}")
    if ranker.surrogate == "likelihood" and ranker.core_by != "information":
        raise ValueError("core_by: expected 'information' with surrogate='likelihood', which validates, found 'gain'")
    if ranker.scores != "base" and ranker.base is not None:
        raise ValueError(f"base: expected None with scores={ranker.scores!r}, found {rules.shown(ranker.base)}")
    if not isinstance(ranker.k, str) and int(ranker.k) > n_labels:
        raise ValueError(f"k: expected 'relevant' or a number from 1 to {n_labels} labels, found {ranker.k!r}")


def check_source(ranker: CStarRanker) -> None:
    """Raise ValueError unless the ranker can learn from rows that nobody holds."""
    if ranker.scores == "base":
        raise ValueError(
            "base: expected scores='pretrained' or 'linear' with a source, found scores='base': a base learns from "
            "rows in memory; fit it first, and give its out-of-fold log-odds"
        )
    if ranker.scores not in ("pretrained", "linear"):
        raise ValueError(f"scores: expected 'pretrained' or 'linear' with a source, found {ranker.scores!r}")
    if ranker.scores == "pretrained" and ranker.surrogate != "likelihood":
        raise ValueError(f"surrogate: expected 'likelihood' for given scores in a source, found {ranker.surrogate!r}")
    if ranker.scores == "linear":
        if ranker.learner != "bundle":
            raise ValueError(f"learner: expected 'bundle' with a source, found {ranker.learner!r}")
        if isinstance(ranker.C, str):
            raise ValueError("C: expected a number with a source, of which nobody holds folds, found 'auto'")
        if ranker.k != "relevant" or ranker.core_by != "information":
            name = "k" if ranker.k != "relevant" else "core_by"
            expected = "'relevant'" if name == "k" else "'information'"
            raise ValueError(f"{name}: expected {expected} with a source, found {getattr(ranker, name)!r}")


def check_log_odds(low: float, high: float) -> None:
    """Warn where given scores can hardly be meant as log-odds, which the likelihood takes them for.

    Raise ValueError where they are larger than those of any probability: sums of exponentials then lose what is small.
    """
    if max(-low, high) > MOST_LOG_ODDS:
        bound = f"{MOST_LOG_ODDS:g}"
        raise ValueError(
            f"X: expected log-odds from -{bound} to {bound}, found {low:.3g} to {high:.3g}; clip or scale them"
        )
    if low >= 0.0 and high <= 1.0:
        hint = "log(p / (1 - p)) if they are probabilities"
    elif high - low < _LEAST_RANGE:
        hint = "their size matters, and these say that all labels are equally likely"
    else:
        return
    warnings.warn(f"X: expected log-odds for the likelihood, found {low:.3g} to {high:.3g}: {hint}", stacklevel=3)


def check_truth(ranker: CStarRanker, y: Any, n_rows: int, separator: str | None = None) -> Floats:
    """Return y as 0/1 labels of the fitted ranker's, (n, n_labels)."""
    classes = None if ranker.multilabel_ else ranker.classes_
    return labels_like(y, n_rows, ranker.label_names_, classes, separator or separator_for(y, ranker.separator_))


def check_learned(ranker: CStarRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    StarPair.of(ranker.pair_, ranker.core_)
    n_labels = int(ranker.pair_.shape[1])
    check_together(ranker, n_labels)
    if ranker.surrogate != "max-margin" and len(ranker.core_) > MOST_SUMMED:
        raise ValueError(f"core_: expected at most {MOST_SUMMED} labels with the likelihood, found {len(ranker.core_)}")
    for name, pair in {"pair_": ranker.pair_, "told_": ranker.told_[2:]}.items():
        if ranker.surrogate != "max-margin" and np.abs(pair).max(initial=0.0) > MOST_TERM:
            raise ValueError(f"{name}: expected numbers up to {MOST_TERM:g} with the likelihood, found larger ones")
    if ranker.scores == "pretrained" and ranker.n_features_in_ != n_labels:
        raise ValueError(f"n_features_in_: expected {n_labels}, one given score per label, found other scores")
    check_basis("rbf" if ranker.base == "svc" else ranker.scores, ranker.basis_, ranker.n_features_in_)
    width = ranker.n_features_in_ if ranker.scores == "linear" else len(ranker.basis_)
    base_width = len(ranker.basis_) if ranker.base == "svc" else ranker.n_features_in_
    based, has_told = ranker.scores == "base", ranker.surrogate == "likelihood" and ranker.told_.size > 0
    shapes = {
        "coef_": (n_labels,) if ranker.scores in ("base", "pretrained") else (n_labels, width),
        "intercept_": (n_labels,),
        "base_coef_": (n_labels, base_width) if based else (0, 0),
        "base_intercept_": (n_labels,) if based else (0,),
        "count_coef_": (n_labels + 1,),
        "told_": (2 + len(ranker.core_), n_labels) if has_told else (0, 0),
    }
    for name, shape in shapes.items():
        if getattr(ranker, name).shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, found {getattr(ranker, name).shape}")
    if has_told:
        StarPair.of(ranker.told_[2:], ranker.core_)
    if ranker.k_ > (n_labels if ranker.multilabel_ else 1):
        expected = f"a number from 1 to {n_labels}" if ranker.multilabel_ else "1 with one class per row"
        raise ValueError(f"k_: expected {expected}, found {ranker.k_}")
    if ranker.classes_.shape != (n_labels,) or (
        ranker.multilabel_ and not np.array_equal(ranker.classes_, np.arange(n_labels))
    ):
        raise ValueError(f"classes_: expected {n_labels} classes, or the numbers of as many labels")
    check_label_names(ranker, n_labels)


def check_label_names(ranker: CStarRanker, n_labels: int) -> None:
    """Raise ValueError unless a file's labels are called by different names, by their classes or by number."""
    names = ranker.label_names_
    named = ranker.multilabel_ and names.dtype.kind == "U" and names.shape == (n_labels,)
    if not (named and len(np.unique(names)) == n_labels) and not np.array_equal(names, ranker.classes_):
        raise ValueError(f"label_names_: expected {n_labels} different strings, or what classes_ says")
