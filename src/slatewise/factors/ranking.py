"""Ranking with what was learned: the frozen model, a batch of queries, explanations, and the methods of recommenders.

    f(q, d)  =  (U q).(V d)  +  b_d  +  sum_{j <= k} w_j (S d).(S dbar_j)

An explanation gives these parts apart: an item's own score, its bias, and what each item of the list of the stage
before added or took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats, Ints, Singles
from slatewise.core.ids import Ids
from slatewise.core.rankings import Rankings
from slatewise.core.rules import is_whole
from slatewise.core.running.executor import Executor
from slatewise.factors.engines.gpu import check_device
from slatewise.factors.pair_terms import PAIR_TERMS, OwnItems, PairTerm
from slatewise.factors.queries import IdQueries, Queries
from slatewise.factors.scoring import FEW_QUERIES, BaseScores, Cascade, Factors, require_finite, top_among
from slatewise.factors.tables import Segment, Table
from slatewise.recommend.filters import DEFAULT_K, RankOptions, check_exclude, check_filters, check_k
from slatewise.recommend.histories import SessionQueries
from slatewise.recommend.ids import find_ids
from slatewise.recommend.quantized import QuantizedIndex
from slatewise.recommend.recommender import Recommender, named

if TYPE_CHECKING:
    from slatewise.recommend.filters import Seen
    from slatewise.recommend.ids import Unknown


FEWEST_INDEXED = 1 << 15
"""Fewer items are as soon multiplied as looked up."""


@dataclass(frozen=True, eq=False)
class LatentModel:
    """The factors of all stages, and how a list moves an item.

    Indexes are made when they are first needed, and belong to the arrays as they are: factors changed by hand need a
    new array, not new numbers in the old one.
    """

    item_ids: Ids
    """In ascending order."""
    items: tuple[Table, ...]
    """A row per item of every stage: [V d | b_d | S d | T d], or A d and B d behind S d; without V and b on a base."""
    pair: PairTerm
    position_weights: Singles
    self_weight: float = 0.0
    queries: tuple[Table, ...] = ()
    """A row per query, or per feature of queries, of every stage: [U q | 1]; none where a base scores first."""
    indexes: dict[int | str, QuantizedIndex | None] = field(default_factory=dict[int | str, QuantizedIndex | None])
    """Those made so far, by stage."""

    @property
    def n_components(self) -> int:
        """The width of S."""
        return self.pair.S.stop - self.pair.S.start

    def check_stage(self, stage: int | None) -> int:
        """Return the number of a stage, by default of the last."""
        last = len(self.items) - 1 if stage is None else stage
        if not is_whole(last) or not 0 <= last < len(self.items):
            raise ValueError(f"stage: expected a number from 0 to {len(self.items) - 1}, found {stage!r}")
        return int(last)

    def width(self, stage: int) -> int:
        """Return how many numbers of a vector make its score: [U q | 1] with [V d | b], and p_q later."""
        return self.pair.joins[-1].moved.stop if stage else self.pair.S.start

    def quantized(self, stage: int) -> QuantizedIndex | None:
        """Return the index of the items of a stage; None where a product is as fast, or rows are not finite."""
        return self._index(stage, self.items[stage].values, self.width(stage))

    def quantized_cosines(self) -> QuantizedIndex | None:
        """Return the index whose scores are cosines with rows of V, for vectors of length 1."""
        return self._index("cosine", self.items[0].values, self.n_components)

    def _index(self, name: int | str, rows: Singles, width: int) -> QuantizedIndex | None:
        if len(rows) < FEWEST_INDEXED:
            return None
        if name not in self.indexes:
            factors = inverse_lengths(rows[:, :width]) if name == "cosine" else None
            self.indexes[name] = QuantizedIndex.of(rows, width, factors)
        return self.indexes[name]


def pair_term(pair: str, n_components: int, n_own: int) -> PairTerm:
    """Return how a list moves an item, where ``n_own`` columns come before those of S."""
    return PAIR_TERMS[pair](Segment(n_own, n_own + n_components, 0.0))


def inverse_lengths(rows: Singles) -> Singles:
    """Return what to multiply rows with to make their lengths 1."""
    return (1.0 / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)).astype(np.float32)


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
    stage: int | None = None
    """The one that ranks; None: the last."""

    def cascade(self, device: str | None = None) -> Cascade:
        """Return what ranks, on the CPU or on another device."""
        model, stage, where = self.model, self.model.check_stage(self.stage), check_device(device)
        parts = zip(self.queries[: stage + 1], model.items, strict=False)
        factors = tuple(Factors(queries, items, self.base) for queries, items in parts)
        return Cascade(factors, model.pair, model.position_weights, self.self_items, model.quantized, where)

    def top(self, k: int, options: RankOptions, executor: Executor) -> tuple[Ints, Singles]:
        """Return the k best items of each query and their scores; item -1 where fewer are left."""
        cascade, histories, seen = self.cascade(options.device), self.histories, options.exclude_seen
        if histories is None and seen is not False:
            raise ValueError(f"exclude_seen: expected False where queries are rows, found {seen!r}")
        if seen is True and not self.has_items:
            raise ValueError("exclude_seen: expected False or 'last' where queries are ids: exclude what they saw")
        if histories is None:
            nothing = np.zeros(len(self.ids), dtype=np.int64)
            histories = SessionQueries(self.ids, nothing[:0], nothing, nothing)
        k, shown = check_k(k, len(self.model.item_ids)), check_filters(histories, self.model.item_ids, options)
        may_be_short = shown.may_be_short
        if shown.common is None and shown.own is None:
            found = cascade.top(np.arange(len(self.ids)), k, shown.hidden, executor)
        elif cascade.device is None:
            found = top_among(cascade, len(self.ids), k, shown, executor)
        else:
            raise ValueError("device: expected None with candidates, which are ranked on the CPU, found a GPU")
        require_finite(found.scores, found.items >= 0 if may_be_short else None)
        return found.items, found.scores

    def scores(self, items: Ints, executor: Executor) -> Singles:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        width = self.model.width(self.model.check_stage(self.stage))
        scores = self.cascade().scores(len(self.ids), items, width, executor)
        require_finite(scores)
        scores[:, items < 0] = -np.inf
        return scores

    def explain(self, k: int, options: RankOptions, executor: Executor) -> SlateExplanation:
        """Rank, and take the scores apart."""
        items, _ = self.top(k, options, executor)
        return explain_slates(self.cascade(), self.model.pair, items, self.model.item_ids, executor)

    def vectors(self, executor: Executor) -> Singles:
        """Return the vectors whose products with the items' are the scores."""
        width = self.model.width(self.model.check_stage(self.stage))
        factors = self.cascade().factors(len(self.ids), executor)
        return factors.queries.vectors(np.arange(len(self.ids)))[:, :width]


def items_of_same_id(ids: Ids, item_ids: Ids) -> SessionQueries:
    """Return queries that are ids as histories of the item with the same id, or of nothing."""
    places = find_ids(ids, item_ids)
    known = places >= 0
    ends = np.cumsum(known, dtype=np.int64)
    return SessionQueries(ids, places[known], ends - known, ends)


def similar_items(model: LatentModel, numbers: Ints, k: int, executor: Executor) -> Rankings:
    """Rank the other items by the cosine of their rows of V with an item's."""
    hidden = check_exclude(model.item_ids[numbers, None], len(numbers), model.item_ids)
    check_k(k, len(model.item_ids) - 1, default=None)
    rows = model.items[0].values[:, : model.n_components]
    own = rows[numbers] * inverse_lengths(rows[numbers])[:, None]
    index = model.quantized_cosines() if len(numbers) <= FEW_QUERIES else None
    items = rows * inverse_lengths(rows)[:, None] if index is None else rows
    factors = Factors(IdQueries(Table.fixed(own)), Table.fixed(items))
    found = Cascade((factors,), quantized=lambda stage: index).top(np.arange(len(numbers)), k, hidden, executor)
    require_finite(found.scores)
    return named(model.item_ids[numbers], model.item_ids, found.items, found.scores)


def marked(nothing_known: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return the marks of an answer; None where there is nothing to mark."""
    return nothing_known if nothing_known.any() else None


@dataclass(frozen=True, eq=False)
class SlateExplanation:
    """The parts of the scores of ranked items: for each query its slate, best first, and the list that moved it."""

    items: NDArray[Any]
    """(queries, k) ids of the ranked items; -1 or an empty string where fewer items are left."""
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


class StagedRecommender(Recommender[LatentModel]):
    """Rank all items for each query by stages, each moved by the list of the one before."""

    def rank(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        stage: int | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
    ) -> Rankings:
        """Return the k best items of each query, best first; equal scores in the order of ids.

        A query for which fewer than k items are left has a shorter list.

        Parameters
        ----------
        queries
            As in :meth:`fit`.
        k
            The number of items, at most as many as there are. The default is capped by the size of the catalog.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        exclude_seen
            Of ids: "last" leaves out the item of the same id. What a query had in fit is not kept: use ``exclude``.
        candidates
            The only items to show: ids for all queries, or a sequence of ids for each, or a sparse matrix (queries,
            items).
        unknown
            Ids that fit never saw, or that are no rows of a base given as matrices: "error", or "ignore" with a warning
            that counts them. Then items are left out, and a query is ranked by the biases, marked in ``nothing_known``,
            or by the mean of the base's rows. A base that is an object decides by itself.
        stage
            The stage that ranks; default: the last. Of a reranker, 0 is the base itself.
        device
            "cuda", or "cuda:1" and so on: rank on a GPU, which pays for many queries. The same lists as on the CPU,
            except for scores that differ in their last digits. Needs ``pip install 'slatewise[gpu]'``; not with
            candidates. None or "cpu": the CPU, whatever the engine of fit was.
        n_jobs
            Threads; None: as the parameter of the estimator says.

        Returns
        -------
        Rankings
            ``query_ids`` are the ids given, or numbers from 0 for rows.
        """
        options = RankOptions(exclude, exclude_seen, candidates, unknown, None, stage, device, n_jobs)
        return self._ranked(queries, k, options)

    def scores(
        self,
        queries: Any,
        items: Any,
        *,
        unknown: Unknown = "error",
        stage: int | None = None,
        n_jobs: int | None = None,
    ) -> Singles:
        """Return the scores that :meth:`rank` sorts by, of every query with every item given, (queries, items).

        Parameters
        ----------
        queries, stage, n_jobs
            As in :meth:`rank`.
        items
            Ids of the items, one per column.
        unknown
            As in :meth:`rank`; an item that fit never saw has the score -inf.
        """
        return self._scored(queries, items, RankOptions(unknown=unknown, stage=stage, n_jobs=n_jobs))

    def recall(
        self,
        queries: Any,
        items: Any = None,
        ks: Sequence[int] = (5, 10, 20),
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        stage: int | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
    ) -> dict[int, float]:
        """Return, for each k, the share of pairs whose item is among the k best of all items for its query.

        Parameters
        ----------
        queries, items
            A query and an item for each pair.
        ks
            Depths of the recall.
        exclude, exclude_seen, candidates, unknown, stage, device, n_jobs
            As in :meth:`rank`; items that fit never saw count as not found.
        """
        options = RankOptions(exclude, exclude_seen, candidates, unknown, None, stage, device, n_jobs)
        return self._recalled(queries, items, ks, options)

    def explain(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        stage: int | None = None,
        n_jobs: int | None = None,
    ) -> SlateExplanation:
        """Return the lists of :meth:`rank` with the parts of each score: what moved the item, and by how much.

        Parameters
        ----------
        queries, k, exclude, exclude_seen, candidates, unknown, stage, n_jobs
            As in :meth:`rank`.
        """
        options = RankOptions(exclude, exclude_seen, candidates, unknown, stage=stage, n_jobs=n_jobs)
        batch, executor = self._read(queries, options)
        return cast("QueryBatch", batch).explain(k, options, executor)
