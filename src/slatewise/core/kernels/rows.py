"""Distances and similarities between rows that are no matrix product."""

from __future__ import annotations

from slatewise.core.arrays import Floats
from slatewise.core.running.kernel import kernel


@kernel
def chi2_distances(X: Floats, Y: Floats, out: Floats) -> None:
    """Fill out[i, j] = sum_f (x_f - y_f)^2 / (x_f + y_f); 0 / 0 counts 0."""
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for f in range(X.shape[1]):
                both = X[i, f] + Y[j, f]
                if both > 0.0:
                    difference = X[i, f] - Y[j, f]
                    total += difference * difference / both
            out[i, j] = total


@kernel
def intersections(X: Floats, Y: Floats, out: Floats) -> None:
    """Fill out[i, j] = sum_f min(x_f, y_f)."""
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for f in range(X.shape[1]):
                total += min(X[i, f], Y[j, f])
            out[i, j] = total
