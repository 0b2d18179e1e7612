"""The losses as docs/metric.rst defines them, against the loss that the oracles report.

Scores far apart outweigh every loss: the most violated ranking is then the ranking by score, ties in their worst order.
"""

from math import ceil, log2

import numpy as np
import pytest

from slatewise.inference import most_violated

FAR = 1e6


def worst_order(scores, relevance):
    """Relevances from the first rank to the last; of items that tie, the least relevant one first."""
    return [z for _, z in sorted((-s, z) for s, z in zip(scores, relevance, strict=True) if z >= 0)]


def discount(rank):
    return 1.0 if rank <= 2 else 1.0 / log2(rank)


def loss_of_ranks(loss, ranks, P, N, k):
    """ranks: r_1 < .. < r_P, from 1."""
    cut = min(k, P + N)
    t = sum(r <= cut for r in ranks)
    if loss == "auc":
        return sum(r - i for i, r in enumerate(ranks, 1)) / (P * N)
    if loss == "precision":
        return 1 - t / min(cut, P)
    if loss == "map":
        return 1 - sum(i / r for i, r in enumerate(ranks, 1)) / P
    if loss == "mrr":
        return 1 - 1 / ranks[0]
    if loss == "knn":
        return 1.0 if 2 * t <= cut else 0.0
    m = min(k, P)
    return 1 - sum(discount(r) for r in ranks if r <= m) / sum(discount(r) for r in range(1, m + 1))


def graded_loss(grades, k):
    def dcg(ranked):
        return sum((2**z - 1) * discount(r) for r, z in enumerate(ranked[:k], 1))

    return 1 - dcg(grades) / dcg(sorted(grades, reverse=True))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("loss", ["auc", "precision", "map", "mrr", "ndcg", "knn"])
def test_of_relevant_and_irrelevant_items(loss, k):
    rng = np.random.default_rng(k)
    for _ in range(60):
        n = int(rng.integers(2, 12))
        relevance = rng.choice([1, 1, 0, 0, -1], size=n)
        relevance[:2] = 1, 0
        scores = rng.integers(0, 6, n).astype(float)  # many ties
        z = worst_order(scores, relevance)
        ranks = [r for r, one in enumerate(z, 1) if one == 1]
        expected = loss_of_ranks(loss, ranks, len(ranks), len(z) - len(ranks), k)
        assert most_violated(loss, FAR * scores, relevance, k).loss == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_of_grades(k):
    rng = np.random.default_rng(k)
    for _ in range(60):
        n = int(rng.integers(2, 8))
        grades = rng.choice([-1, 0, 1, 2, 3], size=n)
        grades[:2] = 2, 0
        scores = rng.permutation(n).astype(float)
        scores[rng.integers(n)] = scores[0]
        expected = graded_loss(worst_order(scores, grades), k)
        assert most_violated("graded_ndcg", FAR * scores, grades, k).loss == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", range(1, 9))
def test_so_many_irrelevant_items_in_front_lose_a_vote(k):
    lost = [b for b in range(k + 1) if loss_of_ranks("knn", range(b + 1, b + 9), 8, 8, k) == 1]
    assert min(lost) == ceil(k / 2)
