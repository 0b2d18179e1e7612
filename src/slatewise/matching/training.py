"""Training a ranker by matchings:  min over theta of  l2/2 |theta|^2 + mean loss ,  repeated over draws and averaged.

The loss is a likelihood (L-BFGS; its gradient is the certificate) or a hinge (cutting planes). RankMatch draws its
slates at random, so the fit is repeated over several draws and theta averaged. An l2 is chosen by the loss on lists
that were left out: unlike a measure of the ranking it changes smoothly, and few lists are enough to choose by.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.groups import mean_within_list_variance
from slatewise.core.numerics.bundle import ActiveCuts, CutObjective, Cuts, with_ridge
from slatewise.core.numerics.lbfgs import SmoothObjective, minimise
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round
from slatewise.core.running.blas import one_blas_thread
from slatewise.matching.slates import RatedLists

STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""l2 over the mean squared distance of a row from the centre of its list."""
FOLDS = 5
Callback: TypeAlias = Callable[[Round], None]


class Problem(ABC):
    """A loss on some lists, to be minimized or only measured."""

    @abstractmethod
    def fit(
        self, l2: float, tol: float, max_iter: int, start: Floats | None = None, callback: Callback | None = None
    ) -> Fit:
        """Minimise l2/2 |theta|^2 + loss to a certified relative gap of ``tol``; ``start`` may save iterations."""

    @abstractmethod
    def loss(self, params: Floats) -> float:
        """Return the loss without the regularizer."""


MakeProblem: TypeAlias = Callable[[RatedLists, np.random.Generator], Problem]
"""Makes a problem of lists, with the randomness of their slates."""


@dataclass(frozen=True, eq=False)
class SmoothProblem(Problem):
    """A likelihood."""

    objective: SmoothObjective
    convex: bool = True

    def fit(
        self, l2: float, tol: float, max_iter: int, start: Floats | None = None, callback: Callback | None = None
    ) -> Fit:
        """Minimise; where the likelihood is not convex only 0 is a proven bound, and a small gradient ends it."""
        if not self.convex:
            warnings.warn(
                "ties='marginal' with weights that fall inside a rating is not convex: the fit may be a local optimum; "
                "position_weights='rating' and ties='random' are convex",
                UserWarning,
                stacklevel=2,
            )
        first = np.zeros(self.objective.n_params) if start is None else start
        fit = minimise(self.objective, l2, first, tol=tol, max_iter=max_iter, callback=callback)
        bound = max(0.0, fit.lower_bound) if self.convex else 0.0
        return replace(fit, lower_bound=bound, converged=fit.converged and self.convex)

    def loss(self, params: Floats) -> float:
        """Return the mean of -log p."""
        return self.objective.value_and_grad(params)[0]


@dataclass(frozen=True, eq=False)
class HingeProblem(Problem):
    """A hinge; its cuts serve every l2."""

    objective: CutObjective
    n_params: int
    cuts: Cuts = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", ActiveCuts(np.ones(self.n_params)))

    def fit(
        self, l2: float, tol: float, max_iter: int, start: Floats | None = None, callback: Callback | None = None
    ) -> Fit:
        """Minimise by cutting planes, which start from the cuts there are."""
        del start
        return with_ridge(self.objective, self.cuts, l2, tol=tol, max_iter=max_iter, callback=callback)

    def loss(self, params: Floats) -> float:
        """Return the mean hinge."""
        offset, gradient = self.objective.cut(params)
        return offset + float(gradient @ params)


def averaged_fit(
    make_problem: MakeProblem,
    lists: RatedLists,
    l2: float,
    repeats: int,
    random_state: int,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Fit:
    """Solve one problem per repeat and take the mean theta; its objective and the bound are means over the problems."""
    problems = [make_problem(lists, np.random.default_rng([random_state, repeat])) for repeat in range(repeats)]
    fits = [problem.fit(l2, tol, max_iter, None, callback) for problem in problems]
    params = np.mean([fit.params for fit in fits], axis=0)
    with one_blas_thread():
        risk = float(np.mean([problem.loss(params) for problem in problems]))
    return Fit(
        params,
        0.5 * l2 * float(params @ params) + risk,
        float(np.mean([fit.lower_bound for fit in fits])),
        all(fit.converged for fit in fits),
        max((fit.history for fit in fits), key=len),
    )


def choose_l2(make_problem: MakeProblem, lists: RatedLists, random_state: int, tol: float, max_iter: int) -> float:
    """Return the strength with the smallest mean loss over folds of the lists; the larger one among equals."""
    if len(lists) < 2:
        raise ValueError(f"l2: expected a number where there is one list to learn from, found 'auto' and {len(lists)}")
    unit = mean_within_list_variance(lists.X, lists.offsets) or 1.0
    strengths = [strength * unit for strength in STRENGTHS]
    part = np.random.default_rng(random_state).permutation(len(lists)) % FOLDS
    losses = np.zeros(len(strengths))
    for fold in range(min(FOLDS, len(lists))):
        inner, held_out = (lists.part(np.flatnonzero(chosen)) for chosen in (part != fold, part == fold))
        path = held_out_path(make_problem, inner, held_out, strengths, random_state, tol, max_iter)
        losses += float(held_out.weights.sum()) * np.array([loss for loss, _ in path])
    return strengths[int(np.argmin(losses))]


def held_out_path(
    make_problem: MakeProblem,
    lists: RatedLists,
    held_out: RatedLists,
    strengths: Sequence[float],
    random_state: int,
    tol: float,
    max_iter: int,
) -> list[tuple[float, Floats]]:
    """Return, for each of falling l2, the loss on the lists left out and theta; a fit starts where the last ended."""
    problem = make_problem(lists, np.random.default_rng([random_state, 0]))
    held_out_problem = make_problem(held_out, np.random.default_rng([random_state, 1]))
    found: list[tuple[float, Floats]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for l2 in strengths:
            params = problem.fit(l2, tol, max_iter, found[-1][1] if found else None).params
            found.append((held_out_problem.loss(params), params))
    return found
