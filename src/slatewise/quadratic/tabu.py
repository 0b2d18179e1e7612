"""Robust tabu search in rounds: each starts from the best ranking so far with a few items moved around.

The steps inside a round are ``kernels/tabu.py``.
"""

from __future__ import annotations

import time

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.numerics.assignment import inverse
from slatewise.quadratic.form import QuadraticForm
from slatewise.quadratic.kernels.tabu import Problem, Rules, Walk, search

_SLICE_WORK = 50_000_000
"""Steps times N^2 between two looks at the clock: some tens of milliseconds."""


def default_steps(n: int) -> int:
    """Return how many steps are spent where no time limit is given: half a second or so from 30 items on."""
    return max(1000, min(10_000 * n, 400_000_000 // n**2))


def by_tabu(
    form: QuadraticForm, start: Ints, rng: np.random.Generator, enough: float, steps: float, deadline: float
) -> Ints:
    """Improve a ranking until its score is ``enough``, the steps are spent, or the clock passes the deadline."""
    n = form.n
    problem, rules = _problem(form), Rules(8 * n, 2 * n * n, form.rounding())
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


def _problem(form: QuadraticForm) -> Problem:
    items, positions = form.item_pairs, form.position_pairs
    items_t, positions_t = np.ascontiguousarray(items.T), np.ascontiguousarray(positions.T)
    return Problem(items, items_t, items + items_t, positions, positions_t)


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
