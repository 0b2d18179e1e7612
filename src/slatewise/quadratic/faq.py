"""Fast approximate quadratic ranking: Frank-Wolfe on doubly stochastic matrices, with a linear term.

    maximise f(P) = <L, P> + <F, P D P'>  over P >= 0 with rows and columns that sum to 1

Each step solves the assignment of the gradient, Q = argmax <G, Q> with G = L + F P D' + F' P D, and moves to the best
point between P and Q; f is quadratic on the way, so that point is known. At the end the assignment of P itself is the
ranking (Vogelstein et al. 2015, there without a linear term).
"""

from __future__ import annotations

import time

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.assignment import best_assignment
from slatewise.quadratic.form import QuadraticForm

_MOST_STARTS, _MOST_STEPS, _SINKHORN_ROUNDS = 10, 30, 10


def best_of_starts(form: QuadraticForm, rng: np.random.Generator, enough: float, deadline: float) -> Ints:
    """Run from the centre and from random matrices, until the score is ``enough`` or the clock passes the deadline."""
    # An assignment costs N^3 and more, so long lists have to do with fewer starts, and then with fewer steps.
    starts = max(1, min(_MOST_STARTS, 2_000_000 // form.n**3))
    steps = max(3, min(_MOST_STEPS, 1_000_000_000 // form.n**3))
    best = by_frank_wolfe(form, centre(form.n), steps, deadline)
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
        step = _permutation_matrix(best_assignment(gradient)) - matrix
        slope = float(np.vdot(gradient, step))
        if slope <= tolerance:
            break
        curvature = form.curvature(step)
        length = min(1.0, -0.5 * slope / curvature) if curvature < 0.0 else 1.0
        matrix = matrix + length * step
        if time.monotonic() > deadline:
            break
    return best_assignment(matrix)


def centre(n: int) -> Floats:
    """Return the matrix that prefers no ranking."""
    return np.full((n, n), 1.0 / n)


def random_start(n: int, rng: np.random.Generator) -> Floats:
    """Return a point half-way between the centre and a random, nearly doubly stochastic matrix."""
    matrix = rng.random((n, n))
    for _ in range(_SINKHORN_ROUNDS):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    return (matrix + 1.0 / n) / 2.0


def _permutation_matrix(order: Ints) -> Floats:
    matrix = np.zeros((len(order), len(order)))
    matrix[order, np.arange(len(order))] = 1.0
    return matrix
