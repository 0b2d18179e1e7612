"""Training a ranker by matchings:  min over theta of  l2/2 |theta|^2 + mean loss ,  repeated over draws and averaged.

The loss is a likelihood (L-BFGS; its gradient is the certificate) or a hinge (cutting planes), of slates or of whole
lists. RankMatch draws its slates at random, so the fit is repeated over several draws and theta averaged. An l2 is
chosen by the loss on held-out lists: unlike a measure of the ranking it changes smoothly, and few lists are enough to
choose by.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.groups import mean_within_list_variance
from slatewise.core.numerics.bundle import ActiveCuts, Cuts, with_ridge
from slatewise.core.numerics.lbfgs import minimize
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.numerics.strengths import Step, random_folds, search_path
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockObjective
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.slates.hinge import slate_hinge, whole_hinge
from slatewise.matching.slates.likelihood import find_ties, slate_likelihood, whole_likelihood
from slatewise.matching.slates.slates import Draw, RatedLists, make_slates

STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""l2 over the mean squared distance of a row from the center of its list."""
FOLDS = 5
Callback: TypeAlias = Callable[[Round], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on some lists, to be minimized or only measured."""

    objective: BlockObjective
    cuts: Cuts | None = None
    """Of a hinge: those of earlier fits, which serve every l2. None: the objective is a likelihood."""
    convex: bool = True

    def fit(
        self, l2: float, tol: float, max_iter: int, start: Floats | None = None, callback: Callback | None = None
    ) -> Fit:
        """Minimize l2/2 |theta|^2 + loss to a certified relative gap of ``tol``; a likelihood starts from ``start``.

        If the likelihood is not convex, a small gradient ends the search, and 0 is the only bound that is proven.
        """
        if self.cuts is not None:
            return with_ridge(self.objective, self.cuts, l2, tol=tol, max_iter=max_iter, callback=callback)
        if not self.convex:
            warnings.warn(
                "ties='marginal' with weights that fall inside a rating is not convex: the fit may be a local optimum; "
                "position_weights='rating' and ties='random' are convex",
                UserWarning,
                stacklevel=2,
            )
        first = np.zeros(self.objective.n_params) if start is None else start
        fit = minimize(self.objective, l2, first, tol=tol, max_iter=max_iter, callback=callback)
        bound = max(0.0, fit.lower_bound) if self.convex else 0.0
        return replace(fit, lower_bound=bound, converged=fit.converged and self.convex)

    def loss(self, params: Floats) -> float:
        """Return the mean hinge, or the mean of -log p, without the regularizer."""
        if self.cuts is None:
            return self.objective.value_and_grad(params)[0]
        offset, gradient = self.objective.cut(params)
        return offset + float(gradient @ params)


@dataclass(frozen=True, eq=False)
class Task:
    """What a ranker learns, as its settings say: the loss of slates or whole lists, by likelihood or hinge."""

    is_hinge: bool
    ratings: Floats
    """The different ratings of the training rows, rising; the hinge gains nothing from the first."""
    weights: Floats | None
    """c of each position, best first, or of each rating of whole lists, rising; None: the rating of the document."""
    size: int | None = None
    """Documents of a slate, and the minimum of a list; None: whole lists."""
    draw: Draw | None = None
    """Draws slates; None: whole lists."""
    marginal: bool = False
    """Whether the likelihood sums over the orders of tied documents instead of taking the one drawn."""
    n_ratings: int = 2
    """Different ratings that a list must have."""
    repeats: int = 1
    executor: Executor = ONE_THREAD

    def problem(self, lists: RatedLists, rng: np.random.Generator) -> Problem:
        """Return the problem of some lists, with the randomness of their slates."""
        cuts, least = ActiveCuts(np.ones(int(lists.X.shape[1]))) if self.is_hinge else None, float(self.ratings[0])
        if self.size is None or self.draw is None:
            unknown = ~np.isin(lists.ratings, self.ratings)
            if unknown.any():
                raise ValueError(f"y: expected ratings seen in fit, found {lists.ratings[unknown][0]:g}")
            weights = self.ratings if self.weights is None else self.weights
            of_rows = weights[np.searchsorted(self.ratings, lists.ratings)]
            if self.is_hinge:
                return Problem(whole_hinge(lists, of_rows, least, self.executor), cuts)
            return Problem(whole_likelihood(lists, of_rows, self.executor))
        slates = make_slates(lists, self.size, self.weights, self.draw, rng)
        if self.is_hinge:
            return Problem(slate_hinge(lists.X, slates, least, self.executor), cuts)
        ties = find_ties(slates) if self.marginal else ()
        convex = all((np.ptp(slates.weights[t.slates, t.first : t.last], axis=1) == 0).all() for t in ties)
        return Problem(slate_likelihood(lists.X, slates, ties, self.executor), convex=convex)


MakeProblem: TypeAlias = Callable[[RatedLists, np.random.Generator], Problem]
"""Makes a problem of lists, with the randomness of their slates: :meth:`Task.problem`."""


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
    losses = np.zeros(len(strengths))
    for inner, held_out in random_folds(len(lists), FOLDS, random_state):
        train, validation = lists.part(inner), lists.part(held_out)
        path = held_out_path(make_problem, train, validation, strengths, random_state, tol, max_iter)
        losses += float(validation.weights.sum()) * np.array([step.loss for step in path])
    return strengths[int(np.argmin(losses))]


def held_out_path(
    make_problem: MakeProblem,
    lists: RatedLists,
    held_out: RatedLists,
    strengths: Sequence[float],
    random_state: int,
    tol: float,
    max_iter: int,
) -> list[Step[Floats]]:
    """Return, for each of falling l2, the loss on the held-out lists and theta; a fit starts where the last ended."""
    problem = make_problem(lists, np.random.default_rng([random_state, 0]))
    held_out_problem = make_problem(held_out, np.random.default_rng([random_state, 1]))
    return search_path(
        strengths,
        1,
        lambda _, l2, start: problem.fit(l2, tol, max_iter, start).params,
        lambda _, params: held_out_problem.loss(params),
    )
