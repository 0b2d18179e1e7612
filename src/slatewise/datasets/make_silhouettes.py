"""Closed smooth outlines and their sheared copies, point by point.

    r(angle) = exp(sum_h a_h cos(h angle + p_h)) ,    target = shear(source) + noise, points in another order.

r is positive, so an outline never crosses itself. Undoing the shear brings every target point back onto its source
point: without noise that matching costs nothing, and any other costs more.
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
