"""Fast approximate quadratic ranking: Frank-Wolfe on doubly stochastic matrices, with a linear term.

    maximise f(P) = <L, P> + <F, P D P'>  over P >= 0 with rows and columns that sum to 1

Each step solves the assignment of the gradient, Q = argmax <G, Q> with G = L + F P D' + F' P D, and moves to the best
point between P and Q; f is quadratic on the way, so that point is known. At the end the assignment of P itself is the
ranking (Vogelstein et al. 2015, there without a linear term).
"""

from __future__ import annotations

import numpy as np

from slatewise.inference.assignment import best_assignment
from slatewise.inference.quadratic_form import Float, Int, QuadraticForm

_MOST_STEPS = 50
_SINKHORN_ROUNDS = 10


def by_frank_wolfe(form: QuadraticForm, start: Float) -> Int:
    """Return the ranking that a run from one doubly stochastic matrix ends in."""
    matrix, tolerance = start, form.rounding()
    for _ in range(_MOST_STEPS):
        gradient = form.gradient(matrix)
        step = _permutation_matrix(best_assignment(gradient)) - matrix
        slope = float(np.vdot(gradient, step))
        if slope <= tolerance:
            break
        curvature = form.curvature(step)
        length = min(1.0, -0.5 * slope / curvature) if curvature < 0.0 else 1.0
        matrix = matrix + length * step
    return best_assignment(matrix)


def centre(n: int) -> Float:
    """Return the matrix that prefers no ranking."""
    return np.full((n, n), 1.0 / n)


def random_start(n: int, rng: np.random.Generator) -> Float:
    """Return a point half-way between the centre and a random, nearly doubly stochastic matrix."""
    matrix = rng.random((n, n))
    for _ in range(_SINKHORN_ROUNDS):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    return (matrix + 1.0 / n) / 2.0


def _permutation_matrix(order: Int) -> Float:
    matrix = np.zeros((len(order), len(order)))
    matrix[order, np.arange(len(order))] = 1.0
    return matrix
