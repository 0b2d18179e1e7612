"""Brute-force checks: enumeration of all matchings, and finite differences."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from tests.matched_graphs import all_matchings, log_z_and_marginals, matching_weight, random_graphs

from slatewise.matching.graphs.edges import EdgeScores, gather_blocks
from slatewise.matching.graphs.inference import exact_sum
from slatewise.matching.graphs.risks import among_few_rows, confusion, graph_hinge, graph_likelihood

SHAPES = [(3, 3), (3, 5), (4, 4), (3, 3), (1, 2)]
PARTIAL = [(3, 3), (4, 2), (2, 4), (3, 3), (1, 1)]


def problem(seed, learn_unmatched, n_features=3):
    rng = np.random.default_rng(seed)
    shapes, share = (PARTIAL, 0.3) if learn_unmatched else (SHAPES, 0.0)
    graphs, matches = random_graphs(rng, shapes, n_features, share)
    scores = EdgeScores(n_features, None, learn_unmatched)
    return graphs, matches, scores, rng.normal(size=scores.n_params)


@pytest.mark.parametrize("unmatched", [None, -1.5, 0.0, 2.0])
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (1, 1), (5, 1), (1, 5)])
def test_sums_equal_enumeration(shape, spread, unmatched):
    if unmatched is None and shape[0] > shape[1]:
        return
    weights = np.random.default_rng(0).uniform(-spread / 2, spread / 2, size=(3, *shape))
    log_z, marginals = exact_sum(weights, unmatched)
    for number, one in enumerate(weights):
        total, edges = log_z_and_marginals(one, unmatched)
        assert log_z[number] == pytest.approx(total, rel=1e-12, abs=1e-11)
        np.testing.assert_allclose(marginals[number], edges, atol=1e-11)


@pytest.mark.parametrize("learn_unmatched", [False, True])
def test_value_equals_enumeration(learn_unmatched):
    graphs, matches, scores, params = problem(0, learn_unmatched)
    unmatched = params[-1] if learn_unmatched else None
    expected = 0.0
    for graph, match in zip(graphs, matches, strict=True):
        weights = graph @ params[:3]
        expected += log_z_and_marginals(weights, unmatched)[0] - matching_weight(weights, match, unmatched)
    value, _ = graph_likelihood(gather_blocks(graphs, matches), scores, exact_sum).value_and_grad(params)
    assert value == pytest.approx(expected / len(graphs), rel=1e-12)


@pytest.mark.parametrize("learn_unmatched", [False, True])
def test_gradient_equals_finite_differences(learn_unmatched):
    graphs, matches, scores, params = problem(1, learn_unmatched)
    blocks = gather_blocks(graphs, matches)
    whole = graph_likelihood(blocks, scores, exact_sum)
    parts = graph_likelihood(among_few_rows(blocks, 2, 2, np.random.default_rng(0)), scores, exact_sum)
    for objective in (whole, parts):
        wrong = check_grad(
            lambda w, f=objective: f.value_and_grad(w)[0], lambda w, f=objective: f.value_and_grad(w)[1], params
        )
        assert wrong < 1e-5


def test_a_given_score_of_unmatched_rows_is_used():
    graphs, matches, learned, params = problem(2, True)
    given = EdgeScores(3, float(params[-1]))
    one = graph_likelihood(gather_blocks(graphs, matches), learned, exact_sum).value_and_grad(params)
    two = graph_likelihood(gather_blocks(graphs, matches), given, exact_sum).value_and_grad(params[:-1])
    assert one[0] == pytest.approx(two[0], rel=1e-14)
    np.testing.assert_allclose(one[1][:-1], two[1], rtol=1e-12)


@pytest.mark.parametrize("unmatched", [None, 0.3])
def test_parts_are_conditional_probabilities(unmatched):
    """log p(rows of a part | the rest), with p by enumeration of the whole graph."""
    rng = np.random.default_rng(3)
    graphs, matches = random_graphs(rng, [(4, 5)], 2, 0.0 if unmatched is None else 0.4)
    scores, theta = EdgeScores(2, unmatched), rng.normal(size=2)
    weights, match = graphs[0] @ theta, matches[0]
    parts = among_few_rows(gather_blocks(graphs, matches), 2, 3, np.random.default_rng(7))
    assert sum(float(block.weight.sum()) for block in parts) == pytest.approx(2.0)  # two parts a partition
    value, _ = graph_likelihood(parts, scores, exact_sum).value_and_grad(theta)

    every = all_matchings(4, 5, unmatched is not None)
    mass = np.exp([matching_weight(weights, matching, unmatched) for matching in every])
    draws, expected = np.random.default_rng(7), 0.0
    for _ in range(3):
        for rows in np.array_split(draws.permutation(4), 2):
            others = [row for row in range(4) if row not in rows]
            agree = [all(matching[row] == match[row] for row in others) for matching in every]
            expected -= np.log(mass[every.index(tuple(match.tolist()))] / mass[agree].sum()) / 3
    assert value == pytest.approx(expected, rel=1e-10)


def test_rows_that_are_confused_come_together():
    """Rows 0 and 1 of eight want the same columns, as do 2 and 3, and so on: parts of two rows are those pairs."""
    rng = np.random.default_rng(0)
    graph = np.full((8, 8, 1), -20.0)
    for pair in range(0, 8, 2):
        graph[pair : pair + 2, pair : pair + 2, 0] = rng.normal(size=(2, 2))
    blocks, scores = gather_blocks([graph], [np.arange(8)]), EdgeScores(1, None)
    confused = confusion(blocks, scores, np.ones(1), exact_sum)
    parts = among_few_rows(blocks, 2, 3, np.random.default_rng(0), confused)
    assert sum(float(block.weight.sum()) for block in parts) == pytest.approx(4.0)  # four parts a partition
    for part in parts[0].X:
        assert (part > -10).all()


def test_it_is_convex():
    graphs, matches, scores, params = problem(4, True)
    objective = graph_likelihood(gather_blocks(graphs, matches), scores, exact_sum)
    rng = np.random.default_rng(5)
    for _ in range(20):
        one, other = params + rng.normal(size=4), params + 3 * rng.normal(size=4)
        ends = 0.5 * (objective.value_and_grad(one)[0] + objective.value_and_grad(other)[0])
        assert objective.value_and_grad(0.5 * (one + other))[0] <= ends + 1e-12


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
def test_the_cut_of_the_hinge_touches_the_risk_and_lies_below(seed, learn_unmatched):
    rng = np.random.default_rng(seed)
    shapes = [(3, 3), (4, 2), (2, 4)] if learn_unmatched else [(3, 3), (4, 4), (2, 4)]
    graphs, matches = random_graphs(rng, shapes, 3, 0.3 if learn_unmatched else 0.0)
    hinge = graph_hinge(gather_blocks(graphs, matches), EdgeScores(3, None, learn_unmatched))

    def brute_force(w):
        return risk(graphs, matches, w[:3], w[3] if learn_unmatched else None)

    w = 0.3 * rng.normal(size=3 + learn_unmatched)
    offset, gradient = hinge.cut(w)
    assert offset + gradient @ w == pytest.approx(brute_force(w), abs=1e-12)
    for _ in range(10):
        other = w + rng.normal(size=len(w))
        assert offset + gradient @ other <= brute_force(other) + 1e-12
