"""Every measure under every convention against the slow definitions."""

from functools import partial

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from slatewise.metrics import AP, AUC, NDCG, RR, BreakEven, MeanRank, Precision, Recall
from tests.metrics import reference
from tests.metrics.strategies import ragged

TIES = st.sampled_from(["average", "input", "id", "worst", "best"])
EMPTY = st.sampled_from([0, 1, "skip"])
CUTOFF = st.sampled_from([None, 1, 2, 3, 7])
THRESHOLD = st.sampled_from([1, 2])


def check(measure, of_order, lists):
    expected = [reference.expectation(of_order, r, s, measure.ties, i) for r, s, i in lists.split()]
    for engine in ("numpy", "compiled"):
        found = measure.per_list(lists.relevance, lists.scores, lists.qid, lists.ids, engine=engine)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(ragged(), CUTOFF, TIES, EMPTY, THRESHOLD, st.sampled_from(["k", "n"]))
def test_precision(lists, k, ties, empty, threshold, short):
    options = {"k": k, "threshold": threshold, "short": short, "empty": empty}
    check(Precision(ties=ties, **options), partial(reference.precision, **options), lists)


@given(ragged(), CUTOFF, TIES, EMPTY, THRESHOLD)
def test_recall(lists, k, ties, empty, threshold):
    options = {"k": k, "threshold": threshold, "empty": empty}
    check(Recall(ties=ties, **options), partial(reference.recall, **options), lists)


@given(ragged(), TIES, EMPTY, THRESHOLD)
def test_break_even(lists, ties, empty, threshold):
    options = {"threshold": threshold, "empty": empty}
    check(BreakEven(ties=ties, **options), partial(reference.break_even, **options), lists)


@given(ragged(), CUTOFF, TIES, EMPTY, THRESHOLD, st.sampled_from(["relevant", "reachable"]))
def test_average_precision(lists, k, ties, empty, threshold, norm):
    options = {"k": k, "threshold": threshold, "norm": norm, "empty": empty}
    check(AP(ties=ties, **options), partial(reference.average_precision, **options), lists)


@given(ragged(), CUTOFF, TIES, EMPTY, THRESHOLD)
def test_reciprocal_rank(lists, k, ties, empty, threshold):
    options = {"k": k, "threshold": threshold, "empty": empty}
    check(RR(ties=ties, **options), partial(reference.reciprocal_rank, **options), lists)


@given(ragged(), TIES, EMPTY, THRESHOLD)
def test_auc(lists, ties, empty, threshold):
    options = {"threshold": threshold, "empty": empty}
    check(AUC(ties=ties, **options), partial(reference.auc, **options), lists)


@given(ragged(), TIES, EMPTY, THRESHOLD)
def test_mean_rank(lists, ties, empty, threshold):
    options = {"threshold": threshold, "empty": empty}
    check(MeanRank(ties=ties, **options), partial(reference.mean_rank, **options), lists)


@given(ragged(), CUTOFF, TIES, EMPTY, st.sampled_from(["exp2", "linear"]), st.sampled_from(["log2", "letor"]))
def test_ndcg(lists, k, ties, empty, gain, discount):
    options = {"k": k, "gain": gain, "discount": discount, "empty": empty}
    check(NDCG(ties=ties, **options), partial(reference.ndcg, **options), lists)


@given(ragged(grades=st.integers(-2, 2)), CUTOFF, TIES, st.sampled_from(["exp2", "linear", "positive"]))
def test_ndcg_of_negative_relevance(lists, k, ties, gain):
    options = {"k": k, "gain": gain, "empty": 1}
    check(NDCG(ties=ties, labels="any", **options), partial(reference.ndcg, **options), lists)


@given(ragged(grades=st.integers(0, 1), longest=12))
def test_average_precision_of_ties_together_is_scikit_learns(lists):
    expected = [sklearn.metrics.average_precision_score(r, s) if any(r) else 0.0 for r, s, _ in lists.split()]
    found = AP(ties="together").per_list(lists.relevance, lists.scores, lists.qid)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(ragged(longest=30, grades=st.integers(0, 4)), CUTOFF)
def test_ndcg_of_longer_lists_is_scikit_learns(lists, k):
    for relevance, scores, _ in lists.split():
        if len(scores) > 1:
            expected = sklearn.metrics.ndcg_score([relevance], [scores], k=k)
            assert NDCG(k, gain="linear")(relevance, scores) == pytest.approx(expected, abs=1e-12)


def test_many_tied_items_do_not_take_forever():
    relevance = np.zeros(100_000)
    relevance[7] = 1
    harmonic = np.sum(1 / np.arange(1, 100_001))
    assert RR()(relevance, np.zeros(100_000)) == pytest.approx(harmonic / 100_000, rel=1e-12)
    assert AP()(relevance, np.zeros(100_000)) == pytest.approx(harmonic / 100_000, rel=1e-12)


@pytest.mark.parametrize(("gain", "relevance"), [("exp2", [2000, 0, 1]), ("linear", [1e308, 1e308, 1e308])])
def test_gains_beyond_float64_are_refused(gain, relevance):
    with pytest.raises(ValueError, match="relevance: expected gains that add up within float64"):
        NDCG(gain=gain)([relevance], [[3, 2, 1]])


@pytest.mark.parametrize("measure", [NDCG, AP, Precision, Recall, RR])
def test_cutoffs_past_every_list(measure):
    assert measure(2**62 - 1)([[1, 0]], [[2, 1]]) == pytest.approx(1.0 if measure is not Precision else 0.0)
    with pytest.raises(ValueError, match="k: expected"):
        measure(2**62)
