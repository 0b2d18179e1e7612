"""What a CStarRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.inference.star_pair import StarPair
from slatewise.inference.star_sums import MOST_SUMMED
from slatewise.scores.row_kernels import check_basis

if TYPE_CHECKING:
    from slatewise.estimators.cstar import CStarRanker

Floats: TypeAlias = NDArray[np.float64]

MOST_TERM = 100.0
"""Of a pair term of the likelihood: exponentials of several are multiplied."""


def check_settings(ranker: CStarRanker, X: Floats, Y: Floats) -> None:
    """Raise ValueError unless the parameters make sense together, and for these rows and labels."""
    check_together(ranker, int(Y.shape[1]))
    if ranker.scores == "pretrained" and X.shape != Y.shape:
        raise ValueError(f"X: expected one given score a label, shape {Y.shape}, found {X.shape}")
    if ranker.checkpoint is not None and ranker.surrogate == "max-margin":
        if ranker.learner == "subgradient":
            raise ValueError(
                "checkpoint: expected None with learner='subgradient', whose state is not kept, found a path"
            )
        if ranker.learner == "bcfw" and ranker.k != "relevant":
            raise ValueError("checkpoint: expected None with a fixed k unless learner is 'bundle', found a path")


def check_together(ranker: CStarRanker, n_labels: int) -> None:
    """Raise ValueError unless the parameters make sense together, for so many labels."""
    if ranker.surrogate == "likelihood" and (ranker.scores != "pretrained" or ranker.k != "relevant"):
        raise ValueError(
            "surrogate: expected 'max-margin' unless scores is 'pretrained' and k is 'relevant', found 'likelihood'"
        )
    if not isinstance(ranker.k, str) and int(ranker.k) > n_labels:
        raise ValueError(f"k: expected 'relevant' or a number from 1 to {n_labels} labels, found {ranker.k!r}")


def encoded(y: Any, classes: NDArray[Any]) -> Any:
    """Encode one class a row by the classes of fit; anything else is left as it is."""
    if not len(classes) or np.ndim(y) != 1:
        return y
    values = np.asarray(y)
    unknown = ~np.isin(values, classes)
    if unknown.any():
        raise ValueError(f"y: expected classes seen in fit, found {values[unknown][0]!r}")
    return (values[:, None] == classes).astype(np.int64)


def check_learned(ranker: CStarRanker) -> None:
    """Raise ValueError unless the arrays of a file fit each other and the parameters."""
    StarPair.of(ranker.pair_, ranker.core_)
    n_labels = int(ranker.pair_.shape[1])
    check_together(ranker, n_labels)
    if ranker.surrogate == "likelihood" and len(ranker.core_) > MOST_SUMMED:
        raise ValueError(f"core_: expected at most {MOST_SUMMED} labels with the likelihood, found {len(ranker.core_)}")
    if ranker.surrogate == "likelihood" and np.abs(ranker.pair_).max(initial=0.0) > MOST_TERM:
        raise ValueError(f"pair_: expected numbers up to {MOST_TERM:g} with the likelihood, found larger ones")
    if ranker.scores == "pretrained" and ranker.n_features_in_ != n_labels:
        raise ValueError(f"n_features_in_: expected {n_labels}, one given score per label, found other scores")
    check_basis(ranker.scores, ranker.basis_, ranker.n_features_in_)
    width = ranker.n_features_in_ if ranker.scores == "linear" else len(ranker.basis_)
    shapes = {
        "coef_": (n_labels,) if ranker.scores == "pretrained" else (n_labels, width),
        "intercept_": (n_labels,),
        "count_coef_": (n_labels + 1,),
    }
    for name, shape in shapes.items():
        if getattr(ranker, name).shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, found {getattr(ranker, name).shape}")
    if ranker.k_ > n_labels:
        raise ValueError(f"k_: expected a number from 1 to {n_labels}, found {ranker.k_}")
    if len(ranker.classes_) not in (0, n_labels):
        raise ValueError(f"classes_: expected {n_labels} classes or none, found {len(ranker.classes_)}")
