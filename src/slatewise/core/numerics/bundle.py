"""One-slack cutting planes: a certified minimizer of  1/2 sum_i r_i w_i^2 + C R(w)  for any convex risk R >= 0.

Each round the risk gives one cut, ``R(w) >= offset + gradient . w``, exact at the point it was made. The cuts so far
bound the objective from below; minimizing that bound is a small quadratic program in the dual,

    max over alpha >= 0, sum alpha <= C of   offsets . alpha - 1/2 alpha' K alpha ,     K_jk = sum_i g_ji g_ki / r_i ,

whose value at *any* feasible alpha is a lower bound, however well the program was solved. There is no C in a cut: the
same cuts serve a whole path of C.

With d parameters at most d + 1 cuts define the minimum; the quadratic program over all cuts of many rounds is slow, and
of rank d. :class:`ActiveCuts` drops a cut that had no weight in many programs in a row. The rest is still a lower
bound, and the learner keeps the best bound of all rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats
from slatewise.core.numerics.replay import replayed
from slatewise.core.numerics.result import Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread


class CutObjective(Protocol):
    """A convex risk that is linear between kinks."""

    def cut(self, w: Floats) -> tuple[float, Floats]:
        """Return (offset, gradient) with risk(w) = offset + gradient . w, and a bound from below everywhere else."""
        ...


class Cuts:
    """Cuts gathered so far, with their inner products; reusable for any C."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.gradients = np.empty((0, len(weights)))
        self.offsets = np.empty(0)
        self.products = np.empty((0, 0))

    def add(self, offset: float, gradient: Floats) -> None:
        """Append one cut."""
        column = self.gradients @ (gradient / self.weights)
        corner = float(gradient @ (gradient / self.weights))
        self.products = np.block([[self.products, column[:, None]], [column[None, :], np.array([[corner]])]])
        self.gradients = np.vstack([self.gradients, gradient])
        self.offsets = np.append(self.offsets, offset)

    def best_weights(self, C: float) -> tuple[NDArray[np.float64], float]:
        """Return a feasible alpha, close to the best, and the lower bound it proves.

        The solver's tolerances are absolute, so the program is posed in ``alpha / unit`` and divided by ``unit`` times
        the largest offset: no number in it then grows or vanishes with the scale of the features or of C.
        """
        import daqp  # only here: oracles and their sums do without

        size = len(self.offsets)
        largest = float(np.abs(self.offsets).max()) or 1.0
        unit = largest / max(float(self.products.diagonal().max()), largest / C)
        products = self.products * (unit / largest)
        ridge = 1e-12 * max(float(np.trace(products)), 1e-3)
        solution = daqp.solve(
            products + ridge * np.eye(size),
            -self.offsets / largest,
            np.ones((1, size)),
            np.full(size + 1, C / unit),
            np.zeros(size + 1),
        )[0]
        alpha = unit * np.maximum(np.nan_to_num(solution), 0.0)
        alpha *= min(1.0, C / max(float(alpha.sum()), 1e-300))
        return alpha, float(self.offsets @ alpha - 0.5 * alpha @ self.products @ alpha)

    def minimizer(self, alpha: NDArray[np.float64]) -> Floats:
        """Return the parameters that belong to alpha."""
        return -(alpha @ self.gradients) / self.weights


def one_slack(
    objective: CutObjective,
    cuts: Cuts,
    C: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    callback: Callable[[Round], None] | None = None,
    easier: str = "lower C",
) -> Fit:
    """Minimize to a relative gap of ``tol``; the parameters returned are the best ones seen.

    ``easier``: what a warning of a larger gap advises, in the caller's parameters.
    """
    best, best_objective, bound = np.zeros(len(cuts.weights)), np.inf, -np.inf
    history: list[Round] = []
    cut, converged = replayed(objective.cut), False
    while not converged and len(history) < max_iter:
        w = best
        if len(cuts.offsets):
            alpha, proven = cuts.best_weights(C)
            bound = max(bound, proven)
            w = cuts.minimizer(alpha)
        offset, gradient = cut(w)
        value = 0.5 * float(w @ (cuts.weights * w)) + C * (offset + float(gradient @ w))
        cuts.add(offset, gradient)
        if value < best_objective:
            best, best_objective = w, value
        bound = max(bound, 0.0)
        history.append(Round(len(history) + 1, best_objective, bound))
        if callback is not None:
            callback(history[-1])
        converged = history[-1].gap <= tol
    warn_unless_converged(converged, history[-1].gap, tol, len(history), easier)
    return Fit(best, best_objective, bound, converged, tuple(history))


def with_ridge(
    objective: CutObjective,
    cuts: Cuts,
    l2: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    callback: Callable[[Round], None] | None = None,
) -> Fit:
    """Minimize ``l2/2 |w|^2 + R(w)``: the same problem divided by l2, reported in its own unit."""

    def rescaled(found: Round) -> Round:
        return Round(found.round, l2 * found.objective, l2 * found.lower_bound)

    def report(found: Round) -> None:
        if callback is not None:
            callback(rescaled(found))

    with one_blas_thread():
        fit = one_slack(objective, cuts, 1.0 / l2, tol=tol, max_iter=max_iter, callback=report, easier="l2")
    history = tuple(rescaled(found) for found in fit.history)
    return Fit(fit.params, l2 * fit.objective, l2 * fit.lower_bound, fit.converged, history)


_PATIENCE = 50


class ActiveCuts(Cuts):
    """The cuts so far, except those without weight in the last fifty programs."""

    def __init__(self, weights: Floats) -> None:
        super().__init__(weights)
        self._idle = np.zeros(0, dtype=np.int64)

    def best_weights(self, C: float) -> tuple[NDArray[np.float64], float]:
        """Return a feasible alpha of the cuts kept, and the lower bound it proves."""
        alpha, bound = super().best_weights(C)
        idle = np.append(self._idle, np.zeros(len(alpha) - len(self._idle), dtype=np.int64))
        idle = np.where(alpha > 1e-9 * C, 0, idle + 1)
        kept = idle < _PATIENCE
        self._idle, self.offsets, self.gradients = idle[kept], self.offsets[kept], self.gradients[kept]
        self.products = self.products[np.ix_(kept, kept)]
        return alpha[kept], bound
