"""A batch of queries, in all their forms, that a learnt model is asked to rank for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.executor import Executor
from slatewise.core.ids import one_or_more
from slatewise.core.rankings import Rankings
from slatewise.factors.among import top_among
from slatewise.factors.bags import asked_of
from slatewise.factors.base_scores import BaseScores
from slatewise.factors.cascade import FEW_QUERIES, Cascade, Device, TopItems
from slatewise.factors.engine import Factors
from slatewise.factors.explanation import SlateExplanation, explain_slates
from slatewise.factors.input import (
    AskedBags,
    Features,
    Ids,
    bag_queries,
    check_context,
    check_ids,
    featured_queries,
    own_items,
)
from slatewise.factors.model import LatentModel, inverse_lengths
from slatewise.factors.pair_terms import OwnItems
from slatewise.factors.queries import IdQueries, Queries, zero_queries
from slatewise.factors.tables import Ints, Singles, Table
from slatewise.latent.fold_in import FoldedQueries
from slatewise.recommend.filters import ItemFilter, Seen, check_exclude, check_filters, check_k
from slatewise.recommend.histories import SessionQueries
from slatewise.recommend.ids import Unknown, find_ids, number_ids
from slatewise.sessions.cross_fit import levels_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Queries numbered as they were given."""

    model: LatentModel
    ids: Ids
    """What each is called: its id, else its number."""
    queries: tuple[Queries, ...]
    """Of every stage, without what their lists add."""
    own_items: OwnItems | None = None
    base: BaseScores | None = None
    sessions: SessionQueries | None = None
    """Of queries that hold items: which."""
    by_id: bool = False
    """Whether a query is an id, which may be that of an item too."""
    nothing_known: NDArray[np.bool_] | None = None
    """Of which queries nothing is known: ids that fit never saw, and what holds nothing and comes without features;
    None: of none."""

    @classmethod
    def of_ids(cls, model: LatentModel, queries: Any, unknown: Unknown) -> QueryBatch:
        """Find the rows of ids; unknown ones to be ignored have zeros: the biases alone rank for them."""
        ids, n = _ids_of(queries, model.n_components), model.n_components
        rows = number_ids("queries", ids, model.query_ids, unknown=unknown, instead="get the order of the biases")
        vectors = [table.values[rows] for table in model.queries]
        for values in vectors:
            values[rows < 0, :n] = 0.0
        made = tuple(IdQueries(Table.fixed(values)) for values in vectors)
        own = own_items(ids, model.item_ids, model.own_weight)
        return cls(model, ids, made, own, by_id=True, nothing_known=marked(rows < 0))

    @classmethod
    def of_features(cls, model: LatentModel, features: Features) -> QueryBatch:
        """Multiply features, which are checked."""
        make = featured_queries(features, model.n_components)
        return cls(model, np.arange(features.shape[0]), tuple(make(table) for table in model.queries))

    @classmethod
    def of_sessions(
        cls, model: LatentModel, queries: Any, unknown: Unknown, query_features: Any, executor: Executor
    ) -> QueryBatch:
        """Add the rows of items and features up; where none is known there is nothing to add: the biases alone rank."""
        seen = SessionQueries.of(queries, model.item_ids, unknown)
        context, nothing = _context_of(model, query_features, len(seen)), seen.nothing_known
        if context is not None:
            nothing &= np.diff(context.indptr) == 0
        seen.warn_of_nothing_known("get the order of the biases", nothing)
        bags = asked_of(seen.items, seen.starts, seen.ends, model.window)
        levels = None if model.base is None else levels_of(model.base, seen, executor)
        asked = AskedBags(bags, np.arange(len(seen)), model.window or 1, levels, context)
        make = bag_queries(asked, len(model.item_ids), model.n_components)
        return cls(
            model,
            seen.ids,
            tuple(make(table) for table in model.queries),
            sessions=seen,
            nothing_known=marked(nothing),
        )

    @classmethod
    def of_rows(cls, model: LatentModel, queries: FoldedQueries) -> QueryBatch:
        """Take rows of fold_in as they are: U and V are the same at all stages, so one row serves all."""
        n, rows = model.n_components, np.asarray(queries)
        if rows.dtype.kind != "f" or rows.shape[1:] != (n,) or not np.isfinite(rows).all():
            raise ValueError(
                f"queries: expected ids, or finite rows of {n} numbers from fold_in, found {rows.dtype} {rows.shape}"
            )
        own = np.zeros((len(rows), model.queries[0].values.shape[1]), dtype=np.float32)
        own[:, :n], own[:, n] = rows, 1.0
        return cls(model, np.arange(len(rows)), (IdQueries(Table.fixed(own)),) * model.n_stages)

    @classmethod
    def on_base(cls, model: LatentModel, ids: Ids, base: BaseScores) -> QueryBatch:
        """Take what a base says of these queries."""
        return cls(model, ids, tuple(zero_queries(table) for table in model.items), base=base, by_id=True)

    def __len__(self) -> int:
        return len(self.ids)

    def cascade(self, stage: int, device: Device | None = None) -> Cascade:
        """Return what ranks by the stages up to this one, on a device."""
        parts = zip(self.queries[: stage + 1], self.model.items, strict=False)
        factors = tuple(Factors(queries, items, self.base) for queries, items in parts)
        model = self.model
        return Cascade(factors, model.pair, model.position_weights, self.own_items, model.quantized, device)

    def scores(self, stage: int, items: Ints, executor: Executor) -> Singles:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        scores = self.cascade(stage).scores(len(self), items, self.model.width(stage), executor)
        require_finite(scores)
        scores[:, items < 0] = -np.inf
        return scores

    def shown(self, k: int, exclude: Any, unknown: Unknown, exclude_seen: Seen, candidates: Any) -> ItemFilter:
        """Return what may be shown to each query; refuse more places than items."""
        item_ids = self.model.item_ids
        sessions = self._as_sessions(exclude_seen) if self.sessions is None else self.sessions
        shown = check_filters(sessions, item_ids, exclude, exclude_seen, candidates, unknown)
        check_k(k, len(item_ids))
        return shown

    def _as_sessions(self, exclude_seen: Seen) -> SessionQueries:
        """Return queries that are no sessions as such: an id holds the item that is called so, others hold nothing."""
        if exclude_seen is True and self.by_id:
            raise ValueError("exclude_seen: expected False or 'last' where queries are ids: exclude what they saw")
        if exclude_seen is not False and not self.by_id:
            raise ValueError(f"exclude_seen: expected False where queries are rows, found {exclude_seen!r}")
        places = find_ids(self.ids, self.model.item_ids) if self.by_id else np.full(len(self), -1)
        known = places >= 0
        ends = np.cumsum(known, dtype=np.int64)
        return SessionQueries(self.ids, places[known], ends - known, ends)

    def ranked_by(self, stage: int, shown: ItemFilter, device: Device | None = None) -> partial[TopItems]:
        """Return what ranks all that may be shown, when it is told how many places there are, and an executor."""
        cascade = self.cascade(stage, device)
        if shown.common is None and shown.own is None:
            return partial(cascade.top, np.arange(len(self)), exclude=shown.hidden)
        if device is not None:
            raise ValueError("device: expected None with candidates, which are ranked on the CPU, found a GPU")
        return partial(top_among, cascade, len(self), shown=shown)

    def explain(self, stage: int, k: int, shown: ItemFilter, executor: Executor) -> SlateExplanation:
        """Rank, and take the scores apart."""
        found = self.ranked_by(stage, shown)(k, executor=executor)
        require_finite(found.scores, found.items >= 0 if shown.may_be_short else None)
        return explain_slates(self.cascade(stage), self.model.pair, found.items, self.model.item_ids, executor)

    def rankings(self, found: TopItems, shown: ItemFilter) -> Rankings:
        """Name what was found, and mark queries of which nothing is known."""
        require_finite(found.scores, found.items >= 0 if shown.may_be_short else None)
        return named(self.ids, self.model.item_ids, found, self.nothing_known)


def named(query_ids: Ids, item_ids: Ids, found: TopItems, nothing_known: NDArray[np.bool_] | None = None) -> Rankings:
    """Return the ids of items found for each query; lists that have fewer are shorter."""
    there = found.items >= 0
    if there.all():
        return Rankings(query_ids, item_ids[found.items], found.scores, None, nothing_known)
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    ids, scores = item_ids[found.items[there]], found.scores[there]
    return Rankings.of_lists(query_ids, ids, scores, offsets, nothing_known)


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
    return named(model.item_ids[numbers], model.item_ids, found)


def require_finite(scores: Singles, there: NDArray[np.bool_] | None = None) -> None:
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


def _context_of(model: LatentModel, features: Any, n_queries: int) -> csr_array | None:
    """Return checked features of those who ask; zeros, with a warning, where fit had some and they have not."""
    if features is not None:
        if not model.n_context:
            raise ValueError("query_features: expected None where fit had none, found some")
        return check_context(features, n_queries, model.n_context)
    if not model.n_context:
        return None
    from scipy.sparse import csr_array

    warnings.warn(
        f"query_features: fit had {model.n_context} of them and these {n_queries} queries come without: "
        "they are answered as with zeros",
        stacklevel=4,
    )
    return cast("csr_array", csr_array((n_queries, model.n_context), dtype=np.float32))


def marked(nothing_known: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return the marks of an answer; None where there is nothing to mark."""
    return nothing_known if nothing_known.any() else None


def _ids_of(queries: Any, n_components: int) -> Ids:
    """Return ids; other arrays could be rows of fold_in, or ids in a column: whoever means rows has to say so."""
    ids = one_or_more("queries", queries)
    if ids.ndim == 2:
        raise ValueError(
            f"queries: expected ids, one-dimensional, or rows of {n_components} numbers as fold_in returns "
            f"them, found {ids.dtype} {ids.shape}; an array that was made by fold_in says so by "
            "rows.view(slatewise.latent.fold_in.FoldedQueries)"
        )
    return check_ids("queries", ids)
