"""Robust tabu search over swaps of two items (Taillard 1991), for any F and D and with a linear term.

    f = sum_i L[i, p_i] + sum_{i != j} F_ij D[p_i, p_j],    F and D with zero diagonals

f is quadratic in the permutation matrix, so two pieces give the gain of swapping items i and j exactly:

    H_ij    = L[i, p_j] + sum_k F_ik D[p_j, p_k] + F_ki D[p_k, p_j]        the gradient, item i on j's position
    gain_ij = H_ij + H_ji - H_ii - H_jj + (F_ij + F_ji) (D[p_i, p_j] + D[p_j, p_i])

Swapping r and s exchanges two columns of H and adds two matrices of rank one, so a step costs O(1) per pair.

Rules: take the best swap that is not tabu, even if it loses. Two items that moved may not both return to where they
were for a random time, mostly short and sometimes long. A swap that makes the best ranking so far is always allowed,
and one whose two moves were not made for very long is forced, which drives the search into new regions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.kernels.random import uniform
from slatewise.core.running.kernel import kernel


class Problem(NamedTuple):
    """F, F', F + F', D and D', all contiguous; L is in the gradient from the start."""

    items: Floats
    items_t: Floats
    items_both: Floats
    positions: Floats
    positions_t: Floats


class Walk(NamedTuple):
    """Where a search stands; a later call goes on from there."""

    place: Ints
    """Position of each item."""
    best_place: Ints
    values: Floats
    """Score of ``place`` and of ``best_place``."""
    gradient: Floats
    """H, and its transpose: rows of both are read in order."""
    gradient_t: Floats
    between: Floats
    """``D[p_i, p_j] + D[p_j, p_i]``."""
    gains: Floats
    until: Ints
    """Item i may not return to position p before the step ``until[i, p]``; negative where it never left it."""
    random: NDArray[np.uint64]
    """State of the random numbers, one word."""


class Rules(NamedTuple):
    """How long a move stays tabu at most, when an old one is forced, and what counts as better."""

    longest: int
    forced_after: int
    tolerance: float


@kernel
def all_gains(
    gradient: Floats, gradient_t: Floats, between: Floats, items_both: Floats, own: Floats, gains: Floats
) -> None:
    """Fill ``gains[i, j]``, the gain of swapping items i and j."""
    for i in range(len(own)):
        own[i] = gradient[i, i]
    for i in range(len(own)):
        for j in range(len(own)):
            gains[i, j] = gradient[i, j] + gradient_t[i, j] - own[i] - own[j] + items_both[i, j] * between[i, j]


@kernel
def choose(walk: Walk, rules: Rules, step: int) -> tuple[int, int]:
    """Return the swap to make at this step, or (-1, -1) where all are tabu."""
    place, gains, until = walk.place, walk.gains, walk.until
    n = len(place)
    record = walk.values[1] - walk.values[0] + rules.tolerance
    r, s, best = -1, -1, -np.inf
    for i in range(n):
        for j in range(i + 1, n):
            if gains[i, j] > best and (
                gains[i, j] > record or until[i, place[j]] <= step or until[j, place[i]] <= step
            ):
                r, s, best = i, j, gains[i, j]
    if best > record:
        return r, s
    # One row per step, so that looking for forgotten moves costs little; each row has its turn every n steps.
    i, old, best = step % n, step - rules.forced_after, -np.inf
    for j in range(i + 1, n):
        if gains[i, j] > best and until[i, place[j]] < old and until[j, place[i]] < old:
            r, s, best = i, j, gains[i, j]
    return r, s


@kernel
def add_rank_two(matrix: Floats, x: Floats, y: Floats, v: Floats, w: Floats) -> None:
    """Add ``x y' + v w'``."""
    for i in range(len(x)):
        for j in range(len(x)):
            matrix[i, j] += x[i] * y[j] + v[i] * w[j]


@kernel
def swap(problem: Problem, walk: Walk, r: int, s: int, buffers: Floats) -> None:
    """Exchange the positions of items r and s and bring the gradient up to date."""
    place, gradient, gradient_t, between = walk.place, walk.gradient, walk.gradient_t, walk.between
    items, items_t, positions, positions_t = problem.items, problem.items_t, problem.positions, problem.positions_t
    place[r], place[s] = place[s], place[r]
    for i in range(len(place)):
        gradient[i, r], gradient[i, s] = gradient[i, s], gradient[i, r]
        gradient_t[r, i], gradient_t[s, i] = gradient_t[s, i], gradient_t[r, i]
        between[r, i], between[s, i] = between[s, i], between[r, i]
    for i in range(len(place)):
        between[i, r], between[i, s] = between[i, s], between[i, r]
    new, old = place[r], place[s]
    x, y, v, w = buffers[0], buffers[1], buffers[2], buffers[3]
    for i in range(len(place)):
        x[i] = items_t[r, i] - items_t[s, i]
        y[i] = positions_t[new, place[i]] - positions_t[old, place[i]]
        v[i] = items[r, i] - items[s, i]
        w[i] = positions[new, place[i]] - positions[old, place[i]]
    add_rank_two(gradient, x, y, v, w)
    add_rank_two(gradient_t, y, x, w, v)


@kernel
def search(problem: Problem, walk: Walk, rules: Rules, first: int, last: int, buffers: Floats) -> None:
    """Make the steps first..last of the search."""
    place, until, values = walk.place, walk.until, walk.values
    for step in range(first, last):
        all_gains(walk.gradient, walk.gradient_t, walk.between, problem.items_both, buffers[0], walk.gains)
        r, s = choose(walk, rules, step)
        if r < 0:
            continue
        # The cube makes most times short and a few long, which suits both smooth and rugged problems.
        until[r, place[r]] = step + 1 + int(rules.longest * uniform(walk.random) ** 3)
        until[s, place[s]] = step + 1 + int(rules.longest * uniform(walk.random) ** 3)
        values[0] += walk.gains[r, s]
        swap(problem, walk, r, s, buffers)
        if values[0] > values[1] + rules.tolerance:
            values[1] = values[0]
            walk.best_place[:] = place
