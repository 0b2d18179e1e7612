"""The graded AUC oracle against all pairs, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.metric_learning.oracle import Oracle


def by_pairs(scores, grades):
    """Loss and weights from the definition."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(len(scores)) if grades[i] > grades[j]]
    weights = np.zeros(len(scores))
    wrong = [(i, j) for i, j in pairs if scores[i] - scores[j] < 0.5]
    for i, j in wrong:
        weights[i] += 2 / len(pairs)
        weights[j] -= 2 / len(pairs)
    return (len(wrong) / len(pairs) if pairs else 0.0), weights


def oracle(scores, grades, offsets):
    losses, weights = np.full(len(offsets) - 1, np.nan), np.full(len(scores), np.nan)
    Oracle("ordered_pairs").most_violated_block(scores, grades, offsets, losses, weights)
    return losses, weights


def test_equal_to_all_pairs():
    rng = np.random.default_rng(0)
    for _ in range(300):
        sizes = rng.integers(0, 9, 8)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        scores = rng.normal(size=offsets[-1]) * rng.choice([0.2, 1, 3])
        if rng.random() < 0.5:
            scores = np.round(scores * 2) / 2  # ties, and differences of exactly one half
        grades = rng.integers(0, rng.integers(1, 5), offsets[-1])
        losses, weights = oracle(scores, grades, offsets)
        for q in range(8):
            rows = slice(offsets[q], offsets[q + 1])
            loss, weight = by_pairs(scores[rows], grades[rows])
            assert losses[q] == pytest.approx(loss, abs=1e-12)
            np.testing.assert_allclose(weights[rows], weight, atol=1e-12)


@given(st.lists(st.tuples(st.floats(-3, 3), st.integers(0, 3)), min_size=2, max_size=12), st.randoms())
def test_symmetries(items, random):
    scores, grades = (np.array(column) for column in zip(*items, strict=True))
    scores, grades = scores.astype(float), grades.astype(np.int64)
    offsets = np.array([0, len(scores)])
    losses, weights = oracle(scores, grades, offsets)
    assert abs(weights.sum()) < 1e-12
    task = by_pairs(scores * 1e9, grades)[0]  # misordered pairs, ties among them
    assert losses[0] - weights @ scores >= task - 1e-9
    order = list(range(len(scores)))
    random.shuffle(order)
    moved, moved_weights = oracle(np.ascontiguousarray(scores[order]), np.ascontiguousarray(grades[order]), offsets)
    assert moved[0] == pytest.approx(losses[0])
    np.testing.assert_allclose(moved_weights, weights[order], atol=1e-12)


def test_two_grades_are_the_interleaved_auc():
    rng = np.random.default_rng(1)
    offsets = np.array([0, 30, 31, 80])
    scores, grades = rng.normal(size=80), rng.integers(0, 2, 80)
    ours, others, theirs = oracle(scores, grades, offsets), np.empty(3), np.empty(80)
    Oracle("auc").most_violated_block(scores, grades.astype(np.int8), offsets, others, theirs)
    np.testing.assert_allclose(ours[0], others)
    np.testing.assert_allclose(ours[1], theirs, atol=1e-12)
