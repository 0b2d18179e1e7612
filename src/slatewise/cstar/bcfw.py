"""Block-coordinate Frank-Wolfe with cached argmaxes: a certified minimiser of a regularized c-star hinge.

The objective is::

    P(w) = 1/2 |W|^2 + rho/2 |G|^2 + C R(w)

Each epoch visits the lists in random order, a small batch at a time: one loss-augmented inference per list adds a
corner to the list's cache, then pair steps re-balance the weights of its corners (``kernels/bcfw.py``).
Epochs over the caches alone follow while they still pay: they need no inference. The dual value is a lower bound on
P at any moment; the objective comes from one pass of inference over all lists.

After Lacoste-Julien et al. 2013, and Shah, Kolmogorov and Lampert 2015 for the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.result import Fit, Round, warn_unless_converged
from slatewise.core.running.blas import one_blas_thread
from slatewise.cstar.hinge import StarHinge
from slatewise.cstar.kernels.layout import CornerCache, DualTerms

BATCH = 64
"""Lists that share one inference call: larger is faster per list, but later ones see older parameters."""
CACHE = 16
"""Corners kept per list at first; doubled when a list needs all of its own."""
MOST_CACHED_EPOCHS = 40
STEPS = 8
"""Pair steps per visit."""


@dataclass(eq=False)
class DualState:
    """Everything the learner needs to go on: parameters, and the corners and weights of every list."""

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
        """Double the caches if a list is full of corners that all carry weight: it could not go on."""
        full = self.count == self.alpha.shape[1]
        if not full.any() or not (self.alpha[full] > 0).all(axis=1).any():
            return
        more = self.alpha.shape[1]
        self.corners = np.pad(self.corners, ((0, 0), (0, more), (0, 0)), constant_values=-1)
        self.corner_loss = np.pad(self.corner_loss, ((0, 0), (0, more)))
        self.alpha = np.pad(self.alpha, ((0, 0), (0, more)))

    def rescale(self, factor: float) -> None:
        """Go on with another C: the parameters are C times a sum over the weights."""
        self.params *= factor


def bcfw(
    hinge: StarHinge,
    C: float,
    rho: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 500,
    random_state: int = 0,
    state: DualState | None = None,
    after: Round | None = None,
    callback: Callable[[Round, DualState], None] | None = None,
) -> Fit:
    """Minimise P to a relative gap of ``tol``.

    The order of the lists in epoch e depends on ``random_state`` and e only, so a run continued from the ``state``
    ``after`` a round takes the same steps as one that was never interrupted.
    """
    state = DualState.start(hinge) if state is None else state
    visit = _Visit(hinge, C * hinge.problem.weight, rho, state)
    history = [] if after is None else [after]
    gap, epoch, next_check = (np.inf, 0, 0) if after is None else (after.gap, after.round, _next_check(after, tol))
    with one_blas_thread():
        while gap > tol and epoch < max_iter:
            rng = np.random.default_rng((random_state, epoch))
            visit.epoch(rng, min(3 + epoch // 8, MOST_CACHED_EPOCHS))
            epoch += 1
            if epoch < next_check and epoch < max_iter:
                continue
            history.append(Round(epoch, visit.objective(C), visit.lower_bound()))
            gap = history[-1].gap
            next_check = _next_check(history[-1], tol)
            if callback is not None:
                callback(history[-1], state)
    last = history[-1]
    warn_unless_converged(gap <= tol, gap, tol, epoch)
    return Fit(state.params.copy(), last.objective, last.lower_bound, bool(gap <= tol), tuple(history), state)


def _next_check(last: Round, tol: float) -> int:
    """A certificate costs about an epoch: look rarely while the gap is wide."""
    return last.round + (1 if last.gap < 4 * tol else 2 if last.gap < 16 * tol else 4)


class _Visit:
    """One learner's view of the arrays that the kernels change in place."""

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
