"""Solvers of a regularized c-star hinge R (:mod:`slatewise.cstar.margin.problem`).

    P(w) = 1/2 |W|^2 + rho/2 |G|^2 + C R(w)

bcfw: block-coordinate Frank-Wolfe with cached argmaxes, certified. Each epoch goes through the lists in random order, a
small batch at a time: one loss-augmented inference per list adds a corner to the list's cache, then pair steps
re-balance the weights of its corners (``kernels/bcfw.py``). Epochs over the caches alone follow while they still pay:
they need no inference. The dual value is a lower bound on P at any moment; the objective comes from one pass of
inference over all lists. After Lacoste-Julien et al. 2013, and Shah, Kolmogorov and Lampert 2015 for the caches.

bundle: one-slack cutting planes (:mod:`slatewise.core.numerics.bundle`), certified.

subgradient: averaged adaptive steps, a few passes, no inner problem, no lower bound.

    w <- w - step / sqrt(sum of squared gradients so far) * (r w + C g_batch) ,      result: the mean of the last half

Its objective at the mean is reported with the trivial bound 0, so such a fit never claims to have converged; use it for
a first look, or if inference is too slow for the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.bundle import Cuts, one_slack
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread
from slatewise.cstar.kernels.layout import CornerCache, DualTerms
from slatewise.cstar.margin.problem import StarHinge, StarProblem

Solver: TypeAlias = "Callable[[StarHinge, Settings, Start | None], Fit]"
Tell: TypeAlias = "Callable[[Round, DualState | None], None]"


@dataclass(frozen=True)
class Settings:
    """Settings of every solver; ``rho = C / C_pair`` weighs the regularizer of G."""

    C: float
    rho: float
    tol: float
    max_iter: int
    random_state: int
    callback: Tell | None = None
    """Called with every certified round, and the state after it if the solver has one."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where to continue: a state of the dual, and the round it was kept after, if that was of the same problem."""

    state: DualState
    after: Round | None = None


def regularizer_weights(problem: StarProblem, rho: float) -> Floats:
    """1 for W, rho for G."""
    weights = np.ones(problem.n_params)
    problem.unpack(weights)[1][:] = rho
    return weights


# --- block-coordinate Frank-Wolfe -------------------------------------------------------------------------------------

BATCH = 64
"""Lists that share one inference call: larger is faster per list, but later ones see older parameters."""
CACHE = 16
"""Corners kept per list at first; doubled when all corners of a list are in use."""
MAX_CACHED_EPOCHS = 40
STEPS = 8
"""Pair steps per list and pass."""


@dataclass(eq=False)
class DualState:
    """The state of the learner: parameters, and the corners and weights of every list."""

    params: Floats
    corners: NDArray[np.int32]
    corner_loss: Floats
    alpha: Floats
    count: Ints

    @classmethod
    def start(cls, hinge: StarHinge) -> DualState:
        """All weight on the target: w = 0."""
        n, longest = hinge.problem.n_lists, int(hinge.problem.target.shape[1])
        state = cls(
            np.zeros(hinge.problem.n_params),
            np.full((n, CACHE, longest), -1, dtype=np.int32),
            np.zeros((n, CACHE)),
            np.zeros((n, CACHE)),
            np.ones(n, dtype=np.int64),
        )
        state.corners[:, 0] = hinge.problem.target
        state.corner_loss[:, 0] = hinge.target_loss()
        state.alpha[:, 0] = 1.0
        return state

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Name the arrays of a checkpoint."""
        return dict(vars(self))

    def cache(self) -> CornerCache:
        """Return the corners and weights as the kernels take them."""
        return CornerCache(self.corners, self.corner_loss, self.alpha, self.count)

    def grow(self) -> None:
        """Double the caches if a list is full of corners that all carry weight, so that it could not add one."""
        full = self.count == self.alpha.shape[1]
        if not full.any() or not (self.alpha[full] > 0).all(axis=1).any():
            return
        more = self.alpha.shape[1]
        self.corners = np.pad(self.corners, ((0, 0), (0, more), (0, 0)), constant_values=-1)
        self.corner_loss = np.pad(self.corner_loss, ((0, 0), (0, more)))
        self.alpha = np.pad(self.alpha, ((0, 0), (0, more)))

    def rescale(self, factor: float) -> None:
        """Continue with another C: the parameters are C times a sum over the weights."""
        self.params *= factor


def bcfw(hinge: StarHinge, settings: Settings, start: Start | None = None) -> Fit:
    """Minimize P to a relative gap of ``settings.tol`` by block-coordinate Frank-Wolfe.

    The order of the lists in epoch e depends on ``random_state`` and e only, so a run continued from the state after a
    round takes the same steps as one that was never interrupted.
    """
    state = DualState.start(hinge) if start is None else start.state
    after = None if start is None else start.after
    C, tol, max_iter = settings.C, settings.tol, settings.max_iter
    dual = _Dual(hinge, C * hinge.problem.weight, settings.rho, state)
    history = [] if after is None else [after]
    gap, epoch, next_check = (np.inf, 0, 0) if after is None else (after.gap, after.round, _next_check(after, tol))
    with one_blas_thread():
        while gap > tol and epoch < max_iter:
            rng = np.random.default_rng((settings.random_state, epoch))
            dual.epoch(rng, min(3 + epoch // 8, MAX_CACHED_EPOCHS))
            epoch += 1
            if epoch < next_check and epoch < max_iter:
                continue
            history.append(Round(epoch, dual.objective(C), dual.lower_bound()))
            gap = history[-1].gap
            next_check = _next_check(history[-1], tol)
            if settings.callback is not None:
                settings.callback(history[-1], state)
    last = history[-1]
    warn_unless_converged(gap <= tol, gap, tol, epoch)
    return Fit(state.params.copy(), last.objective, last.lower_bound, bool(gap <= tol), tuple(history), state)


def _next_check(last: Round, tol: float) -> int:
    """Return the next epoch to certify: a certificate costs about an epoch, so rarely while the gap is wide."""
    return last.round + (1 if last.gap < 4 * tol else 2 if last.gap < 16 * tol else 4)


class _Dual:
    """The dual problem of one fit: the arrays that the kernels change in place."""

    def __init__(self, hinge: StarHinge, c: Floats, rho: float, state: DualState) -> None:
        self.hinge, self.state = hinge, state
        problem = hinge.problem
        self.W, self.G = problem.unpack(state.params)
        self.terms = DualTerms(
            problem.phi,
            problem.shared,
            np.einsum("nd,nd->n", problem.phi, problem.phi),
            np.empty((0, 0)) if problem.offset is None else problem.offset,
            problem.k,
            problem.core_of,
            c,
            rho,
        )

    def epoch(self, rng: np.random.Generator, cached: int) -> None:
        from slatewise.cstar.kernels.bcfw import add_corners

        self.state.grow()
        order = rng.permutation(len(self.terms.k))
        first = 0.0
        for start in range(0, len(order), BATCH):
            lists = order[start : start + BATCH]
            found = self.hinge.corners(self.W, self.hinge.problem.star_pair(self.G), lists)
            add_corners(lists, self.terms.k, found.selected, found.loss, self.state.cache())
            first += self._solve(lists)
        for _ in range(cached):
            if self._solve(rng.permutation(len(self.terms.k))) < 0.1 * first:
                break

    def _solve(self, lists: Ints) -> float:
        from slatewise.cstar.kernels.bcfw import solve_lists

        return solve_lists(lists, STEPS, self.terms, self.W, self.G, self.state.cache())

    def objective(self, C: float) -> float:
        return self._regularizer() + C * self.hinge.risk(self.state.params)

    def lower_bound(self) -> float:
        """The dual value: sum of c_m alpha_m(t) (loss(t) - offset . (target - t)) minus the regularizer."""
        state, offset = self.state, self.hinge.problem.offset
        gain = state.corner_loss.copy()
        if offset is not None:
            items = np.maximum(state.corners, 0)
            fixed = np.take_along_axis(offset[:, None, :], items, axis=2)
            fixed = np.where(state.corners < 0, 0.0, fixed).sum(axis=2)
            gain += fixed - fixed[:, :1]
        return float(self.terms.c @ (state.alpha * gain).sum(axis=1)) - self._regularizer()

    def _regularizer(self) -> float:
        return 0.5 * float(np.vdot(self.W, self.W)) + 0.5 * self.terms.rho * float(np.vdot(self.G, self.G))


# --- cutting planes ---------------------------------------------------------------------------------------------------


def bundle(hinge: StarHinge, settings: Settings, start: Start | None = None) -> Fit:
    """Minimize P by one-slack cutting planes."""
    del start  # this solver keeps no state
    callback = settings.callback
    return one_slack(
        hinge,
        Cuts(regularizer_weights(hinge.problem, settings.rho)),
        settings.C,
        tol=settings.tol,
        max_iter=settings.max_iter,
        callback=None if callback is None else lambda found: callback(found, None),
    )


# --- subgradient steps ------------------------------------------------------------------------------------------------

SUBGRADIENT_BATCH = 32


def subgradient(hinge: StarHinge, settings: Settings, start: Start | None = None, step: float = 0.1) -> Fit:
    """Take ``settings.max_iter`` passes over the lists: quick, without a lower bound."""
    del start  # this solver keeps no state
    weights, C, max_iter = regularizer_weights(hinge.problem, settings.rho), settings.C, settings.max_iter
    w, mean, squares = np.zeros(len(weights)), np.zeros(len(weights)), np.full(len(weights), 1e-12)
    averaged = 0
    with one_blas_thread():
        for epoch in range(max_iter):
            order = np.random.default_rng((settings.random_state, epoch)).permutation(hinge.problem.n_lists)
            for first in range(0, len(order), SUBGRADIENT_BATCH):
                lists = np.sort(order[first : first + SUBGRADIENT_BATCH])
                gradient = weights * w + C * hinge.part(lists).cut(w)[1]
                squares += gradient**2
                w -= step * gradient / np.sqrt(squares)
                if 2 * epoch >= max_iter:
                    averaged += 1
                    mean += (w - mean) / averaged
        objective = 0.5 * float(mean @ (weights * mean)) + C * hinge.risk(mean)
    last = Round(max_iter, objective, 0.0)
    warnings.warn(
        f"subgradient steps prove no bound: after {max_iter} passes the objective is {objective:.6g}, at an unknown "
        "distance from the minimum; solver='bcfw' and 'bundle' certify theirs",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Fit(mean, objective, 0.0, False, (last,))


SOLVERS: dict[str, Solver] = {"bcfw": bcfw, "bundle": bundle, "subgradient": subgradient}
