"""Block-coordinate ascent on the dual of the c-star hinge, one list after another, over cached corners.

A *corner* of list m is a selection t; its feature difference to the labels z is psi(t) = phi(z) - phi(t). Every list
keeps a few corners with weights alpha that sum to 1, and the parameters are

    W = sum_m c_m sum_t alpha_m(t) (z - t) x_m' ,     G = sum_m (c_m / rho) sum_t alpha_m(t) (pairs(z) - pairs(t)) .

The dual's slope along corner t is  h(t) = loss(t) - <w, psi(t)>.  A pair step moves weight from the corner with the
smallest h that has some to the one with the largest: unlike the plain Frank-Wolfe step it can remove a corner again,
which is what makes the last digits of the gap cheap. Features are one row per list (``shared``), or one
per list and item.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.kernel import kernel
from slatewise.cstar.kernels.layout import CornerCache, DualTerms, Sets


@kernel
def add_pairs(out: Floats, core_of: Ints, items: Sets, sign: float) -> None:
    """Add ``sign`` at every pair of ``items`` with a core item in it; a pair of core items stands in the lower row."""
    for i in items:
        row = core_of[i]
        if row >= 0:
            for j in items:
                if j != i and (core_of[j] < 0 or core_of[j] > row):
                    out[row, j] += sign


@kernel
def pair_value(G: Floats, core_of: Ints, items: Sets) -> float:
    """Sum G over the pairs of ``items``."""
    value = 0.0
    for i in items:
        row = core_of[i]
        if row >= 0:
            for j in items:
                if j != i and (core_of[j] < 0 or core_of[j] > row):
                    value += float(G[row, j])
    return value


@kernel
def move_pairs(G: Floats, touched: Floats, core_of: Ints, gained: Sets, lost: Sets, amount: float) -> None:
    """Add ``amount * (pairs(gained) - pairs(lost))`` to G; ``touched`` is a zero (C, N) buffer, zero again after."""
    add_pairs(touched, core_of, gained, 1.0)
    add_pairs(touched, core_of, lost, -1.0)
    for side in range(2):
        items = gained if side == 0 else lost
        for i in items:
            row = core_of[i]
            if row >= 0:
                for j in items:
                    if touched[row, j] != 0.0:
                        G[row, j] += amount * touched[row, j]
                        touched[row, j] = 0.0


@kernel
def pair_distance(touched: Floats, core_of: Ints, one: Sets, two: Sets) -> float:
    """Return |pairs(one) - pairs(two)|^2; ``touched`` is a zero (C, N) buffer, zero again after."""
    add_pairs(touched, core_of, one, 1.0)
    add_pairs(touched, core_of, two, -1.0)
    total = 0.0
    for side in range(2):
        items = one if side == 0 else two
        for i in items:
            row = core_of[i]
            if row >= 0:
                for j in items:
                    total += float(touched[row, j]) ** 2
                    touched[row, j] = 0.0
    return total


@kernel
def add_corners(lists: Ints, k: Ints, found: Ints, losses: Floats, cache: CornerCache) -> None:
    """Put one corner into the cache of every list unless it is there; a full one loses its first weightless one."""
    corners, alpha, count = cache.corners, cache.alpha, cache.n_used
    capacity = corners.shape[1]
    for position in range(len(lists)):
        m = lists[position]
        size = k[m]
        place = -1
        known = False
        for q in range(count[m]):
            known = True
            for r in range(size):
                if corners[m, q, r] != found[position, r]:
                    known = False
                    break
            if known:
                break
            if q > 0 and place < 0 and alpha[m, q] == 0.0:
                place = q
        if known:
            continue
        if count[m] < capacity:
            place = count[m]
            count[m] += 1
        if place < 0:
            continue
        for r in range(size):
            corners[m, place, r] = found[position, r]
        cache.loss[m, place] = losses[position]
        alpha[m, place] = 0.0


@kernel
def solve_lists(lists: Ints, steps: int, terms: DualTerms, W: Floats, G: Floats, cache: CornerCache) -> float:
    """Take up to ``steps`` pair steps on every list of ``lists``, in order; return the dual's ascent."""
    phi, shared, square_norms, core_of = terms.phi, terms.shared, terms.square_norms, terms.core_of
    offset, c, rho, k = terms.offset, terms.c, terms.rho, terms.k
    corners, corner_loss, alpha, count = cache.corners, cache.loss, cache.alpha, cache.n_used
    n_items = W.shape[0]
    scores = np.empty(n_items)
    moved = np.zeros(n_items)
    seen = np.full(n_items, -1)
    items = np.empty(n_items, np.int64)
    slopes = np.empty(corners.shape[1])
    touched = np.zeros(G.shape)
    ascent = 0.0
    for position in range(len(lists)):
        m = lists[position]
        size = k[m]
        if count[m] < 2 or size == 0:
            continue
        n_seen = 0
        for q in range(count[m]):
            for r in range(size):
                i = corners[m, q, r]
                if seen[i] != position:
                    seen[i] = position
                    items[n_seen] = i
                    n_seen += 1
                    scores[i] = np.dot(W[i], phi[m if shared else m * n_items + i])
                    if len(offset) > 0:
                        scores[i] += offset[m, i]
        for _ in range(steps):
            up, down = -1, -1
            for q in range(count[m]):
                value = corner_loss[m, q]
                for r in range(size):
                    value += scores[corners[m, q, r]]
                if len(G) > 0:
                    value += pair_value(G, core_of, corners[m, q, :size])
                slopes[q] = value
                if up < 0 or value > slopes[up]:
                    up = q
                if alpha[m, q] > 0.0 and (down < 0 or value < slopes[down]):
                    down = q
            if down < 0:  # no weight is left to move
                break
            slope = slopes[up] - slopes[down]
            if up == down or not slope > 1e-12 * (1.0 + abs(slopes[up])):
                break
            gained, lost = corners[m, down, :size], corners[m, up, :size]
            curvature = 0.0
            for r in range(size):
                moved[gained[r]] += 1.0
                moved[lost[r]] -= 1.0
            for side in range(2):
                part = gained if side == 0 else lost
                for i in part:
                    if moved[i] * (1 - 2 * side) > 0.0:
                        curvature += square_norms[m if shared else m * n_items + i]
            if len(G) > 0:
                curvature += pair_distance(touched, core_of, gained, lost) / rho
            curvature *= c[m]
            step = alpha[m, down]
            if curvature * step > slope:
                step = slope / curvature
                alpha[m, down] -= step
            else:
                alpha[m, down] = 0.0
            alpha[m, up] += step
            ascent += c[m] * step * (slope - 0.5 * step * curvature)
            for side in range(2):
                part = gained if side == 0 else lost
                for i in part:
                    if moved[i] != 0.0:
                        row = m if shared else m * n_items + i
                        weight = c[m] * step * moved[i]
                        scores[i] += weight * square_norms[row]
                        w, x = W[i], phi[row]
                        for f in range(len(x)):
                            w[f] += weight * x[f]
                        moved[i] = 0.0
            if len(G) > 0:
                move_pairs(G, touched, core_of, gained, lost, c[m] * step / rho)
    return ascent
