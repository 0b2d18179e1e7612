"""How sure is the model of a label? Max-marginals turned into probabilities.

    p(label relevant) = g( best score with it in - best with it out )

g is the best non-decreasing step function on validation rows (isotonic regression), joined by straight lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from slatewise.core.arrays import Floats
from slatewise.data.labels import check_labels
from slatewise.labeling.questions.rows import LabelRanker, LabelRows


@dataclass(frozen=True, eq=False)
class Confidence:
    """A calibrated map from margins to probabilities: straight lines between knots."""

    margins: Floats
    probabilities: Floats

    def of(
        self, ranker: LabelRanker, X: ArrayLike, k: ArrayLike | None = None, known: ArrayLike | None = None
    ) -> Floats:
        """Return the probability (n, N) that each label is relevant; 1 or 0 if it is known or decided.

        Parameters
        ----------
        ranker
            The ranker that :func:`calibrate` saw.
        X
            Rows.
        k
            Labels to select: a number, or one per row; None if the ranker does not need it.
        known
            (n, N): 1 yes, 0 no, -1 unknown.
        """
        rows = LabelRows.of(ranker, X, k)
        margins = rows.margins(np.full(rows.scores.shape, -1, dtype=np.int8) if known is None else known)
        between = np.interp(margins, self.margins, self.probabilities)
        return np.where(np.isposinf(margins), 1.0, np.where(np.isneginf(margins), 0.0, between))


def calibrate(ranker: LabelRanker, X: ArrayLike, Y: Any, k: ArrayLike | None = None) -> Confidence:
    """Fit the map on rows that the ranker was not trained on.

    Parameters
    ----------
    ranker
        A fitted ranker.
    X, Y
        Validation rows and their labels, 0/1.
    k
        The number of labels to select, as in later calls of :meth:`Confidence.of`; default: each row's own number, or
        None if the ranker does not need it.

    Examples
    --------
    >>> from slatewise import CStarRanker, datasets
    >>> scenes = datasets.make_label_scenes(300, random_state=0)
    >>> ranker = CStarRanker(core=3).fit(scenes.X[:200], scenes.Y[:200])
    >>> sure = calibrate(ranker, scenes.X[200:], scenes.Y[200:]).of(ranker, scenes.X[200:])
    >>> sure.shape, bool((sure >= 0).all() and (sure <= 1).all())
    ((100, 20), True)
    """
    truth = check_labels(Y, len(np.asarray(X)))[0]
    rows = LabelRows.of(ranker, X, truth.sum(axis=1) if k is None and ranker.needs_count else k)
    margins = rows.margins(np.full(truth.shape, -1, dtype=np.int8))
    open_labels = np.isfinite(margins)
    if not open_labels.any():
        raise ValueError("X, Y: expected a row with some but not all labels relevant, found none")
    knots, group, counts = np.unique(margins[open_labels], return_inverse=True, return_counts=True)
    share = np.bincount(group, weights=truth[open_labels]) / counts
    return Confidence(knots, np.clip(isotonic_regression(share, weights=counts).x, 0.0, 1.0))
