"""Recall at k: the share of pairs whose item is among the k best of their query, all items ranked.

The list of a query is made once, however many pairs it has.
"""

from __future__ import annotations

import numpy as np

from slatewise.latent.engine import Factors
from slatewise.latent.tables import Ints
from slatewise.latent.top_k import top_items


def pair_ranks(factors: Factors, queries: Ints, items: Ints, deepest: int, n_threads: int | None = None) -> Ints:
    """Return the rank of each pair's item, from 0; ``deepest`` where it is not among that many best."""
    distinct, own = np.unique(queries, return_inverse=True)
    lists = top_items(factors.queries, distinct, factors.items.values, deepest, n_threads=n_threads).items
    ranks = np.empty(len(queries), dtype=np.int64)
    for first in range(0, len(queries), 8192):  # the comparison takes (pairs, deepest) bytes
        rows = slice(first, first + 8192)
        hit = lists[own[rows]] == items[rows, None]
        ranks[rows] = np.where(hit.any(axis=1), hit.argmax(axis=1), deepest)
    return ranks


def recall_at(
    factors: Factors, queries: Ints, items: Ints, ks: tuple[int, ...], n_threads: int | None = None
) -> dict[int, float]:
    """Return the recall at each k."""
    deepest = min(max(ks), len(factors.items.values))
    ranks = pair_ranks(factors, queries, items, deepest, n_threads)
    return {k: float(np.mean(ranks < min(k, deepest))) for k in ks}
