"""Shape contexts: where the other points of an image lie, seen from each point (Belongie, Malik, Puzicha 2002).

    psi_i[r, a] = how many other points lie in ring r and direction a from point i
    x_ij        = |psi_i - psi_j|^2 , elementwise

Five rings that end at 1/8, 1/4, 1/2, 1 and 2 mean distances, twelve directions: 60 counts a point, ring after ring.
Distances are measured in mean distances between points, so the size of an image does not matter; turning it does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats

RINGS = (0.125, 0.25, 0.5, 1.0, 2.0)
DIRECTIONS = 12


def shape_context(points: ArrayLike, others: ArrayLike | None = None) -> Floats:
    """Describe each point by the places of the others.

    Parameters
    ----------
    points : array-like of shape (n, 2)
        The points to describe.
    others : array-like of shape (m, 2), optional
        The points they see, for example the whole outline they were taken from; default: each other. What lies exactly
        on a point is the point itself and is not counted, nor is what lies beyond two mean distances.

    Returns
    -------
    array of shape (n, 60)
        Counts.

    Examples
    --------
    >>> corners = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> shape_context(corners).sum(axis=1)
    array([3., 3., 3., 3.])
    """
    seen_from = _plane("points", points)
    seen = seen_from if others is None else _plane("others", others)
    step = seen[None, :, :] - seen_from[:, None, :]
    distance = np.hypot(step[..., 0], step[..., 1])
    unit = float(distance.mean())
    if not unit > 0.0:
        raise ValueError("points: expected at least two different points, found none")
    ring = np.searchsorted(RINGS, distance / unit, side="right")
    turn = np.mod(np.arctan2(step[..., 1], step[..., 0]) / (2.0 * np.pi), 1.0)
    direction = np.minimum((turn * DIRECTIONS).astype(np.int64), DIRECTIONS - 1)
    counted = (distance > 0.0) & (ring < len(RINGS))
    size = len(RINGS) * DIRECTIONS
    cell = np.arange(len(seen_from))[:, None] * size + ring * DIRECTIONS + direction
    counts = np.bincount(cell[counted], minlength=len(seen_from) * size)
    return counts.reshape(len(seen_from), size).astype(np.float64)


def edge_features(source: ArrayLike, target: ArrayLike) -> Floats:
    """Return ``x_ij = |psi_i - psi_j|^2``, (M, N, d), of M source and N target points with d features each.

    Examples
    --------
    >>> edge_features([[1.0, 0.0]], [[0.0, 0.0], [3.0, 1.0]]).tolist()
    [[[1.0, 0.0], [4.0, 1.0]]]
    """
    left, right = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ValueError(f"source, target: expected rows of as many features, found {left.shape} and {right.shape}")
    return (left[:, None, :] - right[None, :, :]) ** 2


def _plane(name: str, points: ArrayLike) -> Floats:
    found = np.asarray(points, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all():
        raise ValueError(f"{name}: expected finite points of a plane, shape (n, 2), found shape {found.shape}")
    return found
