"""Slow, independent judges: every list, every ranking. They share no code with the package."""

from itertools import permutations

import numpy as np


def star_matrix(pair, core, n_items):
    """The full symmetric G of a c-star model."""
    G = np.zeros((n_items, n_items))
    for a, item in enumerate(core):
        G[item, :] = pair[a]
        G[:, item] = pair[a]
    return G


def all_rankings(n_items):
    """Every order of at most 7 items: order[r] is the item at rank r."""
    if n_items > 7:
        raise ValueError(f"n_items: expected at most 7, found {n_items}")
    return [np.array(order, dtype=np.int64) for order in permutations(range(n_items))]


def linear_score(s, c, a, b, order):
    """f of one ranking with a linear loss added."""
    return sum(s[item] * c[rank] + b[item] * a[rank] for rank, item in enumerate(order))


def best_linear(s, c, a, b):
    """The best score over all rankings."""
    return max(linear_score(s, c, a, b, order) for order in permutations(range(len(s))))


def quadratic_score(s, c, F, D, order):
    """f of one ranking: every ordered pair of items, an item with itself too."""
    place = {item: rank for rank, item in enumerate(order)}
    items = range(len(s))
    return sum(s[i] * c[place[i]] for i in items) + sum(F[i][j] * D[place[i]][place[j]] for i in items for j in items)


def best_quadratic(s, c, F, D):
    """The best score over all rankings, from one table lookup a ranking."""
    orders = np.array(list(permutations(range(len(s)))))
    pairs = np.einsum("rkl,kl->r", F[orders[:, :, None], orders[:, None, :]], D)
    return float((s[orders] @ c + pairs).max())
