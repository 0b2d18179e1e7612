"""L-BFGS for a smooth convex objective with a ridge, and what its last gradient proves.

    P(w) = lambda/2 |w|^2 + L(w) ,      P(w*) >= P(w) - |grad P(w)|^2 / (2 lambda)

A ridge that is not the same for all parameters, ``lambda/2 |root w|^2``, is one in the coordinates ``root w``.

The bound holds for any strongly convex P, so a small gradient is a certificate, and ends the search. At a kink, which
only a P that is not quite smooth has, the gradient stays large and the steps get short: a step that gains next to
nothing ends the search too, and the gap that is left is a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import optimize

from slatewise.core.arrays import Floats
from slatewise.core.numerics.replay import replayed
from slatewise.core.numerics.result import Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread

_STALLED = 1e-6
"""A step that gains no more than this share of ``tol`` is the last."""


class SmoothObjective(Protocol):
    """A convex function with a gradient."""

    @property
    def n_params(self) -> int:
        """Length of the parameter vector."""
        ...

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient."""
        ...


def minimize(
    objective: SmoothObjective,
    ridge: float,
    start: Floats,
    *,
    weight: float = 1.0,
    root: Floats | float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 500,
    callback: Callable[[Round], None] | None = None,
    easier: str = "l2",
) -> Fit:
    """Minimize P, with ``ridge`` for lambda, until the relative certified gap is at most ``tol``.

    ``weight`` and ``root``: P is ``lambda/2 |root w|^2 + weight L(w)``, with one root per parameter or for all.
    ``easier``: what a warning of a larger gap advises, in the caller's parameters.
    """
    seen: list[tuple[Floats, float, Floats]] = []
    history: list[Round] = []
    reported: list[Floats] = []

    def weighted(u: Floats) -> tuple[float, Floats]:
        value, gradient = objective.value_and_grad(u / root)
        return weight * value, weight * gradient / root

    oracle = replayed(weighted)

    def penalised(w: Floats) -> tuple[float, Floats]:
        if not seen or not np.array_equal(seen[0][0], w):
            value, gradient = oracle(w)
            seen[:] = [(w.copy(), value + 0.5 * ridge * float(w @ w), gradient + ridge * w)]
        return seen[0][1], seen[0][2]

    def certified(w: Floats) -> bool:
        value, gradient = penalised(w)
        reported[:] = [w.copy()]
        history.append(Round(len(history) + 1, value, value - float(gradient @ gradient) / (2.0 * ridge)))
        if callback is not None:
            callback(history[-1])
        return history[-1].gap <= tol

    def stop_when_certified(xk: Floats) -> None:
        if certified(xk) or stalled():
            raise StopIteration

    def stalled() -> bool:
        last = history[-1].objective
        return len(history) > 1 and 0.0 <= history[-2].objective - last <= _STALLED * tol * abs(last)

    w = root * start
    with one_blas_thread():
        if not certified(w):
            found = optimize.minimize(
                penalised,
                w,
                jac=True,
                method="L-BFGS-B",
                callback=stop_when_certified,
                options={"maxiter": max_iter, "ftol": 0.0, "gtol": 0.0},
            )
            w = np.asarray(found.x, dtype=np.float64)
            if history[-1].gap > tol and not np.array_equal(reported[0], w):
                certified(w)  # the search may end at another point than the last one that it reported
    last = history[-1]
    warn_unless_converged(last.gap <= tol, last.gap, tol, last.round, easier)
    return Fit(w / root, last.objective, last.lower_bound, last.gap <= tol, tuple(history))
