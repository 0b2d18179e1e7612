"""Recall at k: the share of pairs whose item is among the k best of their query, all items ranked.

The list of a query is made once, however many pairs it has.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.latent.cascade import Cascade
from slatewise.latent.tables import Ints
from slatewise.latent.training import Flags, Validation

PAIRS_AT_ONCE = 8192
"""The comparison takes so many times the depth in bytes."""


def recall_at(
    cascade: Cascade, queries: Ints, items: Ints, ks: tuple[int, ...], executor: Executor = ONE_THREAD
) -> dict[int, float]:
    """Return the recall at each k."""
    distinct, own = np.unique(queries, return_inverse=True)
    return recall_of(cascade.top(distinct, min(max(ks), cascade.n_items), executor=executor).items, own, items, ks)


def hits_at(cascade: Cascade, held: Validation, executor: Executor = ONE_THREAD) -> Flags:
    """Say of each held-out pair whether its item is among the k best of its query."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, min(held.k, cascade.n_items), executor=executor).items
    return ranks_in(lists, own, held.items) < lists.shape[1]


def recall_of(lists: Ints, own: Ints, items: Ints, ks: tuple[int, ...]) -> dict[int, float]:
    """Return the recall at each k by lists, of which each pair has its own."""
    ranks, length = ranks_in(lists, own, items), lists.shape[1]
    return {k: float(np.mean(ranks < min(k, length))) for k in ks}


def ranks_in(lists: Ints, own: Ints, items: Ints) -> Ints:
    """Return the rank of each pair's item in its list, from 0; the length of the list where the item is missing."""
    length, ranks = lists.shape[1], np.empty(len(own), dtype=np.int64)
    for first in range(0, len(own), PAIRS_AT_ONCE):
        rows = slice(first, first + PAIRS_AT_ONCE)
        hit = lists[own[rows]] == items[rows, None]
        ranks[rows] = np.where(hit.any(axis=1), hit.argmax(axis=1), length)
    return ranks
