"""Why an item stands where it does: its own score, its bias, and what each item of the list before it added or took.

f(q, d)  =  (U q).(V d)  +  b_d  +  sum_{j <= k} w_j (S d).(S dbar_j)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.latent.pair_terms import PairTerm
from slatewise.latent.tables import Ints, Singles

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SlateExplanation:
    """The parts of the scores of ranked items: for each query its slate, best first, and the list that moved it."""

    items: NDArray[Any]
    """(queries, k) ids of the ranked items; -1 or an empty string where so many are excluded that none is left."""
    own: Floats
    """(queries, k) what query and item have in common, or the base's score; -inf where there is no item."""
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
    vectors: Singles,
    values: Singles,
    pair: PairTerm,
    items: Ints,
    lists: Ints,
    weights: Singles,
    item_ids: NDArray[Any],
) -> SlateExplanation:
    """Take the scores of ranked items apart.

    Parameters
    ----------
    vectors
        [U q | 1 | ...], a row a query.
    values
        [V d | b_d | S d | ...], a row an item.
    pair
        How a list moves an item; its columns begin after those of the bias.
    items, lists, weights
        Ranked items, (queries, k), the lists that moved them, and the weight of each place; -1 where nothing is.
    item_ids
        Id of every item.
    """
    bias, rows = pair.S.start - 1, values[items].astype(np.float64)
    own = np.einsum("qf,qif->qi", vectors[:, :bias].astype(np.float64), rows[..., :bias])
    moved_by = moved_by_list(values, pair, items, lists, weights)
    nobody = items < 0
    own[nobody], rows[nobody] = -np.inf, 0.0
    return SlateExplanation(shown_ids(item_ids, items), own, rows[..., bias], shown_ids(item_ids, lists), moved_by)


def shown_ids(item_ids: NDArray[Any], numbers: Ints) -> NDArray[Any]:
    """Return the ids of items; -1, or an empty string, where there is none (number -1)."""
    nothing = item_ids.dtype.type(-1 if item_ids.dtype.kind == "i" else "")
    return np.where(numbers < 0, nothing, item_ids[numbers])


def moved_by_list(values: Singles, pair: PairTerm, items: Ints, lists: Ints, weights: Singles) -> Floats:
    """Return w_j (S d).(S dbar_j), (queries, items, list), from the items' table of a stage; 0 for item -1."""
    moved = values[items][..., pair.S.start : pair.S.stop].astype(np.float64)
    listed = values[lists][..., pair.listed.start : pair.listed.stop].astype(np.float64)
    moved[items < 0] = 0.0
    return np.einsum("qif,qjf->qij", moved, listed) * np.where(lists < 0, 0.0, weights)[:, None, :]
