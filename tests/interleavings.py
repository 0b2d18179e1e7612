"""Judges of the oracles of metric learning to rank. They share no code with the package."""

from itertools import combinations, permutations

import numpy as np


def task_loss(loss, z, k):
    """Delta of a ranked list of relevances z, from the definition."""
    z, n, P = np.asarray(z), len(z), int(sum(z))
    hits = [r for r in range(n) if z[r]]
    if loss == "auc":
        return sum(r - i for i, r in enumerate(hits)) / (P * (n - P))
    if loss == "map":
        return 1 - sum((i + 1) / (r + 1) for i, r in enumerate(hits)) / P
    if loss == "mrr":
        return 1 - 1 / (hits[0] + 1)
    if loss == "precision":
        return 1 - sum(z[: min(k, n)]) / min(k, n, P)
    if loss == "knn":
        return float(sum(z[: min(k, n)]) <= min(k, n) / 2)
    discounts = [1 / np.log2(max(r + 1, 2)) for r in range(min(k, P))]
    return 1 - sum(d for r, d in enumerate(discounts) if z[r]) / sum(discounts)


def all_places(n_good, n_bad):
    """Where the relevant items may stand, one choice for each nondecreasing m."""
    return combinations(range(n_good + n_bad), n_good)


def largest_hinge(loss, s, z, k):
    """The hinge by trying every m: relevant and irrelevant items in score order."""
    good, bad = -np.sort(-s[z == 1]), -np.sort(-s[z == 0])
    P, N = len(good), len(bad)
    if P == 0 or N == 0:
        return 0.0
    up_to = np.append(0.0, np.cumsum(bad))
    best = -np.inf
    for places in all_places(P, N):
        m = np.array(places) - np.arange(P)
        ranked = np.zeros(P + N, dtype=int)
        ranked[list(places)] = 1
        score = 2 * np.sum(up_to[m] - m * good) / (P * N)
        best = max(best, task_loss(loss, ranked, k) + score)
    return best


def largest_hinge_of_all_rankings(delta, s, z):
    """The hinge by trying every permutation, psi summed over pairs; ``delta`` maps ranked relevances to losses."""
    orders = np.array(list(permutations(range(len(s)))))
    place = np.argsort(orders, axis=1)
    good, bad = np.flatnonzero(z == 1), np.flatnonzero(z == 0)
    sign = np.where(place[:, good, None] < place[:, None, bad], 1.0, -1.0)
    gaps = s[good][:, None] - s[bad]
    return float((delta(z[orders]) + ((sign - 1) * gaps).sum(axis=(1, 2)) / gaps.size).max())


def largest_hinge_of_long_lists(loss, s, z, k):
    """The hinge by a walk over all counts (a relevant, b irrelevant) in front, O(PN), one row of b at a time."""
    good, bad = -np.sort(-s[z == 1]), -np.sort(-s[z == 0])
    P, N = len(good), len(bad)
    b, cut = np.arange(N + 1), min(k, P + N)
    up_to = np.append(0.0, np.cumsum(bad))
    discounts = 1 / np.log2(np.maximum(np.arange(1, P + N + 1), 2.0)) * (np.arange(P + N) < min(k, P))

    def placed(a):
        """What Delta gains when relevant item a comes after b irrelevant ones."""
        return {
            "auc": b / (P * N),
            "map": b / (a + b) / P,
            "mrr": (a == 1) * (b / (b + 1)),
            "precision": 1 / min(cut, P) * (a <= min(cut, P)) - (a + b <= cut) / min(cut, P),
            "ndcg": discounts[a - 1] / discounts.sum() - discounts[a + b - 1] / discounts.sum(),
            "knn": 0.0 * b,
        }[loss]

    def best(may_win):
        values = np.zeros(N + 1)
        for a in range(P + 1):
            if a > 0:
                values = values + 2 * (up_to - b * good[a - 1]) / (P * N) + placed(a)
            at = cut - a
            if not may_win and 2 * a > cut and 0 <= at <= N:  # nobody passes a majority after the first k
                values[at] = -np.inf
                values[:at] = np.maximum.accumulate(values[:at])
                values[at + 1 :] = np.maximum.accumulate(values[at + 1 :])
            else:
                values = np.maximum.accumulate(values)
        return values[N]

    return max(best(True), 1 + best(False)) if loss == "knn" else best(True)


def graded_score(orders, s, z):
    """What rankings score above the ideal one: psi summed over all pairs of unlike grades."""
    place = np.argsort(orders, axis=1)
    higher, lower = np.nonzero(z[:, None] > z)
    wrong = place[:, higher] > place[:, lower]
    return -2 * (wrong * (s[higher] - s[lower])).mean(axis=1)


def largest_hinge_of_graded_rankings(delta, s, z):
    """The hinge by trying every permutation; ``delta`` maps ranked grades to losses."""
    orders = np.array(list(permutations(range(len(s)))))
    return float((delta(z[orders]) + graded_score(orders, s, z)).max())
