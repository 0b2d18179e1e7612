"""L-BFGS for a smooth convex objective with a ridge, and what its last gradient proves.

    P(w) = lambda/2 |w|^2 + L(w) ,      P(w*) >= P(w) - |grad P(w)|^2 / (2 lambda)

The bound holds for any strongly convex P, so a small gradient is a certificate.
"""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise import parallel
from slatewise.learners.result import Fit, Params, Round, warn_unless_converged


class SmoothObjective(Protocol):
    """A convex function with a gradient."""

    @property
    def n_params(self) -> int:
        """Length of the parameter vector."""
        ...

    def value_and_grad(self, params: Params) -> tuple[float, Params]:
        """Return the value and the gradient."""
        ...


def lbfgs(objective: SmoothObjective, ridge: float = 1.0, *, tol: float = 1e-3, max_iter: int = 500) -> Fit:
    """Minimise P to a relative certified gap of ``tol``."""

    def penalised(w: Params) -> tuple[float, Params]:
        value, gradient = objective.value_and_grad(w)
        return value + 0.5 * ridge * float(w @ w), gradient + ridge * w

    with parallel.one_blas_thread():
        found = fmin_l_bfgs_b(penalised, np.zeros(objective.n_params), maxiter=max_iter, pgtol=0.0, factr=10.0)
        w = cast("Params", found[0])
        value, gradient = penalised(w)
    rounds = int(found[2]["nit"])
    last = Round(rounds, value, value - float(gradient @ gradient) / (2.0 * ridge))
    warn_unless_converged(last.gap <= tol, last.gap, tol, rounds)
    return Fit(w, last.objective, last.lower_bound, bool(last.gap <= tol), (last,))
