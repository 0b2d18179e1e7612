"""The oracle of graded NDCG, judged by all rankings, and by the oracle of two grades."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import interleavings
from tests.plain_python import compiled_and_plain

from slatewise.inference import most_violated
from slatewise.metric_learning import oracle
from slatewise.metric_learning.oracle import Oracle
from slatewise.metrics import NDCG


def ask(lists, k):
    offsets = np.cumsum([0] + [len(s) for s, _ in lists])
    scores = np.concatenate([s for s, _ in lists])
    relevance = np.concatenate([z for _, z in lists]).astype(np.int8)
    losses, weights = np.full(len(lists), np.nan), np.full(len(scores), np.nan)
    Oracle("graded_ndcg", k).most_violated_block(scores, relevance, offsets, losses, weights)
    return losses, np.split(weights, offsets[1:-1])


def small(rng):
    """A list of at most 6 items of up to four grades, some left out; scores real or tied."""
    n = int(rng.integers(0, 7))
    scores = rng.normal(rng.choice([-3, 0]), rng.choice([0.05, 0.3, 2]), n)
    if rng.random() < 0.3:
        scores = np.round(2 * scores) / 2
    return scores, rng.integers(rng.choice([0, 0, -1]), rng.integers(1, 5), n)


def task_loss(z, k):
    """One minus NDCG of ranked grades, from the measures of the package."""
    positions = np.tile(np.arange(z.shape[1], 0, -1.0), (len(z), 1))
    return 1 - NDCG(k=k, discount="letor").per_list(z, positions)


@pytest.mark.parametrize("k", [1, 2, 3, 5, None])
def test_no_ranking_is_better(k):
    rng = np.random.default_rng(k or 9)
    lists = [small(rng) for _ in range(420)]
    losses, weights = ask(lists, k)
    for (s, z), found, w in zip(lists, losses, weights, strict=True):
        kept = z >= 0
        best = 0.0
        if len(set(z[kept])) > 1:
            best = interleavings.largest_hinge_of_graded_rankings(lambda ranked: task_loss(ranked, k), s[kept], z[kept])
        assert found - w @ s == pytest.approx(best, abs=1e-12 * (1 + np.abs(s).max(initial=0)))
        assert np.abs(w.sum()) < 1e-12
        assert not w[z < 0].any()


@pytest.mark.parametrize("k", [1, 4, 11])
@pytest.mark.parametrize("grade", [1, 3])
def test_two_grades_are_the_oracle_of_relevance_0_or_1(k, grade):
    rng = np.random.default_rng(k)
    for n_good, n_bad in [(11, 60), (200, 12), (40, 90)]:
        z = rng.permutation(np.arange(n_good + n_bad) < n_good).astype(int)
        s = 0.3 * rng.normal(size=len(z)) + 0.2 * z
        one, other = most_violated("ndcg", s, z, k), most_violated("graded_ndcg", s, grade * z, k)
        assert other.violation == pytest.approx(one.violation)
        assert other.loss == pytest.approx(one.loss)
        assert other.order.tolist() == one.order.tolist()


@pytest.mark.parametrize("k", [1, 3, 8, None])
def test_longer_lists_are_no_worse_than_any_ranking_tried(k):
    """Sorting by score plus a multiple of the gain, or by chance, never beats the oracle; its own order attains it."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        z, s = rng.integers(0, 3, 25), 0.5 * rng.normal(size=25)
        result = most_violated("graded_ndcg", s, z, k)
        keys = [s - factor * 2.0**z for factor in np.linspace(-1, 1, 41)] + list(rng.normal(size=(50, 25)))
        orders = np.array([result.order] + [np.argsort(-key, kind="stable") for key in keys])
        tried = task_loss(z[orders], k) + interleavings.graded_score(orders, s, z)
        assert result.violation == pytest.approx(tried[0])
        assert tried.max() <= result.violation + 1e-9
        assert result.loss == pytest.approx(task_loss(z[orders[:1]], k)[0])


@st.composite
def cases(draw):
    n = draw(st.integers(2, 14))
    numbers = st.sampled_from([-2.0, -0.75, 0.0, 0.25, 0.5, 1.0]) | st.floats(-9, 9)
    scores = draw(st.lists(numbers, min_size=n, max_size=n))
    grades = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    return np.array(scores), np.array(grades), draw(st.integers(1, 16)), np.random.default_rng(draw(st.integers(0, 99)))


@given(cases())
def test_the_hinge_is_convex_and_at_least_the_loss_of_the_ranking_by_score(case):
    s, z, k, rng = case
    other = s + rng.normal(size=len(s))
    losses, weights = ask([(s, z), (other, z)], k)
    hinge = losses[0] - weights[0] @ s
    assert losses[1] - weights[1] @ other >= hinge - weights[0] @ (other - s) - 1e-9
    if len(set(z) - {-1}) > 1:
        by_score = np.array([i for i in np.argsort(-s, kind="stable") if z[i] >= 0])
        assert hinge >= task_loss(z[by_score][None], k)[0] - 1e-9


@given(cases())
def test_items_may_be_permuted_and_scores_shifted(case):
    s, z, k, rng = case
    s = s + 1e-3 * rng.random(len(s))  # no ties: their order would decide
    order = rng.permutation(len(s))
    [first, second], [weights, permuted] = ask([(s, z), (s[order] + 5, z[order])], k)
    assert second - permuted @ s[order] == pytest.approx(first - weights @ s, abs=1e-9)
    if first == second:
        np.testing.assert_allclose(permuted, weights[order], atol=1e-12)


def test_weights_are_minus_the_gradient_of_the_hinge():
    rng = np.random.default_rng(5)
    step, worst = 1e-6, []
    for _ in range(30):
        s, z = rng.normal(size=12), rng.integers(0, 4, 12)
        _, [weights] = ask([(s, z)], 5)
        both = [s + sign * step * unit for unit in np.eye(12) for sign in (1, -1)]
        hinge = [most_violated("graded_ndcg", moved, z, 5).violation for moved in both]
        worst.append(np.abs((np.array(hinge[::2]) - hinge[1::2]) / (2 * step) + weights).max())
    assert np.mean(np.array(worst) < 1e-8) > 0.9  # a kink between the two points is rare


PLAIN = """
import numpy as np
from slatewise.metric_learning.oracle import Oracle

rng = np.random.default_rng(0)
scores, grades, losses, weights = rng.normal(size=60), np.int8(rng.integers(0, 4, 60)), np.empty(3), np.empty(60)
Oracle("graded_ndcg", 4).most_violated_block(scores, grades, np.array([0, 9, 9, 60]), losses, weights)
print(losses.tolist(), weights.tolist())
"""


def test_the_walk_is_the_same_without_the_compiler():
    compiled, plain = compiled_and_plain(PLAIN)
    assert compiled == plain


def test_bad_grades_and_grids_too_large_are_named(monkeypatch):
    with pytest.raises(ValueError, match="relevance: expected whole numbers from 0 to 127 or -1, found 128 at item 1"):
        most_violated("graded_ndcg", [1.0, 0.0], [1, 128])
    with pytest.raises(
        ValueError, match=r"relevance: expected whole numbers from 0 to 127 or -1, found 0\.5 at item 0"
    ):
        most_violated("graded_ndcg", [1.0, 0.0], [0.5, 0])
    monkeypatch.setattr(oracle, "MOST_STATES", 17)
    assert most_violated("graded_ndcg", np.arange(6.0), [0, 0, 1, 1, 1, 2], k=1).loss > 0
    with pytest.raises(
        ValueError, match=r"k: expected one that leaves at most 17 counts .* found None with 24 in list 0"
    ):
        most_violated("graded_ndcg", np.arange(6.0), [0, 0, 1, 1, 1, 2])
