"""The strength of the ridge, by validation: the one whose parameters match held-out graphs best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.matching.best_matching import best_matchings
from slatewise.matching.graph_edges import EdgeScores, GraphBlock, feature_variance, gather_blocks
from slatewise.matching.graph_fit import GraphLearner

STRENGTHS = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""Tried in this order, times the variance of the features: each starts where the one before ended."""
_FOLDS = 3


def choose_l2(
    edge_features: Sequence[Floats], matches: Sequence[Ints], scores: EdgeScores, learn: GraphLearner
) -> float:
    """Return the strength with the fewest wrong matches over three folds of graphs; the larger one among equals."""
    unit = feature_variance(gather_blocks(edge_features, matches))
    n_graphs = len(edge_features)
    if n_graphs < 2:
        raise ValueError(f"l2: expected a number where there is one graph to learn from, found 'auto' and {n_graphs}")
    wrong = np.zeros(len(STRENGTHS))
    for fold in range(min(_FOLDS, n_graphs)):
        inside = range(fold, n_graphs, _FOLDS)
        outside = [place for place in range(n_graphs) if place % _FOLDS != fold]
        kept, tried = (
            gather_blocks([edge_features[i] for i in places], [matches[i] for i in places])
            for places in (outside, inside)
        )
        params: Floats | None = None
        for place, strength in enumerate(STRENGTHS):
            params = learn(kept, scores, strength * unit, params).params
            wrong[place] += len(inside) * mean_error(tried, scores, params)
    return STRENGTHS[int(np.argmin(wrong))] * unit


def mean_error(blocks: Sequence[GraphBlock], scores: EdgeScores, params: Floats) -> float:
    """Return the weighted mean over graphs of the share of rows matched wrongly.

    Columns are put in random order first: where weights are equal an assignment takes the diagonal, which in many data
    sets is the true matching.
    """
    unmatched = scores.unmatched_score(params)
    rng = np.random.default_rng(0)
    total = 0.0
    for block in blocks:
        order = rng.permutation(block.X.shape[2])
        found = best_matchings(scores.edges(params, block)[:, :, order], unmatched)
        columns = np.where(found >= 0, order[found], found)
        total += float(block.weight @ (columns != block.target).mean(axis=1))
    return total
