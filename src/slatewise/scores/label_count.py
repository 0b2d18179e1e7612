"""How many labels does a row have? A ridge regression of the number on the row's sorted label scores.

    count(x) = b . sort(s(x)) + b_0 ,    rounded and clipped to 1 .. N

Sorted scores say how many labels stand out; which ones does not matter.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_RIDGE = 1e-4


def fit_label_count(scores: Floats, counts: Floats) -> Floats:
    """Return the coefficients, intercept last, for scores (n, N) and the numbers of relevant labels."""
    features = _features(scores)
    penalty = _RIDGE * np.eye(features.shape[1])
    penalty[-1, -1] = 0.0
    scale = np.trace(features.T @ features) / features.shape[1]
    return np.linalg.solve(features.T @ features + penalty * max(scale, 1e-300), features.T @ counts)


def predict_label_count(scores: Floats, coef: Floats) -> Ints:
    """Return one number a row.

    Examples
    --------
    >>> scores = np.array([[3.0, 2.0, -1.0], [1.0, -2.0, -3.0]] * 10)
    >>> coef = fit_label_count(scores, np.array([2.0, 1.0] * 10))
    >>> predict_label_count(scores[:2], coef)
    array([2, 1])
    """
    return np.clip(np.rint(_features(scores) @ coef), 1, scores.shape[1]).astype(np.int64)


def _features(scores: Floats) -> Floats:
    return np.column_stack([np.sort(scores, axis=1)[:, ::-1], np.ones(len(scores))])
