"""A c-star model trained by likelihood: probabilities against enumeration, and the same contracts as with the hinge."""

from itertools import combinations

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
    return CStarRanker(2, "pretrained", C=0.5, surrogate="likelihood-k").fit(noisy[0][:400], noisy[1][:400])


def chances(ranker, given, k, known):
    """The probability of each label, over all sets that respect what is known."""
    scores = given * ranker.coef_ + ranker.intercept_
    total, chance = 0.0, np.zeros(8)
    for items in combinations(range(8), k):
        if any((known[i] == 1) != (i in items) for i in range(8) if known[i] >= 0):
            continue
        f = sum(scores[i] for i in items)
        for i, j in combinations(items, 2):
            rows = [(row, j if c == i else i) for row, c in enumerate(ranker.core_) if c in (i, j)]
            f += ranker.pair_[rows[0]] if rows else 0.0
        total += np.exp(f)
        chance[list(items)] += np.exp(f)
    return chance / total


def test_labels_are_ranked_by_how_probable_they_are(noisy, ranker):
    X = noisy[0][400:420]
    known = np.full(X.shape, -1)
    known[:, 3], known[:, 5] = 1, 0
    log_odds, ranked = ranker.decision_function(X, 3, known), ranker.rank(X, 3, known)
    for row in range(len(X)):
        chance = chances(ranker, X[row], 3, known[row])
        is_open = known[row] < 0
        np.testing.assert_allclose(log_odds[row, is_open], np.log(chance[is_open] / (1 - chance[is_open])), rtol=1e-8)
        np.testing.assert_array_equal(ranked[row], np.argsort(-chance)[:3])
    assert (log_odds[:, 3] == np.inf).all()
    assert (log_odds[:, 5] == -np.inf).all()
    asked = ranker.next_question(X, known, 3)
    np.testing.assert_array_equal(asked, np.argmin(np.abs(log_odds), axis=1))


def test_k_per_row_and_score(noisy, ranker):
    X, Y = noisy[0][400:], noisy[1][400:]
    counts = Y.sum(axis=1).astype(int)
    ranked = ranker.rank(X, counts).lists()
    assert [len(row) for row in ranked] == counts.tolist()
    hits = [labels[row].mean() for labels, row in zip(Y, ranked, strict=True) if len(row)]
    assert ranker.score(X, Y) == pytest.approx(np.mean(hits))
    np.testing.assert_array_equal(ranker.predict(X, 3).sum(axis=1), 3)


def test_structure_helps_and_the_margin_rule_beats_random_questions(noisy, ranker):
    X, Y = noisy[0], noisy[1]
    alone = CStarRanker(0, "pretrained", C=0.5, surrogate="likelihood-k").fit(X[:400], Y[:400])
    assert ranker.score(X[400:], Y[400:]) > alone.score(X[400:], Y[400:]) + 0.01
    margin = simulate(ranker, X[400:], Y[400:], questions=(0, 3)).mean()
    random = simulate(ranker, X[400:], Y[400:], RandomQuestion(), questions=(0, 3), random_state=0).mean()
    assert margin[0] == random[0] == pytest.approx(ranker.score(X[400:], Y[400:]))
    assert margin[3] > random[3]


def minus_log_likelihood(ranker, given, labels):
    """Of one row, over all sets of as many labels."""
    scores = given * ranker.coef_ + ranker.intercept_

    def f(items):
        pairs = 0.0
        for i, j in combinations(items, 2):
            rows = [(row, j if c == i else i) for row, c in enumerate(ranker.core_) if c in (i, j)]
            pairs += ranker.pair_[rows[0]] if rows else 0.0
        return sum(scores[i] for i in items) + pairs

    relevant = tuple(np.flatnonzero(labels))
    return np.log(sum(np.exp(f(items)) for items in combinations(range(8), len(relevant)))) - f(relevant)


def test_C_weighs_the_likelihood_of_every_row(noisy):
    X, Y = noisy[0][:60], noisy[1][:60]
    weight = np.arange(60) % 3
    ranker = CStarRanker(2, "pretrained", C=0.7, C_pair=0.35, surrogate="likelihood-k").fit(X, Y, sample_weight=weight)
    pair = ranker.pair_.copy()
    pair[1, ranker.core_[0]] = 0.0  # a pair of core labels stands in both rows
    norm = ((ranker.coef_ - 1.0) ** 2).sum() + (ranker.intercept_**2).sum() + 2.0 * (pair**2).sum()
    rows = [w * minus_log_likelihood(ranker, *row) for *row, w in zip(X, Y, weight, strict=True) if row[1].any()]
    assert ranker.objective_ == pytest.approx(0.5 * norm + 0.7 * sum(rows), rel=1e-9)


def test_as_it_comes_more_rows_say_more(noisy):
    X, Y = noisy[0][:200], noisy[1][:200]
    once, twice = (CStarRanker([0, 3], "pretrained", C=C, surrogate="likelihood-k", tol=1e-7) for C in (1.0, 2.0))
    once.fit(np.vstack([X, X]), np.vstack([Y, Y]))
    twice.fit(X, Y)
    np.testing.assert_allclose(once.pair_, twice.pair_, atol=1e-3)
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-3)
    assert once.objective_ == pytest.approx(twice.objective_, rel=1e-6)


def test_the_pair_terms_are_on_as_it_comes(noisy):
    X, Y = noisy
    ranker = CStarRanker(scores="pretrained", C=1.0, surrogate="likelihood-k").fit(X[:400], Y[:400])
    chosen = CStarRanker(scores="pretrained", C="auto", surrogate="likelihood-k").fit(X[:400], Y[:400])
    assert chosen.C_ in (0.1, 0.3, 1.0)
    assert np.abs(ranker.pair_).max() > 0.5
    base = CStarRanker(0, "pretrained", C=1e-9, surrogate="likelihood-k").fit(X[:400], Y[:400])
    assert ranker.score(X[400:], Y[400:]) > base.score(X[400:], Y[400:]) + 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: 1e-6 * X, "found -.* to .*: their size matters"),
        (lambda X: 1.0 / (1.0 + np.exp(-X)), r"found 0\..* to .*: log\(p / \(1 - p\)\) if they are probabilities"),
    ],
)
def test_what_cannot_be_log_odds_is_told(noisy, change, message):
    with pytest.warns(UserWarning, match=f"X: expected log-odds for the likelihood, .*{message}"):
        CStarRanker(0, "pretrained", C=0.1, surrogate="likelihood-k").fit(change(noisy[0]), noisy[1])


def test_log_odds_too_large_to_sum_are_refused(noisy):
    given, Y = noisy[0][:150], noisy[1][:150]
    largest = 745.0 * given / np.abs(given).max()
    ranker = CStarRanker(2, "pretrained", C=0.1, surrogate="likelihood-k").fit(largest, Y)
    assert ranker.objective_ == pytest.approx(ranker.lower_bound_, rel=2e-3)
    with pytest.raises(ValueError, match=r"X: expected log-odds from -745 to 745, found -.* to .*; clip or scale them"):
        ranker.fit(1.01 * largest, Y)


def test_it_is_certified_and_tells_its_callbacks(noisy):
    rounds = []
    ranker = CStarRanker(2, "pretrained", C=0.08, C_pair=0.16, surrogate="likelihood-k", callbacks=[rounds.append])
    ranker.fit(*noisy)
    assert ranker.lower_bound_ <= ranker.objective_ <= ranker.lower_bound_ + 1e-3 * ranker.objective_
    assert rounds[-1].objective == ranker.objective_
    assert ranker.C_pair_ == 0.16


def test_auto_leaves_perfect_scores_alone(noisy):
    perfect = 9.0 * (2 * noisy[1] - 1)
    ranker = CStarRanker(2, "pretrained", C="auto", surrogate="likelihood-k").fit(perfect, noisy[1])
    assert ranker.C_ == ranker.objective_ == ranker.lower_bound_ == 0.0
    np.testing.assert_allclose(ranker.label_scores(perfect), perfect)
    assert CStarRanker(2, "pretrained", C="auto", surrogate="likelihood-k").fit(*noisy).C_ > 0


def test_saved_and_with_other_threads_it_ranks_the_same(tmp_path, noisy, ranker):
    ranker.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(back.decision_function(noisy[0]), ranker.decision_function(noisy[0]))
    two = CStarRanker(2, "pretrained", C=0.5, surrogate="likelihood-k", n_jobs=2).fit(noisy[0][:400], noisy[1][:400])
    assert two.pair_.tobytes() == ranker.pair_.tobytes()
    assert two.coef_.tobytes() == ranker.coef_.tobytes()


@pytest.mark.parametrize("settings", [{"scores": "linear"}, {"scores": "pretrained", "k": 3}])
def test_what_it_cannot_be_combined_with_is_named(noisy, settings):
    with pytest.raises(ValueError, match="surrogate: expected 'max-margin' with "):
        CStarRanker(2, surrogate="likelihood-k", **settings).fit(*noisy)


def test_other_names_are_refused(noisy):
    with pytest.raises(
        ValueError, match="surrogate: expected one of likelihood, likelihood-k, max-margin, found 'other'"
    ):
        CStarRanker(2, "pretrained", surrogate="other").fit(*noisy)


def test_too_large_a_core_is_refused():
    Y = np.eye(20)
    with pytest.raises(ValueError, match="core: expected at most 10 items to sum over all settings, found 13"):
        CStarRanker(np.arange(13), "pretrained", surrogate="likelihood-k").fit(Y + 0.1, Y)
