"""Samplers of matchings against the exact probability of every matching, with fixed seeds."""

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.matchings import probabilities, random_weights

from slatewise.inference import permanent, sample_matchings
from slatewise.matching.sums import sampling


def chi_square(w, matchings):
    """The p-value of drawn matchings under the exact distribution; rare ones are put together."""
    every, _, p = probabilities(w)
    number = {tuple(matching): k for k, matching in enumerate(every)}
    counts = np.bincount([number[tuple(m)] for m in matchings], minlength=len(every))
    assert (p[counts > 0] > 0).all()  # nothing impossible was drawn
    often = p * len(matchings) >= 8
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often], p[~often].sum()) * len(matchings)
    kept = expected > 0
    return chisquare(observed[kept], expected[kept]).pvalue


EXACT = [("tables", None), ("huber-law", 0), ("huber-law", 1), ("huber-law", 3), ("huber-law", None)]


@pytest.mark.parametrize("forbidden", [0.0, 0.4])
@pytest.mark.parametrize(("method", "depth"), EXACT)
@pytest.mark.parametrize("size", [1, 3, 5])
def test_square_samples_are_exact(size, method, depth, forbidden):
    w = random_weights(np.random.default_rng(size), 1, size, size, 4.0, forbidden)[0]
    samples = sample_matchings(w, 20_000, 0, method, None if depth is None else min(depth, size))
    assert samples.exact
    if size > 1:
        assert chi_square(w, samples.matchings) > 1e-4
    log_z = permanent(w).log_z
    assert abs(samples.log_z - log_z) <= 5 * samples.error + 1e-10
    assert 0.0 < samples.acceptance <= 1.0


@pytest.mark.parametrize("shape", [(1, 3), (3, 5), (4, 6)], ids=str)
def test_samples_with_free_columns_are_exact(shape):
    w = random_weights(np.random.default_rng(1), 1, *shape, 4.0, 0.2)[0]
    samples = sample_matchings(w, 20_000, 0)
    assert (samples.method, samples.exact, samples.acceptance, samples.error) == ("tables", True, 1.0, 0.0)
    assert chi_square(w, samples.matchings) > 1e-4
    assert samples.log_z == pytest.approx(permanent(w).log_z, abs=1e-11)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5)], ids=str)
def test_the_chain_approaches_the_distribution(shape):
    w = random_weights(np.random.default_rng(2), 1, *shape, 3.0)[0]
    samples = sample_matchings(w, 40_000, 0, "chain")
    assert not samples.exact
    assert chi_square(w, samples.matchings[::4]) > 1e-4
    assert np.isnan(samples.log_z)


@pytest.mark.parametrize("elsewhere", [-np.inf, -400.0])
@pytest.mark.parametrize("shape", [(5, 5), (4, 6)], ids=str)
def test_the_chain_reaches_matchings_that_swaps_do_not(shape, elsewhere):
    """Two candidates per row, around a circle: no exchange of two rows is possible in a square matrix."""
    n_rows, n_columns = shape
    w, rows = np.full(shape, elsewhere), np.arange(n_rows)
    w[rows, rows] = w[rows, (rows + 1) % (n_rows if n_rows == n_columns else n_columns)] = 0.0
    w += np.random.default_rng(7).uniform(-0.5, 0.5, shape)
    samples = sample_matchings(w, 40_000, 0, "chain")
    assert len(np.unique(samples.matchings, axis=0)) > 1
    assert chi_square(w, samples.matchings[::20]) > 1e-4


def test_the_chain_walks_long_bands():
    size = 40
    w = np.random.default_rng(8).normal(size=(size, size))
    w[np.abs(np.subtract.outer(np.arange(size), np.arange(size))) > 3] = -np.inf
    matchings = sample_matchings(w, 2000, 0, "chain").matchings
    assert np.isfinite(w[np.arange(size), matchings]).all()
    frequency = np.stack([(matchings == j).mean(axis=0) for j in range(size)], axis=1)
    np.testing.assert_allclose(frequency, permanent(w).marginals, atol=0.12)


def test_the_chain_gives_up_in_words(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_WALKED", 0)
    drew = "found that the chain drew 0 matchings in 0 steps"
    with pytest.raises(ValueError, match=f"method: expected 'tables' or 'huber-law' here, {drew}"):
        sample_matchings(np.zeros((3, 3)), 5, 0, "chain")
    with pytest.raises(ValueError, match=f"method: expected 'tables' here, {drew}"):
        sample_matchings(np.zeros((3, 4)), 5, 0, "chain")
    with pytest.raises(ValueError, match=f"method: expected 'huber-law' here, {drew}"):
        sample_matchings(np.zeros((30, 30)), 5, 0, "chain")
    alone = f"log_weights: expected more possible edges, as only the chain takes 30 x 31, {drew}"
    with pytest.raises(ValueError, match=alone):
        sample_matchings(np.zeros((30, 31)), 5, 0)


@pytest.mark.parametrize(("method", "depth"), [("tables", None), ("huber-law", 8), ("chain", None)])
def test_marginals_of_larger_matrices(method, depth):
    w = np.random.default_rng(3).normal(size=(12, 12))
    n = 20_000
    matchings = sample_matchings(w, n, 0, method, depth).matchings
    assert (np.sort(matchings, axis=1) == np.arange(12)).all()
    frequency = np.stack([(matchings == j).mean(axis=0) for j in range(12)], axis=1)
    exact = permanent(w).marginals
    score = (frequency - exact) / np.sqrt(exact * (1 - exact) / n)
    assert np.abs(score).max() <= (4.5 if method != "chain" else 9.0)  # the chain's draws are correlated


def test_wide_weights():
    w = random_weights(np.random.default_rng(4), 1, 7, 7, 300.0, 0.3)[0]
    for method in ("tables", "huber-law", "chain"):
        matchings = sample_matchings(w, 2000, 0, method).matchings
        frequency = np.stack([(matchings == j).mean(axis=0) for j in range(7)], axis=1)
        np.testing.assert_allclose(frequency, permanent(w).marginals, atol=0.05)


def test_a_seed_gives_the_same_samples():
    w = np.random.default_rng(5).normal(size=(6, 6))
    for method in ("tables", "huber-law", "chain"):
        first, again = (sample_matchings(w, 50, 7, method, 2).matchings for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert (first != sample_matchings(w, 50, 8, method, 2).matchings).any()


def test_auto_by_size():
    rng = np.random.default_rng(6)
    assert sample_matchings(rng.normal(size=(16, 16)), 3, 0).method == "tables"
    assert sample_matchings(rng.normal(size=(24, 24)), 3, 0).method == "huber-law"
    assert sample_matchings(rng.normal(size=(25, 50)), 3, 0).method == "chain"
    assert sample_matchings(rng.normal(size=(5, 5)), 0, 0).matchings.shape == (0, 5)


def test_huber_law_gives_up_in_words(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_TRIES", -1000)
    with pytest.raises(ValueError, match="method: expected 'chain' here, found that Huber-Law accepted 0 of 0"):
        sample_matchings(np.zeros((5, 5)), 1000, 0, "huber-law", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 2)), 1, 0, "gibbs"), "method: expected one of auto, tables, huber-law, chain, found 'gibbs'"),
        ((np.zeros((2, 2)), -1), "n: expected a whole number >= 0, found -1"),
        ((np.zeros((2, 2, 2)), 1), r"log_weights: expected one matrix \(M, N\), found 2"),
        ((np.zeros((3, 2)), 1), r"log_weights: expected shape .* found \(3, 2\)"),
        ((np.zeros((2, 2)), 1, 0, "huber-law", 3), "depth: expected 0 to 2, found 3"),
        ((np.zeros((2, 3)), 1, 0, "huber-law"), r"method: expected 'tables' or 'chain' for shape \(2, 3\), found"),
        ((np.zeros((25, 25)), 1, 0, "tables"), "method: expected tables of at most 4194304 numbers, found 25 x 25"),
        ((np.full((2, 2), -np.inf), 1), "log_weights: expected a matching with finite weight, found none in matrix 0"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_matchings(*arguments)
