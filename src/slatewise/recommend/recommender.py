"""What all recommenders share: a predictor that is made once of what fit learned, and the methods that rank with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.arrays import Ints
from slatewise.core.declarations import learned
from slatewise.core.ids import Ids
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.estimators.base import Estimator
from slatewise.estimators.sklearn import check_is_fitted
from slatewise.recommend.evaluation import recall_of
from slatewise.recommend.filters import check_depths, check_k, check_lengths
from slatewise.recommend.ids import Unknown, number_ids

if TYPE_CHECKING:
    from slatewise.recommend.filters import ItemFilter, Seen

Predictor = TypeVar("Predictor")
DEFAULT_K = 10
SCORE_DEPTH = 20
"""Of the recall that ``score`` returns."""


class FittedModel(ABC, Generic[Predictor]):
    """Keeps the predictor that is made of the learned attributes."""

    n_jobs: int | None
    _predictor: tuple[tuple[Any, ...], Predictor] | None = None
    """What the predictor was made of, and the predictor; neither copied nor saved."""

    @abstractmethod
    def _freeze(self) -> Predictor:
        """Return the predictor of what was learned."""

    def _model(self) -> Predictor:
        """Return the predictor; made again where a learned attribute was set since."""
        check_is_fitted(cast("Any", self))
        kind: Any = type(self)
        source = tuple(getattr(self, name, None) for name in (*kind._learned, *kind._parts))
        if self._predictor is None or any(a is not b for a, b in zip(self._predictor[0], source, strict=True)):
            self._predictor = source, self._freeze()
        return self._predictor[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made of the rest."""
        return {name: value for name, value in cast("Any", super()).__getstate__().items() if name != "_predictor"}


class Batch(Protocol):
    """Checked queries, numbered as they were given, and what ranks for them."""

    @property
    def ids(self) -> Ids:
        """What each query is called."""
        ...

    @property
    def nothing_known(self) -> NDArray[np.bool_] | None:
        """Which queries nothing is known of; None: none."""
        ...

    def filtered(self, filters: Filters) -> ItemFilter:
        """Check which items may be shown to each query."""
        ...

    def top(self, k: int, shown: ItemFilter, executor: Executor) -> tuple[Ints, NDArray[Any]]:
        """Return the k best items and their scores, (queries, k); item -1 where fewer are left."""
        ...

    def scores(self, items: Ints, executor: Executor) -> NDArray[Any]:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        ...


class Filters(NamedTuple):
    """The filters of ``rank``, as they were given."""

    exclude: Any = None
    exclude_seen: Seen = False
    candidates: Any = None
    unknown: Unknown = "error"


class Recommender(FittedModel[Predictor], Estimator):
    """Rank all items for each query."""

    item_ids_: Ids = learned(rules.IDS, "Ids of the items, ascending.")

    def rank(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
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
            True: do not show the items of a query's history; "last": not its last item.
        candidates
            The only items to show: ids for all queries, or a sequence of ids for each, or a sparse matrix (queries,
            items).
        unknown
            Ids that fit never saw: "error", or "ignore" with a warning that counts them. Then items are left out of
            histories, of ``exclude`` and of ``candidates``, and a query of which nothing is known gets the same list
            as all others like it, marked in ``nothing_known`` of the answer.
        n_jobs
            Threads; None: as the parameter of the estimator says.
        """
        batch = self._batch(queries, unknown, self._executor(n_jobs))
        return self._ranked(batch, k, Filters(exclude, exclude_seen, candidates, unknown), n_jobs)

    def scores(
        self, queries: Any, items: Any, *, unknown: Unknown = "error", n_jobs: int | None = None
    ) -> NDArray[Any]:
        """Return the scores that :meth:`rank` sorts by, of every query with every item given, (queries, items).

        Parameters
        ----------
        queries, unknown, n_jobs
            As in :meth:`rank`; an item that fit never saw has the score -inf.
        items
            Ids of the items, one per column.
        """
        return self._scored(self._batch(queries, unknown, self._executor(n_jobs)), items, unknown, n_jobs)

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
        n_jobs: int | None = None,
    ) -> dict[int, float]:
        """Return, for each k, the share of queries whose item is among the k best.

        Parameters
        ----------
        queries
            As in :meth:`rank`.
        items
            The target of each query. None: of :class:`slatewise.data.Prefixes` the next item of each, and of sessions
            every item but the first, each after those before it.
        ks
            Depths of the recall.
        exclude, exclude_seen, candidates, unknown, n_jobs
            As in :meth:`rank`; targets that fit never saw count as not found.
        """
        filters = Filters(exclude, exclude_seen, candidates, unknown)
        batch, own, targets = self._judged(queries, items, filters, n_jobs)
        return self._recall(batch, own, targets, ks, filters, n_jobs)

    def score(self, queries: Any, items: Any = None) -> float:
        """Return recall at 20: the share of queries whose item is among the 20 best.

        Parameters
        ----------
        queries, items
            As in :meth:`recall`.
        """
        return self.recall(queries, items, (SCORE_DEPTH,))[SCORE_DEPTH]

    # --- parts -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def _batch(self, queries: Any, unknown: Unknown, executor: Executor) -> Batch:
        """Check queries."""

    def _continued(self, queries: Any) -> tuple[Any, Any]:
        """Return queries and their next items, which are both in what is given."""
        raise ValueError("items: expected one item per query, found None")

    def _executor(self, n_jobs: int | None) -> Executor:
        return Executor.of(self.n_jobs if n_jobs is None else n_jobs)

    def _ranked(self, batch: Batch, k: int, filters: Filters, n_jobs: int | None) -> Rankings:
        shown, n_items = batch.filtered(filters), len(self.item_ids_)
        check_k(min(k, n_items) if k == DEFAULT_K else k, n_items)
        items, scores = batch.top(min(int(k), n_items), shown, self._executor(n_jobs))
        return named(batch.ids, self.item_ids_, items, scores, batch.nothing_known)

    def _scored(self, batch: Batch, items: Any, unknown: Unknown, n_jobs: int | None) -> NDArray[Any]:
        numbers = number_ids("items", items, self.item_ids_, unknown=unknown, instead="have the score -inf")
        return batch.scores(numbers, self._executor(n_jobs))

    def _judged(self, queries: Any, items: Any, filters: Filters, n_jobs: int | None) -> tuple[Any, Ints, Ints]:
        """Return the queries, for each pair its query among them, and its target."""
        self._model()
        if items is None:
            queries, items = self._continued(queries)
        targets = self._targets(items, filters.unknown)
        batch = self._batch(queries, filters.unknown, self._executor(n_jobs))
        return batch, np.arange(len(batch.ids)), targets

    def _targets(self, items: Any, unknown: Unknown) -> Ints:
        return number_ids("items", items, self.item_ids_, unknown=unknown, instead="count as not found")

    def _recall(
        self, batch: Batch, own: Ints, targets: Ints, ks: Sequence[int], filters: Filters, n_jobs: int | None
    ) -> dict[int, float]:
        check_lengths(own, targets)
        depths = check_depths(ks)
        deepest = min(max(depths), len(self.item_ids_))
        items, _ = batch.top(deepest, batch.filtered(filters), self._executor(n_jobs))
        return recall_of(items, own, targets, depths)


def named(
    query_ids: Ids, item_ids: Ids, items: Ints, scores: NDArray[Any], nothing_known: NDArray[np.bool_] | None = None
) -> Rankings:
    """Return the ids of items found for each query; lists that have fewer are shorter."""
    there = items >= 0
    if there.all():
        return Rankings(query_ids, item_ids[items], scores, None, nothing_known)
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return Rankings.of_lists(query_ids, item_ids[items[there]], scores[there], offsets, nothing_known)
