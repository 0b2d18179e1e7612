"""The judge of metric learning: the hinge by enumerating every ranking of every query, from the definitions."""

from itertools import permutations

import numpy as np


def delta(loss, relevance, k):
    """What a ranking loses, its relevances given from the first rank to the last."""
    z = np.asarray(relevance)
    P, ranks = int(z.sum()), np.arange(1, len(z) + 1)
    N = len(z) - P
    if loss == "auc":
        good, bad = np.flatnonzero(z == 1), np.flatnonzero(z == 0)
        return (good[:, None] > bad).sum() / (P * N)
    if loss == "map":
        return 1.0 - (np.cumsum(z) / ranks)[z == 1].mean()
    if loss == "mrr":
        return 1.0 - 1.0 / (np.argmax(z == 1) + 1)
    top = min(k, len(z))
    if loss == "precision":
        return 1.0 - z[:top].sum() / min(top, P)
    if loss == "knn":
        return float(z[:top].sum() <= top / 2)
    top = min(k, P)
    discount = np.array([1.0, *1.0 / np.log2(np.arange(2, top + 1))])[:top]
    return 1.0 - z[:top] @ discount / discount.sum()


def planes(queries, items, relevance, loss, k, top=None):
    """For each query, (Delta, matrices A) of all rankings y: its hinge is max of Delta + <W, A>.

    ``top``: psi is a mean over P min(top, N) pairs instead of P N.
    """
    found = []
    for q, wanted in zip(queries, relevance, strict=True):
        there = np.flatnonzero(wanted >= 0)
        good, bad = there[wanted[there] == 1], there[wanted[there] == 0]
        if not len(good) or not len(bad):
            continue
        features = {i: -np.outer(q - items[i], q - items[i]) for i in there}
        losses, matrices = [], []
        for order in permutations(there):
            place = {item: rank for rank, item in enumerate(order)}
            A = sum(
                ((1.0 if place[i] < place[j] else -1.0) - 1.0) * (features[i] - features[j]) for i in good for j in bad
            )
            losses.append(delta(loss, wanted[list(order)], k))
            matrices.append(A / (len(good) * (len(bad) if top is None else min(top, len(bad)))))
        found.append((np.array(losses), np.array(matrices)))
    return found


def risk(planes_of, W):
    """Mean hinge."""
    return float(np.mean([(losses + np.tensordot(A, W, 2)).max() for losses, A in planes_of]))


def nearest_of(relevance, points, count):
    """Leave out what is relevant but not among the ``count`` nearest to the query, which is one of the points."""
    kept = relevance.copy()
    for q, wanted in enumerate(kept):
        near = sorted(np.flatnonzero(wanted == 1), key=lambda i: (((points[q] - points[i]) ** 2).sum(), i))
        wanted[near[count:]] = -1
    return kept


def relevant_by_class(y):
    """(n, n) relevance of rows for each other; nobody ranks itself."""
    y = np.asarray(y)
    relevance = (y[:, None] == y).astype(int)
    np.fill_diagonal(relevance, -1)
    return relevance
