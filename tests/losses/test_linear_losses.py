"""Every linear loss equals its definition on all rankings of small lists, and the measure it mirrors."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.losses import DCGLoss, PrecisionLoss, ReciprocalRankLoss, WinnerLoss
from slatewise.metrics import NDCG, RR, Precision


def scores_of(order):
    """Scores that make a measure see this ranking."""
    scores = np.empty(len(order))
    scores[list(order)] = -np.arange(len(order))
    return scores


@pytest.mark.parametrize("z", [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
def test_winner_takes_all_asks_for_the_first_item(z):
    for order in permutations(range(4)):
        assert WinnerLoss().value(order, z) == 1 - z[order[0]]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("z", [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
def test_precision_counts_irrelevant_items_of_the_top(z, k):
    for order in permutations(range(4)):
        loss = PrecisionLoss().value(order, z, k)
        assert loss == pytest.approx(sum(1 - z[i] for i in order[:k]) / k)
        assert loss == pytest.approx(1 - Precision(k)([z], [scores_of(order)]))


@pytest.mark.parametrize("k", [None, 2, 9])
def test_reciprocal_rank_of_the_relevant_item(k):
    z = [0, 0, 1, 0]
    for order in permutations(range(4)):
        rank = order.index(2) + 1
        loss = ReciprocalRankLoss().value(order, z, k)
        assert loss == pytest.approx(1 - (1 / rank if rank <= (k or 4) else 0))
        if k is None:
            assert loss == pytest.approx(1 - RR()([z], [scores_of(order)]))


@pytest.mark.parametrize("k", [None, 1, 3, 9])
@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("discount", ["log2", "letor"])
def test_dcg_is_one_minus_the_measure(k, gain, discount):
    z = [2, 0, 1, 1]
    for order in permutations(range(4)):
        loss = DCGLoss(gain=gain, discount=discount).value(order, z, k)
        assert loss == pytest.approx(1 - NDCG(k, gain=gain, discount=discount)([z], [scores_of(order)]))


def test_plain_dcg_is_what_the_best_ranking_has_more():
    assert DCGLoss(normalised=False).value([2, 1, 0], [1, 0, 0]) == pytest.approx(1 - 0.5)


def test_nothing_relevant_nothing_to_lose():
    assert DCGLoss().value([1, 0], [0, 0]) == 0


@given(st.lists(st.integers(0, 1), min_size=1, max_size=8), st.integers(1, 9), st.randoms())
def test_losses_lie_between_0_and_1_and_relevant_first_is_best(z, k, random):
    order = list(range(len(z)))
    random.shuffle(order)
    ideal = np.argsort(-np.array(z), kind="stable")
    for loss in (WinnerLoss(), PrecisionLoss(), DCGLoss()):
        at = min(k, len(z))
        assert -1e-12 <= loss.value(ideal, z, at) <= loss.value(order, z, at) + 1e-12 <= 1 + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WinnerLoss().value([0, 0], [1, 0]), "order: expected each of the items 0 to 1 once"),
        (lambda: WinnerLoss().value([0], [2]), "relevance: expected 0 or 1, found 2"),
        (lambda: WinnerLoss().vectors([]), "relevance: expected one number per item"),
        (lambda: DCGLoss().vectors([0.0, np.nan]), "relevance: expected finite numbers, found nan at item 1"),
        (lambda: DCGLoss().vectors([-1.0, 1.0]), "relevance: expected gains from 0 to"),
        (lambda: DCGLoss().vectors([1.0], k=0), "k: expected a whole number >= 1, found 0"),
        (lambda: DCGLoss(gain="none"), "gain: expected"),
        (lambda: ReciprocalRankLoss().vectors([1, 1]), "exactly one relevant item, found 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
