"""Recall at k: the share of pairs whose item is among the k best of their query, all items ranked.

The list of a query is made once, however many pairs it has.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Bools, Ints
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.factors.cascade import Cascade
from slatewise.factors.training import Validation
from slatewise.recommend.evaluation import ranks_in, recall_of


def recall_at(
    cascade: Cascade, queries: Ints, items: Ints, ks: tuple[int, ...], executor: Executor = ONE_THREAD
) -> dict[int, float]:
    """Return the recall at each k."""
    distinct, own = np.unique(queries, return_inverse=True)
    return recall_of(cascade.top(distinct, min(max(ks), cascade.n_items), executor=executor).items, own, items, ks)


def hits_at(cascade: Cascade, held: Validation, executor: Executor = ONE_THREAD) -> Bools:
    """Say of each held-out pair whether its item is among the k best of its query."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, min(held.k, cascade.n_items), executor=executor).items
    return ranks_in(lists, own, held.items) < lists.shape[1]
