"""The oracles of metric learning to rank, judged by all rankings, by all interleavings, and by what a hinge must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import interleavings
from tests.plain_python import compiled_and_plain

from slatewise.inference import most_violated
from slatewise.metric_learning.oracle import NEED_K, ORACLES, Oracle
from slatewise.metrics import AP, AUC, NDCG, RR, Precision


def ask(loss, k, lists):
    """The oracle's answer for a block of (scores, relevance): losses, and the weights of each list."""
    offsets = np.cumsum([0] + [len(s) for s, _ in lists])
    scores = np.concatenate([s for s, _ in lists])
    relevance = np.concatenate([z for _, z in lists]).astype(np.int8)
    losses, weights = np.full(len(lists), np.nan), np.full(len(scores), np.nan)
    Oracle(loss, k).most_violated_block(scores, relevance, offsets, losses, weights)
    return losses, np.split(weights, offsets[1:-1])


def small(rng, most):
    """A list of at most ``most`` items: scores real or tied, of any sign and scale; often one of a side."""
    n = int(rng.integers(0, most + 1))
    scores = rng.normal(rng.choice([-3, 0]), rng.choice([0.05, 0.5, 3]), n)
    if rng.random() < 0.4:
        scores = np.round(2 * scores) / 2
    relevance = (rng.random(n) < rng.choice([0.3, 0.5, 0.8])).astype(int)
    if n and rng.random() < 0.4:
        relevance[:] = rng.integers(2)
        relevance[rng.integers(n)] = 1 - relevance[0]
    relevance[rng.random(n) < rng.choice([0, 0, 0.2])] = -1
    return scores, relevance


def test_the_names_are_those_of_the_measures():
    assert ORACLES == ("auc", "precision", "knn", "mrr", "ndcg", "map")


@pytest.mark.parametrize("k", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("loss", ORACLES)
def test_no_interleaving_is_better(loss, k):
    rng = np.random.default_rng(k)
    lists = [small(rng, 9) for _ in range(500)]
    losses, weights = ask(loss, k, lists)
    for (s, z), found, w in zip(lists, losses, weights, strict=True):
        best = interleavings.largest_hinge(loss, s, z, k)
        assert found - w @ s == pytest.approx(best, abs=1e-12 * (1 + np.abs(s).max(initial=0)))


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("loss", ORACLES)
def test_no_ranking_is_better(loss, k):
    """All permutations, psi pair by pair, the loss from the measures of the package."""

    def delta(relevance):
        n, n_good = relevance.shape[1], int(relevance[0].sum())
        cut = min(k, n)
        measure = {
            "auc": AUC(),
            "precision": Precision(k=cut),
            "knn": Precision(k=cut),
            "mrr": RR(),
            "ndcg": NDCG(k=min(k, n_good), discount="letor"),
            "map": AP(),
        }[loss]
        values = measure.per_list(relevance, np.tile(np.arange(n, 0, -1.0), (len(relevance), 1)))
        if loss == "precision":
            values = values * cut / min(cut, n_good)  # a share of the best possible
        return values <= 0.5 if loss == "knn" else 1 - values

    rng = np.random.default_rng(10 + k)
    lists = [list_ for list_ in (small(rng, 6) for _ in range(150)) if len(set(list_[1]) - {-1}) == 2]
    losses, weights = ask(loss, k, lists)
    for (s, z), found, w in zip(lists, losses, weights, strict=True):
        kept = z >= 0
        best = interleavings.largest_hinge_of_all_rankings(delta, s[kept], z[kept])
        assert found - w @ s == pytest.approx(best, abs=1e-12 * (1 + np.abs(s).max()))


def spread(rng, n, kind):
    """Scores of long lists: smooth, tied, or bunched beside a few far away ones."""
    scores = {"smooth": rng.normal, "ties": rng.normal, "bunched": rng.standard_cauchy, "close": rng.normal}[kind](
        size=n
    )
    return {"ties": np.round(scores), "bunched": scores**3, "close": 1e-3 * scores}.get(kind, scores)


@pytest.mark.parametrize("kind", ["smooth", "ties", "bunched", "close"])
@pytest.mark.parametrize("loss", ORACLES)
def test_long_lists_agree_with_a_walk_over_all_counts(loss, kind):
    rng = np.random.default_rng(len(loss) + len(kind))
    sizes = [(3, 1500), (40, 900), (200, 400), (700, 30), (250, 250)]
    lists = []
    for n_good, n_bad in sizes:
        relevance = rng.permutation(np.arange(n_good + n_bad) < n_good).astype(int)
        lists.append((spread(rng, n_good + n_bad, kind) + rng.choice([0, 1.5]) * relevance, relevance))
    for k in (1, 10, 120):
        losses, weights = ask(loss, k, lists)
        for (s, z), found, w in zip(lists, losses, weights, strict=True):
            slow = interleavings.largest_hinge_of_long_lists(loss, s, z, k)
            assert found - w @ s == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_the_walk_over_all_counts_is_right_itself():
    rng = np.random.default_rng(3)
    for loss in ORACLES:
        for s, z in (small(rng, 8) for _ in range(60)):
            if len(set(z) - {-1}) == 2:
                k = int(rng.integers(1, 8))
                best = interleavings.largest_hinge(loss, s, z, k)
                assert interleavings.largest_hinge_of_long_lists(loss, s, z, k) == pytest.approx(best)


@st.composite
def cases(draw):
    n = draw(st.integers(2, 30))
    scores = draw(
        st.lists(st.sampled_from([-2.0, -0.75, 0.0, 0.25, 0.5, 1.0]) | st.floats(-9, 9), min_size=n, max_size=n)
    )
    relevance = draw(st.lists(st.sampled_from([1, 0, 0, -1]), min_size=n, max_size=n))
    return draw(st.sampled_from(ORACLES)), np.array(scores), np.array(relevance), draw(st.integers(1, 32))


@given(cases())
def test_the_hinge_is_at_least_the_loss_of_the_ranking_by_score(case):
    loss, s, z, k = case
    if len(set(z) - {-1}) < 2:
        return
    by_score = np.array([i for i in np.argsort(-s, kind="stable") if z[i] >= 0])
    assert most_violated(loss, s, z, k).violation >= interleavings.task_loss(loss, z[by_score], k) - 1e-12


@given(cases())
def test_the_order_has_the_loss_and_the_violation_it_reports(case):
    loss, s, z, k = case
    result = most_violated(loss, s, z, k)
    assert sorted(result.order) == np.flatnonzero(z >= 0).tolist()
    if len(set(z) - {-1}) < 2:
        assert result.loss == result.violation == 0.0
        return
    place = np.full(len(s), -1)
    place[result.order] = np.arange(len(result.order))
    good, bad = np.flatnonzero(z == 1), np.flatnonzero(z == 0)
    wrong = place[good][:, None] > place[bad]
    score = -2 * (wrong * (s[good][:, None] - s[bad])).mean()
    assert result.loss == pytest.approx(interleavings.task_loss(loss, z[result.order], k))
    assert result.violation == pytest.approx(result.loss + score, abs=1e-12)


@given(cases(), st.integers(0, 1 << 16))
def test_items_may_be_permuted_and_scores_shifted(case, seed):
    loss, s, z, k = case
    rng = np.random.default_rng(seed)
    s = s + 1e-3 * rng.random(len(s))  # no ties: their order would decide
    order = rng.permutation(len(s))
    [first], [weights] = ask(loss, k, [(s, z)])
    [second], [permuted] = ask(loss, k, [(s[order] + 5, z[order])])
    assert second - permuted @ s[order] == pytest.approx(first - weights @ s, abs=1e-9)
    if first == second:
        np.testing.assert_allclose(permuted, weights[order], atol=1e-12)


@given(cases(), st.integers(0, 1 << 16))
def test_weights_are_minus_a_subgradient(case, seed):
    loss, s, z, k = case
    other = s + np.random.default_rng(seed).normal(size=len(s))
    losses, weights = ask(loss, k, [(s, z), (other, z)])
    hinge = [found - w @ values for found, w, values in zip(losses, weights, (s, other), strict=True)]
    assert hinge[1] >= hinge[0] - weights[0] @ (other - s) - 1e-9
    assert np.abs(weights[0].sum()) < 1e-12
    assert not weights[0][z < 0].any()


@pytest.mark.parametrize("loss", ORACLES)
def test_weights_are_minus_the_gradient_of_the_hinge(loss):
    rng = np.random.default_rng(5)
    step, worst = 1e-6, []
    for _ in range(40):
        s = rng.normal(size=12)
        z = (rng.permutation(12) < rng.integers(1, 12)).astype(int)
        _, [weights] = ask(loss, 4, [(s, z)])
        both = [s + sign * step * unit for unit in np.eye(12) for sign in (1, -1)]
        hinge = [most_violated(loss, moved, z, 4).violation for moved in both]
        slope = (np.array(hinge[::2]) - hinge[1::2]) / (2 * step)
        worst.append(np.abs(slope + weights).max())
    assert np.median(worst) < 1e-8
    assert np.mean(np.array(worst) < 1e-8) > 0.9  # a kink between the two points is rare


@pytest.mark.parametrize("loss", ORACLES)
def test_float32_scores_give_what_their_float64_values_give(loss):
    rng = np.random.default_rng(6)
    lists = [small(rng, 40) for _ in range(30)]
    single = [(s.astype(np.float32), z) for s, z in lists]
    double = [(s.astype(np.float64), z) for s, z in single]
    for one, other in zip(ask(loss, 3, single), ask(loss, 3, double), strict=True):
        np.testing.assert_array_equal(np.hstack(one), np.hstack(other))


def test_an_empty_block_has_no_answers():
    for loss in ORACLES:
        Oracle(loss, 3).most_violated_block(
            np.empty(0), np.empty(0, np.int8), np.zeros(1, np.int64), np.empty(0), np.empty(0)
        )


PLAIN = """
import numpy as np
from slatewise.metric_learning.oracle import ORACLES, Oracle

rng = np.random.default_rng(0)
scores, relevance = np.round(4 * rng.normal(size=120)) / 4, np.int8(rng.random(120) < 0.4)
offsets = np.array([0, 9, 9, 120])
for loss in ORACLES:
    losses, weights = np.empty(3), np.empty(120)
    Oracle(loss, 5).most_violated_block(scores, relevance, offsets, losses, weights)
    print(loss, losses.tolist(), weights.tolist())
"""


def test_the_oracles_are_the_same_without_the_compiler():
    compiled, plain = compiled_and_plain(PLAIN)
    assert compiled == plain
    assert compiled.count("\n") == len(ORACLES)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"loss": "dcg"}, ValueError, "loss: expected one of auc, precision, knn, mrr, ndcg, map, graded_ndcg, found"),
        ({"k": 0}, ValueError, "k: expected a whole number >= 1 or None, found 0"),
        ({"k": 1.5}, TypeError, "k: expected a whole number >= 1 or None, found 1.5"),
        ({"scores": [1.0, np.nan]}, ValueError, "scores: expected finite numbers, found nan at 1"),
        ({"scores": [[1.0, 2.0]]}, ValueError, "scores: expected 1 dimensions, found shape"),
        ({"relevance": [1, 0, 0]}, ValueError, "relevance: expected 2 numbers, as many as scores, found shape"),
        ({"relevance": [1, 2]}, ValueError, "relevance: expected 1, 0 or -1, found 2 at item 1"),
    ],
)
def test_bad_input_is_named(change, error, message):
    with pytest.raises(error, match=message):
        most_violated(**{"loss": "auc", "scores": [1.0, 0.0], "relevance": [1, 0]} | change)


@pytest.mark.parametrize("loss", NEED_K)
def test_k_is_asked_for_where_it_is_needed(loss):
    with pytest.raises(ValueError, match=f"k: expected a whole number >= 1 with loss '{loss}', found None"):
        most_violated(loss, [1.0, 0.0], [1, 0])


def test_ndcg_without_k_counts_as_many_ranks_as_there_are_relevant_items():
    s, z = np.array([0.1, 0.3, -0.2, 0.4, 0.0]), np.array([1, 0, 1, 0, 1])
    assert most_violated("ndcg", s, z).violation == most_violated("ndcg", s, z, k=3).violation


@pytest.mark.parametrize("loss", ORACLES)
def test_scores_that_cannot_be_subtracted_do_no_harm(loss):
    rng = np.random.default_rng(7)
    for bad in (np.nan, np.inf, -np.inf, 1.5e308):
        scores, relevance = rng.normal(size=100), (np.arange(100) % 3 == 0).astype(int)
        scores[rng.permutation(100)[:20]] = bad
        scores[5] = -1.5e308
        losses, weights = ask(loss, 5, [(scores, relevance)])
        assert 0 <= losses[0] <= 1
        assert np.isfinite(weights[0]).all()
