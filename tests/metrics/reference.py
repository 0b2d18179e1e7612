"""Slow definitions of every measure, straight from the formulas: the judge of the fast ones."""

from itertools import permutations, product
from math import log2, nan
from statistics import fmean

GAINS = {"exp2": lambda r: 2.0**r - 1, "linear": lambda r: r, "positive": lambda r: max(r, 0)}
DISCOUNTS = {"log2": lambda rank: 1 / log2(rank + 1), "letor": lambda rank: 1.0 if rank <= 2 else 1 / log2(rank)}


def orders(relevance, scores, ties, ids=None):
    """All orders, as lists of relevance by rank, that the tie rule allows; each with equal chance."""
    items = range(len(scores))
    if ties == "average":
        groups = [[i for i in items if scores[i] == s] for s in sorted(set(scores), reverse=True)]
        for parts in product(*(permutations(group) for group in groups)):
            yield [relevance[i] for part in parts for i in part]
        return
    chosen = sorted(items)
    if ties == "id":
        chosen = sorted(items, key=lambda i: str(ids[i]), reverse=True)
    elif ties == "worst":
        chosen = sorted(items, key=lambda i: relevance[i])
    elif ties == "best":
        chosen = sorted(items, key=lambda i: -relevance[i])
    yield [relevance[i] for i in sorted(chosen, key=lambda i: -scores[i])]


def expectation(of_order, relevance, scores, ties, ids=None):
    return fmean(of_order(order) for order in orders(relevance, scores, ties, ids))


def empty_value(empty):
    return nan if empty == "skip" else float(empty)


def precision(order, k=None, threshold=1, short="k", empty=0):
    flags = [r >= threshold for r in order]
    if not any(flags):
        return empty_value(empty)
    k = len(order) if k is None else k
    return sum(flags[:k]) / (min(k, len(order)) if short == "n" else k)


def recall(order, k=None, threshold=1, empty=0):
    flags = [r >= threshold for r in order]
    return sum(flags[:k]) / sum(flags) if any(flags) else empty_value(empty)


def break_even(order, threshold=1, empty=0):
    relevant = sum(r >= threshold for r in order)
    return precision(order, relevant, threshold) if relevant else empty_value(empty)


def average_precision(order, k=None, threshold=1, norm="relevant", empty=0):
    flags = [r >= threshold for r in order]
    if not any(flags):
        return empty_value(empty)
    k = len(order) if k is None else k
    total = sum(precision(order, rank, threshold) for rank in range(1, min(k, len(order)) + 1) if flags[rank - 1])
    return total / (min(k, sum(flags)) if norm == "reachable" else sum(flags))


def reciprocal_rank(order, k=None, threshold=1, empty=0):
    ranks = [rank for rank, r in enumerate(order, 1) if r >= threshold]
    if not ranks:
        return empty_value(empty)
    return 1 / ranks[0] if k is None or ranks[0] <= k else 0.0


def auc(order, threshold=1, empty="skip"):
    flags = [r >= threshold for r in order]
    pairs = [(i, j) for i in range(len(order)) for j in range(len(order)) if flags[i] and not flags[j]]
    return sum(i < j for i, j in pairs) / len(pairs) if pairs else empty_value(empty)


def mean_rank(order, threshold=1, empty="skip"):
    ranks = [rank for rank, r in enumerate(order, 1) if r >= threshold]
    return fmean(ranks) if ranks else empty_value(empty)


def dcg(order, k, gain, discount):
    return sum(GAINS[gain](r) * DISCOUNTS[discount](rank) for rank, r in enumerate(order[:k], 1))


def ndcg(order, k=None, gain="exp2", discount="log2", empty=0):
    best = max(dcg(other, k, gain, discount) for other in set(permutations(order)))
    # CatBoost's order of negative gains is by relevance, which for k < n is not always the best one.
    if min(order) < 0:
        best = dcg(sorted(order, reverse=True), k, gain, discount)
    return dcg(order, k, gain, discount) / best if best > 1e-12 else empty_value(empty)
