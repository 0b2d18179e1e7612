"""The problems that a ranker by matchings makes of lists: slates or whole lists, likelihood or hinge.

All but the lists and the randomness is bound beforehand: ``partial(slate_likelihood, size=3, ..)``.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.running.executor import Executor
from slatewise.matching.slate_hinge import SlateHinge, WholeHinge
from slatewise.matching.slate_likelihood import SlateLikelihood, WholeLikelihood, check_grades, find_ties
from slatewise.matching.slates import Draw, RatedLists, make_slates
from slatewise.matching.training import HingeProblem, Problem, SmoothProblem


def slate_likelihood(
    lists: RatedLists,
    rng: np.random.Generator,
    *,
    size: int,
    weights: Floats | None,
    draw: Draw,
    marginal: bool,
    executor: Executor,
) -> Problem:
    """RankMatch; ``marginal``: sum over the orders of tied documents instead of taking the one drawn."""
    slates = make_slates(lists, size, weights, draw, rng)
    ties = find_ties(slates) if marginal else ()
    convex = all((np.ptp(slates.weights[t.slates, t.first : t.last], axis=1) == 0).all() for t in ties)
    return SmoothProblem(SlateLikelihood(lists.X, slates, ties, executor), convex)


def slate_hinge(
    lists: RatedLists,
    rng: np.random.Generator,
    *,
    size: int,
    weights: Floats | None,
    draw: Draw,
    least: float,
    executor: Executor,
) -> Problem:
    """DORM on the same slates; ``least`` is the rating that gains nothing."""
    slates = make_slates(lists, size, weights, draw, rng)
    return HingeProblem(SlateHinge(lists.X, slates, least, executor), int(lists.X.shape[1]))


def whole_likelihood(
    lists: RatedLists, rng: np.random.Generator, *, ratings: Floats, weights: Floats, executor: Executor
) -> Problem:
    """All documents of a query; ``weights`` belong to the rising ``ratings``."""
    del rng  # nothing is drawn
    check_grades(lists)
    return SmoothProblem(WholeLikelihood(lists, _looked_up(lists, ratings, weights), executor))


def whole_hinge(
    lists: RatedLists, rng: np.random.Generator, *, ratings: Floats, weights: Floats, executor: Executor
) -> Problem:
    """The hinge of whole queries; the smallest rating gains nothing."""
    del rng
    hinge = WholeHinge(lists, _looked_up(lists, ratings, weights), float(ratings[0]), executor)
    return HingeProblem(hinge, int(lists.X.shape[1]))


def _looked_up(lists: RatedLists, ratings: Floats, weights: Floats) -> Floats:
    unknown = ~np.isin(lists.ratings, ratings)
    if unknown.any():
        raise ValueError(f"y: expected ratings seen in fit, found {lists.ratings[unknown][0]:g}")
    return weights[np.searchsorted(ratings, lists.ratings)]
