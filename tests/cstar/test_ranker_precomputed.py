"""CStarRanker on given log-odds: the objective against enumeration, the choice of C, and the log-odds it takes."""

from itertools import combinations, product

import numpy as np
import pytest

import slatewise
from slatewise import CStarRanker
from slatewise.labeling import RandomQuestion, simulate


@pytest.fixture(scope="module")
def noisy():
    """Log-odds that say little, of labels that come together: 0, 1 and 2, or 3, 4 and 5."""
    rng = np.random.default_rng(0)
    first = rng.random((600, 1)) < 0.5
    likely = np.where(first == (np.arange(8) < 3), 0.8, 0.1) * np.where(np.arange(8) < 6, 1.0, 3.0)
    Y = (rng.random((600, 8)) < np.minimum(likely, 0.8)).astype(float)
    return 0.5 * (2 * Y - 1) + rng.normal(0, 1.0, Y.shape), Y


@pytest.fixture(scope="module")
def ranker(noisy):
    return CStarRanker("precomputed", core=2, C=0.5).fit(noisy[0][:400], noisy[1][:400])


def minus_log_likelihood(ranker, given, labels):
    """Of one row, over all sets."""
    scores = given * ranker.coef_ + ranker.intercept_

    def f(flags):
        items, pairs = np.flatnonzero(flags), 0.0
        for i, j in combinations(items, 2):
            rows = [(row, j if c == i else i) for row, c in enumerate(ranker.core_) if c in (i, j)]
            pairs += ranker.pair_[rows[0]] if rows else 0.0
        return scores[items].sum() + pairs

    return np.log(sum(np.exp(f(flags)) for flags in product((0, 1), repeat=8))) - f(labels)


def test_C_weighs_the_likelihood_of_every_row(noisy):
    X, Y = noisy[0][:20], noisy[1][:20]
    weight = np.arange(20) % 3
    ranker = CStarRanker("precomputed", core=2, C=0.7, C_pair=0.35).fit(X, Y, sample_weight=weight)
    pair = ranker.pair_.copy()
    pair[1, ranker.core_[0]] = 0.0  # a pair of core labels stands in both rows
    norm = ((ranker.coef_ - 1.0) ** 2).sum() + (ranker.intercept_**2).sum() + 2.0 * (pair**2).sum()
    rows = [w * minus_log_likelihood(ranker, *row) for *row, w in zip(X, Y, weight, strict=True)]
    assert ranker.objective_ == pytest.approx(0.5 * norm + 0.7 * sum(rows), rel=1e-9)
    assert ranker.C_pair_ == pytest.approx(0.35)


def test_structure_helps_and_the_margin_rule_beats_random_questions(noisy, ranker):
    X, Y = noisy[0], noisy[1]
    alone = CStarRanker("precomputed", core=0, C=0.5).fit(X[:400], Y[:400])
    assert ranker.score(X[400:], Y[400:]) > alone.score(X[400:], Y[400:]) + 0.01
    margin = simulate(ranker, X[400:], Y[400:], questions=(0, 3)).mean()
    random = simulate(ranker, X[400:], Y[400:], RandomQuestion(), questions=(0, 3), random_state=0).mean()
    assert margin[0] == random[0] == pytest.approx(ranker.score(X[400:], Y[400:], count_known=False))
    assert margin[3] > random[3]


def test_twice_the_rows_are_twice_the_strength(noisy):
    X, Y = noisy[0][:200], noisy[1][:200]
    once, twice = (CStarRanker("precomputed", core=[0, 3], C=C, tol=1e-7) for C in (1.0, 2.0))
    once.fit(np.vstack([X, X]), np.vstack([Y, Y]))
    twice.fit(X, Y)
    np.testing.assert_allclose(once.pair_, twice.pair_, atol=1e-3)
    assert once.objective_ == pytest.approx(twice.objective_, rel=1e-6)


def test_the_pair_terms_are_on_by_default(noisy):
    X, Y = noisy
    ranker = CStarRanker("precomputed", C=1.0).fit(X[:400], Y[:400])
    assert CStarRanker("precomputed").fit(X[:400], Y[:400]).C_ in (0.1, 0.3, 1.0)
    assert np.abs(ranker.pair_).max() > 0.5
    base = CStarRanker("precomputed", core=0, C=1e-9).fit(X[:400], Y[:400])
    assert ranker.score(X[400:], Y[400:]) > base.score(X[400:], Y[400:]) + 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: 1e-6 * X, "found -.* to .*: their size matters"),
        (lambda X: 1.0 / (1.0 + np.exp(-X)), r"found 0\..* to .*: log\(p / \(1 - p\)\) if they are probabilities"),
    ],
)
def test_a_warning_if_scores_can_hardly_be_log_odds(noisy, change, message):
    with pytest.warns(UserWarning, match=f"X: expected log-odds for the likelihood, .*{message}"):
        CStarRanker("precomputed", core=0, C=0.1).fit(change(noisy[0]), noisy[1])


def test_log_odds_too_large_to_sum_are_refused(noisy):
    given, Y = noisy[0][:150], noisy[1][:150]
    largest = 745.0 * given / np.abs(given).max()
    ranker = CStarRanker("precomputed", core=2, C=0.1).fit(largest, Y)
    assert ranker.objective_ == pytest.approx(ranker.lower_bound_, rel=2e-3)
    with pytest.raises(ValueError, match=r"X: expected log-odds from -745 to 745, found -.* to .*; clip or scale them"):
        ranker.fit(1.01 * largest, Y)


def test_it_is_certified_and_calls_back(noisy):
    rounds = []
    ranker = CStarRanker("precomputed", core=2, C=0.08).fit(*noisy, callbacks=[rounds.append])
    assert ranker.lower_bound_ <= ranker.objective_ <= ranker.lower_bound_ + 1e-3 * ranker.objective_
    assert rounds[-1].objective == ranker.objective_


def test_auto_leaves_perfect_scores_alone(noisy):
    rng = np.random.default_rng(0)
    perfect = rng.normal(size=(300, 8))
    Y = rng.random(perfect.shape) < 1.0 / (1.0 + np.exp(-perfect))
    ranker = CStarRanker("precomputed", core=0).fit(*noisy)
    assert ranker.C_ == ranker.C_pair_ > 0
    ranker.fit(perfect, Y)
    assert not hasattr(ranker, "C_")
    assert not hasattr(ranker, "C_pair_")
    assert ranker.objective_ == ranker.lower_bound_ == 0.0
    np.testing.assert_array_equal(ranker.label_scores(perfect), perfect)


def test_saved_and_with_other_threads_it_ranks_the_same(tmp_path, noisy, ranker):
    ranker.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(back.decision_function(noisy[0]), ranker.decision_function(noisy[0]))
    two = CStarRanker("precomputed", core=2, C=0.5, n_jobs=2).fit(noisy[0][:400], noisy[1][:400])
    assert two.pair_.tobytes() == ranker.pair_.tobytes()
    assert two.coef_.tobytes() == ranker.coef_.tobytes()


def test_too_large_a_core_is_refused():
    Y = np.eye(20)
    with pytest.raises(ValueError, match="core: expected at most 10 labels, found 13"):
        CStarRanker("precomputed", core=np.arange(13)).fit(Y + 0.1, Y)
