"""Queries to rank for, and the stages that rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints, Singles
from slatewise.core.ids import Ids
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.factors.among import top_among
from slatewise.factors.base_scores import BaseScores
from slatewise.factors.cascade import FEW_QUERIES, Cascade, Device, TopItems
from slatewise.factors.engine import Factors
from slatewise.factors.explanation import SlateExplanation, explain_slates
from slatewise.factors.model import LatentModel, inverse_lengths
from slatewise.factors.pair_terms import OwnItems
from slatewise.factors.queries import IdQueries, Queries
from slatewise.factors.tables import Table
from slatewise.recommend.filters import ItemFilter, check_exclude, check_filters, check_k
from slatewise.recommend.histories import SessionQueries
from slatewise.recommend.ids import find_ids
from slatewise.recommend.recommender import Filters, named


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Queries, numbered as they were given, to be ranked by the stages up to one of them."""

    model: LatentModel
    ids: Ids
    """What each is called: its id, else its number."""
    queries: tuple[Queries, ...]
    """Of every stage, without what their lists add."""
    histories: SessionQueries | None = None
    """Of sessions: their items. Of ids: the item of the same id."""
    has_items: bool = True
    """Whether the histories are all that the queries were seen with."""
    self_items: OwnItems | None = None
    base: BaseScores | None = None
    nothing_known: NDArray[np.bool_] | None = None
    stage: int = -1
    """The one that ranks; -1: the last."""
    device: Device | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, stage: int | None, device: Device | None = None) -> QueryBatch:
        """Return the same queries to be ranked by another stage, on a device."""
        return replace(self, stage=self.model.check_stage(stage), device=device)

    @property
    def cascade(self) -> Cascade:
        """What ranks."""
        stage = self.model.n_stages - 1 if self.stage < 0 else self.stage
        parts = zip(self.queries[: stage + 1], self.model.items, strict=False)
        factors = tuple(Factors(queries, items, self.base) for queries, items in parts)
        model = self.model
        return Cascade(factors, model.pair, model.position_weights, self.self_items, model.quantized, self.device)

    def filtered(self, filters: Filters) -> ItemFilter:
        """Check which items may be shown to each query."""
        histories, seen = self.histories, filters.exclude_seen
        if histories is None:
            if seen is not False:
                raise ValueError(f"exclude_seen: expected False where queries are rows, found {seen!r}")
            nothing = np.zeros(len(self), dtype=np.int64)
            histories = SessionQueries(self.ids, nothing[:0], nothing, nothing)
        elif seen is True and not self.has_items:
            raise ValueError("exclude_seen: expected False or 'last' where queries are ids: exclude what they saw")
        return check_filters(histories, self.model.item_ids, *filters)

    def top(self, k: int, shown: ItemFilter, executor: Executor) -> tuple[Ints, Singles]:
        """Return the k best items of each query and their scores; item -1 where fewer are left."""
        found = self._top(k, shown, executor)
        require_finite(found.scores, found.items >= 0 if shown.may_be_short else None)
        return found.items, found.scores

    def scores(self, items: Ints, executor: Executor) -> Singles:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        scores = self.cascade.scores(len(self), items, self.model.width(self.stage), executor)
        require_finite(scores)
        scores[:, items < 0] = -np.inf
        return scores

    def explain(self, k: int, shown: ItemFilter, executor: Executor) -> SlateExplanation:
        """Rank, and take the scores apart."""
        items, _ = self.top(k, shown, executor)
        return explain_slates(self.cascade, self.model.pair, items, self.model.item_ids, executor)

    def vectors(self, executor: Executor) -> Singles:
        """Return the vectors whose products with the items' are the scores."""
        factors = self.cascade.factors(len(self), executor)
        return factors.queries.vectors(np.arange(len(self)))[:, : self.model.width(self.stage)]

    def _top(self, k: int, shown: ItemFilter, executor: Executor) -> TopItems:
        if shown.common is None and shown.own is None:
            return self.cascade.top(np.arange(len(self)), k, shown.hidden, executor)
        if self.device is not None:
            raise ValueError("device: expected None with candidates, which are ranked on the CPU, found a GPU")
        return top_among(self.cascade, len(self), k, shown, executor)


def items_of_same_id(ids: Ids, item_ids: Ids) -> SessionQueries:
    """Return queries that are ids as histories of the item with the same id, or of nothing."""
    places = find_ids(ids, item_ids)
    known = places >= 0
    ends = np.cumsum(known, dtype=np.int64)
    return SessionQueries(ids, places[known], ends - known, ends)


def similar_items(model: LatentModel, numbers: Ints, k: int, executor: Executor) -> Rankings:
    """Rank the other items by the cosine of their rows of V with an item's."""
    hidden = check_exclude(model.item_ids[numbers, None], len(numbers), model.item_ids)
    check_k(k, len(model.item_ids) - 1)
    rows = model.items[0].values[:, : model.n_components]
    own = rows[numbers] * inverse_lengths(rows[numbers])[:, None]
    index = model.quantized_cosines() if len(numbers) <= FEW_QUERIES else None
    items = rows * inverse_lengths(rows)[:, None] if index is None else rows
    factors = Factors(IdQueries(Table.fixed(own)), Table.fixed(items))
    found = Cascade((factors,), quantized=lambda stage: index).top(np.arange(len(numbers)), k, hidden, executor)
    require_finite(found.scores)
    return named(model.item_ids[numbers], model.item_ids, found.items, found.scores)


def require_finite(scores: Singles, there: NDArray[Any] | None = None) -> None:
    """Raise ValueError where factors times a query are more than float32 has: such scores have no order.

    ``there``: where a list has an item at all; None: everywhere.
    """
    finite = np.isfinite(scores)
    wrong = ~(finite if there is None else finite | ~there).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"queries: expected finite scores, found others for query {int(np.flatnonzero(wrong)[0])}: "
            "its numbers are too large for float32"
        )


def marked(nothing_known: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return the marks of an answer; None where there is nothing to mark."""
    return nothing_known if nothing_known.any() else None
