"""The problems that a ranker by matchings makes of lists: slates or whole lists, likelihood or hinge."""

from __future__ import annotations

import numpy as np

from slatewise.core.executor import Executor
from slatewise.matching.slate_hinge import SlateHinge, WholeHinge
from slatewise.matching.slate_likelihood import SlateLikelihood, WholeLikelihood, find_ties
from slatewise.matching.slates import Draw, Floats, RatedLists, make_slates
from slatewise.matching.training import HingeProblem, MakeProblem, Problem, SmoothProblem


def slate_likelihood(size: int, c: Floats | None, draw: Draw, marginal: bool, executor: Executor) -> MakeProblem:
    """RankMatch; ``marginal``: sum over the orders of tied documents instead of taking the one drawn."""

    def make_problem(lists: RatedLists, rng: np.random.Generator) -> Problem:
        slates = make_slates(lists, size, c, draw, rng)
        ties = find_ties(slates) if marginal else ()
        convex = all((np.ptp(slates.weights[t.slates, t.first : t.last], axis=1) == 0).all() for t in ties)
        return SmoothProblem(SlateLikelihood(lists.X, slates, ties, executor), convex)

    return make_problem


def slate_hinge(size: int, c: Floats | None, draw: Draw, least: float, executor: Executor) -> MakeProblem:
    """DORM on the same slates; ``least`` is the rating that gains nothing."""

    def make_problem(lists: RatedLists, rng: np.random.Generator) -> Problem:
        slates = make_slates(lists, size, c, draw, rng)
        return HingeProblem(SlateHinge(lists.X, slates, least, executor), int(lists.X.shape[1]))

    return make_problem


def whole_likelihood(ratings: Floats, weights: Floats, executor: Executor) -> MakeProblem:
    """All documents of a query; ``weights`` belong to the rising ``ratings``."""

    def make_problem(lists: RatedLists, rng: np.random.Generator) -> Problem:
        del rng  # nothing is drawn
        return SmoothProblem(WholeLikelihood(lists, _looked_up(lists, ratings, weights), executor))

    return make_problem


def whole_hinge(ratings: Floats, weights: Floats, executor: Executor) -> MakeProblem:
    """The hinge of whole queries; the smallest rating gains nothing."""

    def make_problem(lists: RatedLists, rng: np.random.Generator) -> Problem:
        del rng
        hinge = WholeHinge(lists, _looked_up(lists, ratings, weights), float(ratings[0]), executor)
        return HingeProblem(hinge, int(lists.X.shape[1]))

    return make_problem


def _looked_up(lists: RatedLists, ratings: Floats, weights: Floats) -> Floats:
    unknown = ~np.isin(lists.ratings, ratings)
    if unknown.any():
        raise ValueError(f"y: expected ratings seen in fit, found {lists.ratings[unknown][0]:g}")
    return weights[np.searchsorted(ratings, lists.ratings)]
