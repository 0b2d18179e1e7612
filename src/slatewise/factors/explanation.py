"""Why an item stands where it does: its own score, its bias, and what each item of the list before it added or took.

f(q, d)  =  (U q).(V d)  +  b_d  +  sum_{j <= k} w_j (S d).(S dbar_j)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.cascade import Cascade
from slatewise.factors.pair_terms import PairTerm


@dataclass(frozen=True, eq=False)
class SlateExplanation:
    """The parts of the scores of ranked items: for each query its slate, best first, and the list that moved it."""

    items: NDArray[Any]
    """(queries, k) ids of the ranked items; -1 or an empty string where so many are excluded that none is left."""
    own: Floats
    """(queries, k) what query and item have in common, or the base's score; -inf where there is no item. What an item
    gets for being in its session already is in here."""
    bias: Floats
    """(queries, k) what the item has with any query."""
    neighbours: NDArray[Any]
    """(queries, length) ids of the list of the stage before, best first, the query's own item last where it has a
    weight (-1 or an empty string where the query is no item); no columns at the first stage."""
    moved_by: Floats
    """(queries, k, length) what each neighbour added to each item, or took where it is negative."""

    @property
    def score(self) -> Floats:
        """(queries, k) the sum of all parts."""
        return self.own + self.bias + self.moved_by.sum(axis=2)


def explain_slates(
    cascade: Cascade,
    pair: PairTerm,
    ranked: Ints,
    item_ids: NDArray[Any],
    executor: Executor,
) -> SlateExplanation:
    """Take the scores of ranked items apart.

    Parameters
    ----------
    cascade
        What has ranked them.
    pair
        How a list moves an item; its columns come after V and the bias, or first, on a base.
    ranked
        (queries, k) items; -1 where nothing is.
    item_ids
        Id of every item.
    executor
        Makes the lists of the stage before.
    """
    n_queries, last, nobody = len(ranked), cascade.stages[-1], ranked < 0
    lists, weights = cascade.handed_over(n_queries, executor)
    values, numbers = last.items.values, np.arange(n_queries)
    moved_by = moved_by_list(values, pair, ranked, lists, weights)
    if last.base is not None:
        own, bias = cascade.base_scores(ranked).astype(np.float64), np.zeros(ranked.shape)
    else:
        place, rows = pair.S.start - 1, values[ranked].astype(np.float64)
        vectors = last.queries.vectors(numbers).astype(np.float64)
        own = np.einsum("qf,qif->qi", vectors[:, :place], rows[..., :place]) + cascade.base_scores(ranked)
        bias = np.where(nobody, 0.0, rows[..., place])
    own[nobody] = -np.inf
    return SlateExplanation(shown_ids(item_ids, ranked), own, bias, shown_ids(item_ids, lists), moved_by)


def shown_ids(item_ids: NDArray[Any], numbers: Ints) -> NDArray[Any]:
    """Return the ids of items; -1, or an empty string, where there is none (number -1)."""
    nothing = item_ids.dtype.type(-1 if item_ids.dtype.kind == "i" else "")
    return np.where(numbers < 0, nothing, item_ids[numbers])


def moved_by_list(values: Singles, pair: PairTerm, items: Ints, lists: Ints, weights: Singles) -> Floats:
    """Return what each place of a list adds, such as w_j (S d).(S dbar_j), (queries, items, list); 0 for item -1."""
    if not lists.shape[1]:
        return np.zeros((*items.shape, 0))
    products = np.zeros((*items.shape, lists.shape[1]))
    for moved, listed in pair.joins:
        rows = values[items][..., moved.start : moved.stop].astype(np.float64)
        rows[items < 0] = 0.0
        products += np.einsum("qif,qjf->qij", rows, values[lists][..., listed.start : listed.stop].astype(np.float64))
    return products * np.where(lists < 0, 0.0, weights)[:, None, :]
