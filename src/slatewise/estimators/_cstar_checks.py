"""What a CStarRanker refuses: parameters that mean nothing, and learned arrays that do not fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import rules
from slatewise.inference.star_pair import StarPair
from slatewise.scores.row_kernels import KERNELS

if TYPE_CHECKING:
    from slatewise.estimators.cstar import CStarRanker

Floats: TypeAlias = NDArray[np.float64]


def check_settings(ranker: CStarRanker, X: Floats, Y: Floats) -> None:
    """Raise ValueError unless the parameters make sense together, and for these rows and labels."""
    if ranker.surrogate == "likelihood" and (ranker.scores != "pretrained" or ranker.k != "relevant"):
        raise ValueError(
            "surrogate: expected 'max-margin' unless scores is 'pretrained' and k is 'relevant', found 'likelihood'"
        )
    if ranker.scores == "pretrained" and X.shape != Y.shape:
        raise ValueError(f"X: expected one given score a label, shape {Y.shape}, found {X.shape}")
    if not isinstance(ranker.k, str) and int(ranker.k) > Y.shape[1]:
        raise ValueError(f"k: expected 'relevant' or a number from 1 to {Y.shape[1]} labels, found {ranker.k!r}")
    if ranker.checkpoint is not None and ranker.surrogate == "max-margin":
        if ranker.learner == "subgradient":
            raise ValueError(
                "checkpoint: expected None with learner='subgradient', whose state is not kept, found a path"
            )
        if ranker.learner == "bcfw" and ranker.k != "relevant":
            raise ValueError("checkpoint: expected None with a fixed k unless learner is 'bundle', found a path")


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
    rules.check(ranker)
    StarPair.of(ranker.pair_, ranker.core_)
    n_labels = int(ranker.pair_.shape[1])
    width = ranker.n_features_in_ if ranker.scores == "linear" else len(ranker.basis_)
    shapes = {
        "coef_": (n_labels,) if ranker.scores == "pretrained" else (n_labels, width),
        "intercept_": (n_labels,),
        "count_coef_": (n_labels + 1,),
    }
    for name, shape in shapes.items():
        if getattr(ranker, name).shape != shape or not np.isfinite(getattr(ranker, name)).all():
            raise ValueError(f"{name}: expected finite numbers of shape {shape}")
    if ranker.scores == "precomputed":
        columns = ranker.basis_
        if columns.dtype.kind != "i" or ((columns < 0) | (columns >= ranker.n_features_in_)).any():
            raise ValueError(f"basis_: expected columns of {ranker.n_features_in_}")
    elif ranker.scores in KERNELS and ranker.basis_.shape[1:] != (ranker.n_features_in_,):
        raise ValueError(f"basis_: expected rows of {ranker.n_features_in_} features")
    if type(ranker.k_) is not int or not 1 <= ranker.k_ <= n_labels:
        raise ValueError(f"k_: expected a number from 1 to {n_labels}, found {ranker.k_!r}")
    if len(ranker.classes_) not in (0, n_labels):
        raise ValueError(f"classes_: expected {n_labels} classes or none, found {len(ranker.classes_)}")
