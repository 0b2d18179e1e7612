"""Outlines to match, and what a point of an image sees of the others.

Closed smooth outlines and their sheared copies, point by point:

    r(angle) = exp(sum_h a_h cos(h angle + p_h)) ,    target = shear(source) + noise, points in another order.

r is positive, so an outline never crosses itself. Undoing the shear brings every target point back onto its source
point: without noise that matching costs nothing, and any other costs more.

Shape contexts, where the other points of an image lie, seen from each point (Belongie, Malik, Puzicha 2002):

    psi_i[r, a] = how many other points lie in ring r and direction a from point i
    x_ij        = |psi_i - psi_j|^2 , elementwise

Five rings that end at 1/8, 1/4, 1/2, 1 and 2 mean distances, twelve directions: 60 counts per point, ring after ring.
Distances are measured in mean distances between points, so the size of an image does not matter; turning it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.splits import RandomState


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Pairs of outlines, (pairs, points, 2): target point ``matches[p, i]`` is source point i of pair p.

    ``shear[p]`` is the 2 x 2 matrix that was applied: ``target = source @ shear.T``.
    """

    source: Floats
    target: Floats
    matches: Ints
    shear: Floats


def make_silhouettes(
    n_pairs: int = 20,
    n_points: int = 30,
    *,
    largest_shear: float = 0.8,
    noise: float = 0.0,
    n_harmonics: int = 6,
    random_state: RandomState = None,
) -> Silhouettes:
    """Draw outlines of about unit radius and shear each by a factor of up to ``largest_shear`` along x or along y.

    Examples
    --------
    >>> pairs = make_silhouettes(n_pairs=2, n_points=5, random_state=0)
    >>> pairs.source.shape
    (2, 5, 2)
    >>> back = np.take_along_axis(pairs.target, pairs.matches[:, :, None], axis=1)
    >>> bool(np.allclose(back, pairs.source @ pairs.shear.transpose(0, 2, 1)))
    True
    """
    if n_points < 3:
        raise ValueError(f"n_points: expected at least 3 points on an outline, found {n_points}")
    if not (largest_shear >= 0 and noise >= 0):
        raise ValueError(f"largest_shear, noise: expected numbers >= 0, found {largest_shear}, {noise}")
    rng = np.random.default_rng(random_state)
    harmonic = np.arange(1, n_harmonics + 1)
    # Amplitudes fall with the square of the frequency: lumps, no jags.
    amplitude = rng.normal(size=(n_pairs, n_harmonics, 1)) * 0.5 / harmonic[:, None] ** 2
    phase = rng.uniform(0, 2 * np.pi, size=(n_pairs, n_harmonics, 1))
    angle = np.linspace(0, 2 * np.pi, n_points, endpoint=False)
    radius = np.exp((amplitude * np.cos(harmonic[:, None] * angle + phase)).sum(axis=1))
    source = radius[:, :, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    shear = random_shears(n_pairs, largest_shear, rng)
    moved = source @ shear.transpose(0, 2, 1) + noise * rng.normal(size=(n_pairs, n_points, 2))
    matches = np.argsort(rng.random((n_pairs, n_points)), axis=1)
    target = np.empty_like(moved)
    np.put_along_axis(target, matches[:, :, None], moved, axis=1)
    return Silhouettes(source, target, matches, shear)


def random_shears(n: int, largest_shear: float, rng: np.random.Generator) -> Floats:
    """Draw 2 x 2 matrices that shear along x or along y by a factor of up to ``largest_shear``, (n, 2, 2)."""
    shear = np.broadcast_to(np.eye(2), (n, 2, 2)).copy()
    along_x = rng.random(n) < 0.5
    factor = rng.uniform(-largest_shear, largest_shear, size=n)
    shear[:, 0, 1], shear[:, 1, 0] = np.where(along_x, factor, 0), np.where(along_x, 0, factor)
    return shear


def shear_points(
    outline: ArrayLike, n_images: int, n_points: int = 20, *, largest_shear: float, random_state: RandomState = None
) -> Floats:
    """Take points of a given outline and shear them, once an image: (n_images, n_points, 2), the same points in each.

    Examples
    --------
    >>> square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> shear_points(square, 10, 3, largest_shear=0.5, random_state=0).shape
    (10, 3, 2)
    """
    given = np.asarray(outline, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != 2 or not 1 <= n_points <= len(given):
        raise ValueError(f"outline: expected at least {n_points} points of a plane, found shape {given.shape}")
    if not largest_shear >= 0:
        raise ValueError(f"largest_shear: expected a number >= 0, found {largest_shear}")
    rng = np.random.default_rng(random_state)
    chosen = given[rng.choice(len(given), n_points, replace=False)]
    return chosen @ random_shears(n_images, largest_shear, rng).transpose(0, 2, 1)


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
