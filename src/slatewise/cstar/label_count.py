"""How many labels does a row have? A ridge regression of the number on the row's sorted label scores.

    count(x) = b . sort(s(x)) + b_0 ,    rounded and clipped to 1 .. N

Sorted scores say how many labels stand out; which ones does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints

_RIDGES = 10.0 ** np.arange(-4, 7)


def fit_label_count(scores: Floats, counts: Floats, weight: Floats) -> Floats:
    """Return the coefficients, intercept last, for scores (n, N) and the numbers of relevant labels.

    The ridge is the one with the smallest leave-one-out error (generalised cross-validation); the largest leaves the
    mean number.
    """
    features = _features(scores)[:, :-1]
    total = float(weight.sum())
    centre, middle = weight @ features / total, float(weight @ counts) / total
    root = np.sqrt(weight)
    left, singular, right = np.linalg.svd(root[:, None] * (features - centre), full_matrices=False)
    aim = root * (counts - middle)
    target = left.T @ aim
    scale = float((singular**2).mean()) or 1.0
    best, best_error = np.zeros(features.shape[1]), np.inf
    for ridge in _RIDGES * scale:
        shrink = singular**2 / (singular**2 + ridge)
        error = float(((aim - left @ (shrink * target)) ** 2).sum()) / (total - shrink.sum()) ** 2
        if error < best_error and total > shrink.sum():
            best = right.T @ (shrink / np.maximum(singular, 1e-300) * target)
            best_error = error
    return np.append(best, middle - centre @ best)


def predict_label_count(scores: Floats, coef: Floats) -> Ints:
    """Return one number per row.

    Examples
    --------
    >>> scores = np.array([[3.0, 2.0, -1.0], [1.0, -2.0, -3.0]] * 10)
    >>> coef = fit_label_count(scores, np.array([2.0, 1.0] * 10), np.ones(20))
    >>> predict_label_count(scores[:2], coef)
    array([2, 1])
    """
    return np.clip(np.rint(_features(scores) @ coef), 1, scores.shape[1]).astype(np.int64)


def mean_count(known: NDArray[np.int8], weight: Floats) -> int:
    """Return the rounded mean number of relevant labels, at least 1; unknown labels are -1.

    Examples
    --------
    >>> mean_count(np.array([[1, 1, 0], [1, -1, -1]], dtype=np.int8), np.ones(2))
    2
    """
    if (known >= 0).all():
        mean = np.average(known.sum(axis=1), weights=weight)
    else:  # of every label its share of the rows that tell it
        mean = (weight @ (known > 0) / np.maximum(weight @ (known >= 0), 1e-300)).sum()
    return int(np.clip(np.rint(mean), 1, known.shape[1]))


def _features(scores: Floats) -> Floats:
    return np.column_stack([np.sort(scores, axis=1)[:, ::-1], np.ones(len(scores))])
