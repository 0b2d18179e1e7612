"""Brute-force checks: SciPy on the enumerated likelihood, and a quadratic program over all matchings."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.matched_graphs import all_matchings, log_z_and_marginals, matching_weight, noisy_copies, random_graphs
from tests.shipped import EXECUTORS

from slatewise.core.numerics.bundle import ActiveCuts, Cuts, one_slack
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.matching.graphs.edges import EdgeScores, feature_variance, gather_blocks
from slatewise.matching.graphs.fit import FEW_ROWS, STRENGTHS, GraphLearner, choose_l2, mean_error
from slatewise.matching.graphs.inference import SampledSum, bethe_sum, exact_sum
from slatewise.matching.graphs.risks import graph_hinge

SHAPES = [(3, 3), (2, 4), (3, 3)]


def problem(seed, partial):
    rng = np.random.default_rng(seed)
    graphs, matches = random_graphs(rng, [(3, 3), (3, 2), (2, 3)] if partial else SHAPES, 2, 0.4 if partial else 0.0)
    return graphs, matches, EdgeScores(2, None, partial)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("l2", [1.0, 0.01])
def test_likelihood_encloses_the_optimum(l2, partial):
    graphs, matches, scores = problem(0, partial)

    def objective(w):
        unmatched = w[2] if partial else None
        terms = [
            log_z_and_marginals(graph @ w[:2], unmatched)[0] - matching_weight(graph @ w[:2], match, unmatched)
            for graph, match in zip(graphs, matches, strict=True)
        ]
        return 0.5 * l2 * w @ w + np.mean(terms)

    best = minimize(objective, np.zeros(scores.n_params), method="BFGS", options={"gtol": 1e-7}).fun
    fit = GraphLearner(exact_sum, tol=1e-5).fit(gather_blocks(graphs, matches), scores, l2)
    assert fit.converged
    assert fit.gap <= 1e-5
    assert fit.lower_bound <= best + 1e-9
    assert fit.objective == pytest.approx(objective(fit.params), rel=1e-10)
    assert fit.objective >= best - 1e-9


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("l2", [1.0, 0.05])
def test_max_margin_encloses_the_optimum(l2, partial):
    graphs, matches, scores = problem(1, partial)
    rows, constants, owners = [], [], []
    for number, (graph, match) in enumerate(zip(graphs, matches, strict=True)):

        def features(matching, graph=graph):
            matched = [graph[row, column] for row, column in enumerate(matching) if column >= 0]
            total = np.sum(matched, axis=0) if matched else np.zeros(2)
            return np.append(total, len(matching) - len(matched)) if partial else total

        for matching in all_matchings(*graph.shape[:2], partial):
            rows.append(features(matching) - features(match))
            constants.append(np.mean(np.array(matching) != match))
            owners.append(number)
    size = scores.n_params
    A = np.hstack([-np.array(rows), np.eye(3)[owners]])
    cost = np.append(np.zeros(size), np.full(3, 1 / 3))
    ridge = np.append(np.full(size, l2), np.zeros(3))
    found = minimize(
        lambda z: 0.5 * z @ (ridge * z) + cost @ z,
        np.append(np.zeros(size), np.ones(3)),
        jac=lambda z: ridge * z + cost,
        constraints={"type": "ineq", "fun": lambda z: A @ z - np.array(constants), "jac": lambda z: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    fit = GraphLearner(None, tol=1e-4).fit(gather_blocks(graphs, matches), scores, l2)
    assert fit.converged
    assert fit.lower_bound <= found.fun * (1 + 1e-6)
    assert fit.objective >= found.fun * (1 - 1e-6)
    assert fit.history[-1].objective == fit.objective


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e4])
def test_max_margin_is_certified_at_any_scale_of_the_features(scale):
    graphs, matches = noisy_copies(np.random.default_rng(9), 4, 5)
    constant = [np.full_like(graph, 3.0) for graph in graphs] if scale == 0.0 else [scale * graph for graph in graphs]
    fit = GraphLearner(None).fit(gather_blocks(constant, matches), EdgeScores(4, None), 1.0)
    assert fit.converged
    assert 0.0 <= fit.gap <= 1e-3


def test_forgetting_cuts_changes_no_certificate():
    graphs, matches = noisy_copies(np.random.default_rng(2), 12, 8, n_features=12, noise=2.0)
    blocks, scores = gather_blocks(graphs, matches), EdgeScores(12, None)
    every, active = Cuts(np.ones(12)), ActiveCuts(np.ones(12))
    one, two = (one_slack(graph_hinge(blocks, scores), cuts, 1e3, tol=1e-4, max_iter=5000) for cuts in (every, active))
    assert len(active.offsets) < len(every.offsets)
    assert max(one.lower_bound, two.lower_bound) <= min(one.objective, two.objective)


def test_large_graphs_start_from_small_parts():
    graphs, matches = noisy_copies(np.random.default_rng(3), 4, FEW_ROWS + 2)
    blocks, scores = gather_blocks(graphs, matches), EdgeScores(4, None)
    warm = GraphLearner(exact_sum, tol=1e-6).fit(blocks, scores, 0.01)
    cold = GraphLearner(exact_sum, tol=1e-6).fit(blocks, scores, 0.01, np.zeros(4))
    assert warm.history[0].objective < cold.history[0].objective
    np.testing.assert_allclose(warm.params, cold.params, atol=1e-2)


def test_a_start_at_the_optimum_is_the_end():
    graphs, matches, scores = problem(4, False)
    blocks, learner = gather_blocks(graphs, matches), GraphLearner(exact_sum)
    first = learner.fit(blocks, scores, 0.1)
    again = learner.fit(blocks, scores, 0.1, first.params)
    assert len(again.history) == 1
    np.testing.assert_array_equal(again.params, first.params)


def test_stopping_early_is_a_warning():
    graphs, matches = noisy_copies(np.random.default_rng(5), 3, 5)
    learner = GraphLearner(exact_sum, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        fit = learner.fit(gather_blocks(graphs, matches), EdgeScores(4, None), 1e-3)
    assert not fit.converged


def test_bethe_is_below_the_exact_objective():
    graphs, matches = noisy_copies(np.random.default_rng(6), 5, 6, noise=1.0)
    blocks, scores = gather_blocks(graphs, matches), EdgeScores(4, None)
    exact, bethe = (GraphLearner(sums, tol=1e-3).fit(blocks, scores, 1.0) for sums in (exact_sum, bethe_sum))
    assert bethe.objective <= exact.objective
    assert bethe.lower_bound <= exact.objective


def test_parts_and_samples_come_near_the_whole():
    """All three estimate the same parameters; many graphs make them alike."""
    graphs, matches = noisy_copies(np.random.default_rng(7), 60, 6, noise=0.8)
    blocks, scores = gather_blocks(graphs, matches), EdgeScores(4, None)
    whole = GraphLearner(exact_sum).fit(blocks, scores, 1e-3).params
    parts = GraphLearner(exact_sum, part_size=3).fit(blocks, scores, 1e-3).params
    sampled = GraphLearner(SampledSum(50, np.random.default_rng(0)), max_iter=60).fit(blocks, scores, 1e-3).params
    assert np.linalg.norm(parts - whole) < 0.2 * np.linalg.norm(whole)
    assert np.linalg.norm(sampled - whole) < 0.1 * np.linalg.norm(whole)


def test_any_executor_draws_the_same_samples():
    graphs, matches = noisy_copies(np.random.default_rng(7), 4, 5, noise=0.8)
    blocks, scores = gather_blocks(graphs, matches), EdgeScores(4, None)
    one, *others = (
        GraphLearner(SampledSum(5, np.random.default_rng(0)), max_iter=3, executor=executor)
        .fit(blocks, scores, 1e-2)
        .params
        for executor in EXECUTORS
    )
    for other in others:
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("sum_matchings", [exact_sum, None])
def test_the_strength_is_chosen_by_held_out_graphs(sum_matchings):
    graphs, matches = noisy_copies(np.random.default_rng(8), 12, 5, noise=0.3)
    scores, learner = EdgeScores(4, None), GraphLearner(sum_matchings)
    blocks = gather_blocks(graphs, matches)
    chosen = choose_l2(graphs, matches, scores, learner)
    assert chosen in [strength * feature_variance(blocks) for strength in STRENGTHS]
    params = learner.fit(blocks, scores, chosen).params
    assert mean_error(blocks, scores, params) < 0.2


def test_equal_weights_are_not_right_by_accident():
    graphs = [np.zeros((8, 8, 1))] * 20
    blocks = gather_blocks(graphs, [np.arange(8)] * 20)
    assert mean_error(blocks, EdgeScores(1, None), np.zeros(1)) > 0.5
