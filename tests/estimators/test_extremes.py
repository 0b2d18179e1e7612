"""Finite input far beyond what data holds: estimators refuse it by name, in every method, or answer right."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from slatewise import (
    BestFeatureRanker,
    CStarMarginRanker,
    CStarRanker,
    GraphMatcher,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
)
from slatewise.matching import Slates

RNG = np.random.default_rng(0)
X, y, qid = RNG.normal(size=(40, 4)), np.tile([0.0, 1, 2, 0, 1], 8), np.repeat(np.arange(8), 5)
Y = np.eye(5, dtype=np.int64)[np.arange(40) % 5] | np.eye(5, dtype=np.int64)[np.arange(40) % 3]


@pytest.mark.parametrize("slates", [Slates(3), "whole"], ids=str)
def test_loss_checks_ratings_as_fit_does(slates):
    """Gains of 2 to the 1200 made every total NaN, and the walk over them left its arrays: a crash or no end."""
    ranker = MatchingRanker(slates, surrogate="max-margin", tol=0.1, random_state=0)
    ranker.fit(X, y, qid=qid)
    if slates != "whole":  # which knows the ratings of fit only
        assert math.isfinite(ranker.loss(X, y * 250, qid))
    message = "y: expected ratings at most 500 apart for surrogate='max-margin', .* found 0 and 1200"
    with pytest.raises(ValueError, match=message):
        ranker.loss(X, y * 600, qid)
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, y * 600, qid=qid)
    with pytest.raises(ValueError, match=r"y: expected ratings at most 500 apart .* found 0 and 602"):
        ranker.loss(X, y + 600, qid)  # gains count from the least rating of fit
    with pytest.raises(ValueError, match=r"y: expected at most 1e\+50 in size, found 2e\+300"):
        MatchingRanker(Slates(3, position_weights="rating"), random_state=0).fit(X, y, qid=qid).loss(X, y * 1e300, qid)


RANKERS = [BestFeatureRanker(), MarginRanker(tol=0.3), MatchingRanker(Slates(3), tol=0.3, random_state=0)]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_rankers_of_queries_refuse_rows_beyond_the_bound(ranker):
    beyond = np.where(np.arange(40)[:, None] == 3, 1e200, X)
    message = r"X: expected at most 1e\+50 in size, found 1e\+200 at \[3, 0\]"
    ranker.fit(X, y, qid=qid)
    for call in (ranker.predict, lambda rows: ranker.score(rows, y, qid), lambda rows: ranker.fit(rows, y, qid=qid)):
        with pytest.raises(ValueError, match=message):
            call(beyond)
        with pytest.raises(ValueError, match="Complex data not supported"):
            call(X + 1j)
    with pytest.raises(ValueError, match="Complex data not supported"):
        ranker.fit(X, y + 1j, qid=qid)


@pytest.mark.filterwarnings("ignore:worse than nothing was learned")  # the classes are drawn
def test_other_estimators_refuse_rows_beyond_the_bound():
    metric = MetricRanker(C=100.0, tol=0.5).fit(X, np.arange(40) % 3)
    cstar = CStarRanker(core=1, C=1.0, tol=0.5, random_state=0).fit(X, Y)
    kernel = CStarMarginRanker("rbf", core=1, C=1.0)
    for calls in (
        [lambda rows: MetricRanker().fit(rows, np.arange(40) % 3), metric.transform],
        [lambda rows: kernel.fit(rows, Y), cstar.decision_function, cstar.rank],
    ):
        for call in calls:
            with pytest.raises(ValueError, match=r"X: expected at most 1e\+50 in size"):
                call(X * 1e160)
            with pytest.raises(ValueError, match="Complex data not supported"):
                call(X + 1j)
    with pytest.raises(ValueError, match="sample_weight: expected numbers, found dtype complex128"):
        CStarRanker(core=1, C=1.0).fit(X, Y, sample_weight=np.full(40, 1j))


@pytest.mark.parametrize("size", [1e3, 1e6, 1e30])
def test_decision_function_of_scores_far_apart_is_right(size):
    scores = RNG.normal(size=(40, 5))
    ranker = CStarRanker("precomputed", core=2, C=1.0, random_state=0).fit(scores, Y)
    rows = scores[:6] * size
    found = ranker.decision_function(rows, k=2)
    slope, shift, *pair = ranker.known_count_terms_
    own = slope * ranker.label_scores(rows) + shift
    G = np.zeros((5, 5))
    G[ranker.core_], G[:, ranker.core_] = np.array(pair), np.array(pair).T
    for row in range(6):
        pairs = list(itertools.combinations(range(5), 2))
        totals = np.array([own[row, i] + own[row, j] + G[i, j] for i, j in pairs])
        share = np.exp(totals - totals.max())
        chance = np.zeros(5)
        for items, part in zip(pairs, share / share.sum(), strict=True):
            chance[list(items)] += part
        np.testing.assert_allclose(1 / (1 + np.exp(-found[row])), chance, atol=1e-9)


@pytest.mark.parametrize("surrogate", ["likelihood", "max-margin"])
def test_marginals_of_huge_weights_are_probabilities(surrogate):
    graphs = [RNG.normal(size=(4, 4, 2)) for _ in range(6)]
    matches = [linear_sum_assignment(graph @ [1.0, 0.5], maximize=True)[1] for graph in graphs]
    matcher = GraphMatcher(surrogate=surrogate, tol=0.1).fit(graphs, matches)
    for size in (1e20, 1e45):
        best = matcher.predict([graphs[0] * size])[0]
        edges = matcher.marginals([graphs[0] * size])[0]
        np.testing.assert_allclose(edges, np.eye(4)[best], atol=1e-12)
        assert np.isfinite(matcher.log_likelihood([graphs[0] * size], [best])).all()
    with pytest.raises(ValueError, match=r"edge_features\[0\]: expected at most 1e\+50 in size"):
        matcher.marginals([graphs[0] * 1e200])
    with pytest.raises(ValueError, match=r"edge_features\[0\]: expected numbers, found dtype complex128"):
        matcher.marginals([graphs[0] + 1j])
