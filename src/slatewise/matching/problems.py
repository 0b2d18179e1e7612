"""The problems a ranker by matchings can pose on lists: slates or whole lists, likelihood or hinge."""

from __future__ import annotations

import numpy as np

from slatewise.matching.slate_hinge import SlateHinge, WholeHinge
from slatewise.matching.slate_likelihood import SlateLikelihood, WholeLikelihood, find_ties
from slatewise.matching.slates import Draw, Floats, RatedLists, make_slates
from slatewise.matching.training import HingeProblem, Pose, Problem, SmoothProblem


def slate_likelihood(size: int, c: Floats | None, draw: Draw, marginal: bool, n_threads: int | None) -> Pose:
    """RankMatch; ``marginal``: sum over the orders of tied documents instead of taking the one drawn."""

    def pose(lists: RatedLists, rng: np.random.Generator) -> Problem:
        slates = make_slates(lists, size, c, draw, rng)
        ties = find_ties(slates) if marginal else ()
        convex = all((np.ptp(slates.weights[t.slates, t.first : t.last], axis=1) == 0).all() for t in ties)
        return SmoothProblem(SlateLikelihood(lists.X, slates, ties, n_threads), convex)

    return pose


def slate_hinge(size: int, c: Floats | None, draw: Draw, least: float, n_threads: int | None) -> Pose:
    """DORM on the same slates; ``least`` is the rating that gains nothing."""

    def pose(lists: RatedLists, rng: np.random.Generator) -> Problem:
        slates = make_slates(lists, size, c, draw, rng)
        return HingeProblem(SlateHinge(lists.X, slates, least, n_threads), int(lists.X.shape[1]))

    return pose


def whole_likelihood(ratings: Floats, weights: Floats, n_threads: int | None) -> Pose:
    """All documents of a query; ``weights`` belong to the rising ``ratings``."""

    def pose(lists: RatedLists, rng: np.random.Generator) -> Problem:
        del rng  # nothing is drawn
        return SmoothProblem(WholeLikelihood(lists, _looked_up(lists, ratings, weights), n_threads))

    return pose


def whole_hinge(ratings: Floats, weights: Floats, n_threads: int | None) -> Pose:
    """The hinge of whole queries; the smallest rating gains nothing."""

    def pose(lists: RatedLists, rng: np.random.Generator) -> Problem:
        del rng
        hinge = WholeHinge(lists, _looked_up(lists, ratings, weights), float(ratings[0]), n_threads)
        return HingeProblem(hinge, int(lists.X.shape[1]))

    return pose


def _looked_up(lists: RatedLists, ratings: Floats, weights: Floats) -> Floats:
    unknown = ~np.isin(lists.ratings, ratings)
    if unknown.any():
        raise ValueError(f"y: expected ratings seen in fit, found {lists.ratings[unknown][0]:g}")
    return weights[np.searchsorted(ratings, lists.ratings)]
