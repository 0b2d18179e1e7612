"""Solvers of quadratic ranking: exact ones for few items or a special D, Frank-Wolfe (FAQ), and tabu search from there.

*Exact*: all rankings of few items, or all subsets if D depends on the later position only,

    D[p, q] = after[p],  D[q, p] = before[p]    for all q < p

which holds for average precision (1 / (p + 1), Mensink et al. 2011), Kemeny's rule (1 above the diagonal, 0 below) and
the block of a top k (1 if both positions are in it). Recursions: ``kernels/exact.py``.

*FAQ* (Vogelstein et al. 2015, there without a linear term):

    maximize f(P) = <L, P> + <F, P D P'>  over P >= 0 with rows and columns that sum to 1

Each step solves the assignment of the gradient, Q = argmax <G, Q> with G = L + F P D' + F' P D, and moves to the best
point between P and Q; f is quadratic on the way, so that point is known. At the end the assignment of P itself is the
ranking.

*Tabu* search in rounds: each starts from the best ranking so far with a few items moved around. The steps inside a
round are ``kernels/tabu.py``.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.assignment import best_assignment, inverse
from slatewise.quadratic.form import QuadraticForm
from slatewise.quadratic.kernels.exact import best_of_all_rankings, best_of_all_subsets, subset_sums
from slatewise.quadratic.kernels.tabu import Problem, Rules, Walk, search

MOST_ENUMERATED = 10
MOST_IN_SUBSETS = 25
"""The table of values takes 8 * 2^N bytes."""
_SLICE_WORK = 50_000_000
"""Steps times N^2 between two looks at the clock: some tens of milliseconds."""
_MOST_STARTS, _MOST_STEPS, _SINKHORN_ROUNDS = 10, 30, 10


# --- exact ------------------------------------------------------------------------------------------------------------


class LaterWeights(NamedTuple):
    """What a pair counts by its later position p: D[p, q] and D[q, p] for every q < p."""

    after: Floats
    before: Floats


def later_weights(position_pairs: Floats) -> LaterWeights | None:
    """Return the weights, or None where D does not depend on the later position only."""
    after, before = position_pairs[:, 0].copy(), position_pairs[0].copy()
    n = len(after)
    lower, upper = np.tril_indices(n, -1), np.triu_indices(n, 1)
    same = (position_pairs[lower] == after[lower[0]]).all() and (position_pairs[upper] == before[upper[1]]).all()
    return LaterWeights(after, before) if same else None


def by_enumeration(form: QuadraticForm) -> Ints:
    """Return the best ranking of at most ``MOST_ENUMERATED`` items."""
    if form.n > MOST_ENUMERATED:
        raise ValueError(f"method: 'enumeration' expects at most {MOST_ENUMERATED} items, found {form.n}")
    order = np.empty(form.n, dtype=np.int64)
    best_of_all_rankings(form.linear, form.item_pairs, form.position_pairs, order)
    return order


def by_subsets(form: QuadraticForm) -> Ints:
    """Return the best ranking where D depends on the later position only."""
    if form.n > MOST_IN_SUBSETS:
        raise ValueError(f"method: 'subsets' expects at most {MOST_IN_SUBSETS} items, found {form.n}")
    weights = later_weights(form.position_pairs)
    if weights is None:
        raise ValueError("D: method 'subsets' expects D[p, q] and D[q, p] to be the same for all q < p; they are not")
    half = form.n // 2
    order = np.empty(form.n, dtype=np.int64)
    low, high = _sums(form.item_pairs, slice(0, half)), _sums(form.item_pairs, slice(half, form.n))
    best_of_all_subsets(form.linear, *weights, low, high, np.empty(1 << form.n), order)
    return order


def _sums(item_pairs: Floats, items: slice) -> Floats:
    rows, columns = np.ascontiguousarray(item_pairs[:, items]), np.ascontiguousarray(item_pairs.T[:, items])
    sums = np.empty((1 << rows.shape[1], len(rows), 2))
    subset_sums(rows, columns, sums)
    return sums


# --- search -----------------------------------------------------------------------------------------------------------


def best_of_starts(form: QuadraticForm, rng: np.random.Generator, enough: float, deadline: float) -> Ints:
    """Run from the center and from random matrices, until the score is ``enough`` or the clock passes the deadline."""
    # An assignment costs N^3 and more, so long lists have to do with fewer starts, and then with fewer steps.
    starts = max(1, min(_MOST_STARTS, 2_000_000 // form.n**3))
    steps = max(3, min(_MOST_STEPS, 1_000_000_000 // form.n**3))
    best = by_frank_wolfe(form, np.full((form.n, form.n), 1.0 / form.n), steps, deadline)
    for _ in range(starts - 1):
        if form.score(best) >= enough or time.monotonic() > deadline:
            break
        best = max(best, by_frank_wolfe(form, random_start(form.n, rng), steps, deadline), key=form.score)
    return best


def by_frank_wolfe(form: QuadraticForm, start: Floats, steps: int, deadline: float) -> Ints:
    """Return the ranking that a run from one doubly stochastic matrix ends in."""
    matrix, tolerance = start, form.rounding()
    for _ in range(steps):
        gradient = form.gradient(matrix)
        corner = np.zeros_like(matrix)
        corner[best_assignment(gradient), np.arange(form.n)] = 1.0
        step = corner - matrix
        slope = float(np.vdot(gradient, step))
        if slope <= tolerance:
            break
        curvature = form.curvature(step)
        length = min(1.0, -0.5 * slope / curvature) if curvature < 0.0 else 1.0
        matrix = matrix + length * step
        if time.monotonic() > deadline:
            break
    return best_assignment(matrix)


def random_start(n: int, rng: np.random.Generator) -> Floats:
    """Return a point halfway between the center and a random, nearly doubly stochastic matrix."""
    matrix = rng.random((n, n))
    for _ in range(_SINKHORN_ROUNDS):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    return (matrix + 1.0 / n) / 2.0


def by_tabu(
    form: QuadraticForm, start: Ints, rng: np.random.Generator, enough: float, steps: float, deadline: float
) -> Ints:
    """Improve a ranking until its score is ``enough``, the steps are spent, or the clock passes the deadline."""
    n = form.n
    items, positions = form.item_pairs, form.position_pairs
    items_t, positions_t = np.ascontiguousarray(items.T), np.ascontiguousarray(positions.T)
    problem = Problem(items, items_t, items + items_t, positions, positions_t)
    rules = Rules(8 * n, 2 * n * n, form.rounding())
    best_order, best, idle = start, form.score(start), 0
    order = start
    while best < enough and steps > 0 and time.monotonic() < deadline:
        walk = _walk(form, order, rng)
        steps_now = int(min(10 * n * n, steps))
        _round(problem, walk, rules, steps_now, deadline)
        steps -= steps_now
        found = inverse(walk.best_place)
        score = form.score(found)
        idle += 1
        if score > best + rules.tolerance:
            best_order, best, idle = found, score, 0
        order = _moved(best_order, 3 + idle % max(1, int(0.4 * n)), rng)
    return best_order


def _round(problem: Problem, walk: Walk, rules: Rules, steps: int, deadline: float) -> None:
    """Make the steps, or as many as fit before the deadline."""
    buffers = np.empty((4, len(walk.place)))
    per_slice = max(1, _SLICE_WORK // len(walk.place) ** 2)
    for first in range(0, steps, per_slice):
        search(problem, walk, rules, first, min(first + per_slice, steps), buffers)
        if time.monotonic() > deadline:
            return


def _walk(form: QuadraticForm, order: Ints, rng: np.random.Generator) -> Walk:
    n, place = form.n, inverse(order)
    gradient = np.ascontiguousarray(form.gradient_at(place)[:, place])
    placed = form.position_pairs[np.ix_(place, place)]
    # Every move has its own age at the start, so that forgotten moves are not all forced at once.
    until = -np.arange(n * n).reshape(n, n)
    return Walk(
        place,
        place.copy(),
        values=np.full(2, form.score(order)),
        gradient=gradient,
        gradient_t=gradient.T.copy(),
        between=placed + placed.T,
        gains=np.empty((n, n)),
        until=until,
        random=rng.integers(1, 1 << 63, size=1, dtype=np.uint64),
    )


def _moved(order: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Send ``count`` random items round in a circle."""
    ranks = rng.permutation(len(order))[:count]
    moved = order.copy()
    moved[ranks] = order[np.roll(ranks, 1)]
    return moved
