"""Scales of features, learned from training rows; which one suits is a setting, and every method may choose.

- *standard*: (x - mean) / spread, each feature by itself;
- *common*: (x - mean) / root of the mean variance: for features of one unit, like pixels, whose spreads tell;
- *power*: standard, then the power of each feature that makes it most like a normal one (Yeo and Johnson 2000).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from slatewise.core.arrays import Floats

Map: TypeAlias = Callable[[Floats], Floats]
Scaling: TypeAlias = Callable[[Floats], Map]
_preprocessing: Any = import_module("sklearn.preprocessing")


def unscaled(X: Floats) -> Map:
    """Leave the rows as they are."""
    return np.asarray


def standard(X: Floats) -> Map:
    """Bring features to mean 0 and spread 1; a constant one becomes 0."""
    mean, variance = _moments(X)
    spread = np.where(variance == 0.0, 1.0, np.sqrt(variance))
    return lambda rows: (rows - mean) / spread


def common(X: Floats) -> Map:
    """Bring features to mean 0 and, all by one factor, to a mean variance of 1."""
    mean, variance = _moments(X)
    spread = np.sqrt(variance.mean()) or 1.0
    return lambda rows: (rows - mean) / spread


def power(X: Floats) -> Map:
    """Bring features to mean 0 and spread 1, each by the power that makes it most like a normal one."""
    scaled = standard(X)  # the powers are of 1 + x, so the unit matters
    known = scaled(X)
    powers = _preprocessing.PowerTransformer().fit(known)
    # Beyond the rows they were learned from, steep powers lead anywhere.
    low, high = known.min(axis=0), known.max(axis=0)
    return lambda rows: powers.transform(np.clip(scaled(rows), low, high))


def _moments(X: Floats) -> tuple[Floats, Floats]:
    """Return each feature's mean and variance; a constant one has variance 0, which rounding of the mean would hide."""
    mean, variance = X.mean(axis=0), X.var(axis=0)
    constant = (X[0] == X).all(axis=0)
    mean[constant], variance[constant] = X[0, constant], 0.0
    return mean, variance
