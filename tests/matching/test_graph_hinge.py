"""The judge tries every matching of every graph."""

import numpy as np
import pytest
from tests.matched_graphs import all_matchings, matching_weight, random_graphs

from slatewise.matching.graph_edges import EdgeScores, gather_blocks
from slatewise.matching.graph_hinge import GraphHinge


def risk(graphs, matches, theta, unmatched):
    total = 0.0
    for graph, match in zip(graphs, matches, strict=True):
        weights = graph @ theta
        total += max(
            np.mean(np.array(matching) != match) + matching_weight(weights, matching, unmatched)
            for matching in all_matchings(*weights.shape, unmatched is not None)
        ) - matching_weight(weights, match, unmatched)
    return total / len(graphs)


@pytest.mark.parametrize("learn_unmatched", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_cut_touches_the_risk_and_lies_below(seed, learn_unmatched):
    rng = np.random.default_rng(seed)
    shapes = [(3, 3), (4, 2), (2, 4)] if learn_unmatched else [(3, 3), (4, 4), (2, 4)]
    graphs, matches = random_graphs(rng, shapes, 3, 0.3 if learn_unmatched else 0.0)
    hinge = GraphHinge(gather_blocks(graphs, matches), EdgeScores(3, None, learn_unmatched))

    def judge(w):
        return risk(graphs, matches, w[:3], w[3] if learn_unmatched else None)

    w = 0.3 * rng.normal(size=3 + learn_unmatched)
    offset, gradient = hinge.cut(w)
    assert offset + gradient @ w == pytest.approx(judge(w), abs=1e-12)
    for _ in range(10):
        other = w + rng.normal(size=len(w))
        assert offset + gradient @ other <= judge(other) + 1e-12
