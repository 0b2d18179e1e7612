"""Recall of lists, and the gain of each query."""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats, Ints

GAIN_DEPTH = 20
PAIRS_AT_ONCE = 8192
"""The comparison takes this number times the depth in bytes."""


def recall_of(lists: Ints, own: Ints, items: Ints, ks: tuple[int, ...]) -> dict[int, float]:
    """Return the recall at each k by lists, of which each pair has its own."""
    ranks, length = ranks_in(lists, own, items), lists.shape[1]
    return {k: float(np.mean(ranks < min(k, length))) for k in ks}


def ranks_in(lists: Ints, own: Ints, items: Ints) -> Ints:
    """Return the rank of each pair's item in its list, from 0; its length where it is missing, as -1 is."""
    length, ranks = lists.shape[1], np.empty(len(own), dtype=np.int64)
    for first in range(0, len(own), PAIRS_AT_ONCE):
        rows = slice(first, first + PAIRS_AT_ONCE)
        wanted = items[rows, None]
        hit = (lists[own[rows]] == wanted) & (wanted >= 0)
        ranks[rows] = np.where(hit.any(axis=1), hit.argmax(axis=1), length)
    return ranks


def gains_of(places: Ints, depth: int = GAIN_DEPTH) -> Floats:
    """Return 1 / log2(rank + 1) of each query from the number of items ahead of its target; -1: not ranked, gain 0."""
    near = (places >= 0) & (places < depth)
    return np.where(near, 1.0 / np.log2(np.where(near, places, 0) + 2.0), 0.0)
