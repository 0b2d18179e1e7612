"""Precision at k over blocks of lists: 2-D and flat arrays agree with one list at a time."""

from itertools import combinations

import numpy as np
import pytest

from slatewise.losses import PrecisionLoss

LOSS = PrecisionLoss()


@pytest.fixture
def block():
    rng = np.random.default_rng(0)
    relevance = rng.integers(0, 2, size=(5, 6))
    relevance[:, 0] = 1
    return rng.normal(size=(5, 6)), relevance, np.array([1, 2, 3, 6, 4])


@pytest.mark.parametrize("how", ["one a list", "one number", "relevant"])
def test_rows_and_flat_arrays_agree(block, how):
    scores, relevance, per_list = block
    k = {"one a list": per_list, "one number": 3, "relevant": None}[how]
    offsets = np.arange(0, 31, 6)
    rows = LOSS.augmented(scores, relevance, k)
    flat = LOSS.augmented(scores.ravel(), relevance.ravel(), k, offsets)
    assert np.array_equal(rows.ravel(), flat)
    placement = (rows >= np.sort(rows, axis=1)[:, [-2]]).astype(float)
    losses = LOSS.of_placement(placement, relevance, k)
    assert np.allclose(losses, LOSS.of_placement(placement.ravel(), relevance.ravel(), k, offsets))


def test_lists_of_different_length():
    relevance, offsets = [1, 0, 0, 1, 1], [0, 2, 5]
    shifted = LOSS.augmented(np.zeros(5), relevance, [1, 3], offsets)
    assert np.allclose(shifted, [0, 1, 1 / 3, 0, 0])
    assert np.allclose(LOSS.of_placement([0, 1, 1, 1, 1], relevance, [1, 3], offsets), [1, 1 / 3])


def test_the_best_top_k_of_augmented_scores_maximises_score_plus_loss(block):
    scores, relevance, k = block
    augmented = LOSS.augmented(scores, relevance, k)
    for row in range(5):
        best = max(
            scores[row, list(top)].sum() + sum(1 - relevance[row, i] for i in top) / k[row]
            for top in combinations(range(6), k[row])
        )
        assert np.sort(augmented[row])[::-1][: k[row]].sum() == pytest.approx(best)


def test_break_even_has_one_best_answer(block):
    _, relevance, _ = block
    assert np.array_equal(LOSS.of_placement(relevance, relevance), np.zeros(5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LOSS.value([0, 1], [1, 0], k=3), "k: expected 1 to 2, the length of list 0, found 3"),
        (lambda: LOSS.augmented([[0, 0]], [[1, 0]], k=0), "k: expected 1 to 2, the length of list 0, found 0"),
        (lambda: LOSS.augmented([[0, 0]], [[1, 0]], k=[1, 1]), "k: expected one whole number, or one a list"),
        (lambda: LOSS.augmented([[0, 0]], [[1, 0]], k=1.5), "k: expected one whole number, or one a list"),
        (lambda: LOSS.augmented([[0, 0]], [[0, 0]]), "relevance: expected a relevant item in every list .* in list 0"),
        (lambda: LOSS.augmented([0, 0], [[0, 1]]), "scores: expected the shape of relevance"),
        (lambda: LOSS.of_placement([0, 0], [[0, 1]]), "placement: expected the shape of relevance"),
        (lambda: LOSS.augmented([0, 0], [0, 1], offsets=[0, 1]), "offsets: expected numbers from 0 to 2"),
        (lambda: LOSS.augmented([[0, 0]], [[0, 1]], offsets=[0, 2]), "offsets: expected None with relevance of two"),
        (lambda: LOSS.augmented([[[0]]], [[[1]]]), "relevance: expected one or two dimensions"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
