"""What all recommenders share: a predictor that is made once of what fit learned, and the methods that rank with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

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
from slatewise.recommend.filters import DEFAULT_K, RankOptions, check_depths, check_lengths
from slatewise.recommend.ids import Unknown, number_ids

if TYPE_CHECKING:
    from slatewise.recommend.filters import Seen

Predictor = TypeVar("Predictor")
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

    def top(self, k: int, options: RankOptions, executor: Executor) -> tuple[Ints, NDArray[Any]]:
        """Return the k best items that the filters leave and their scores, (queries, k); item -1 where fewer are left.

        ``k`` and the filters are checked here.
        """
        ...

    def scores(self, items: Ints, executor: Executor) -> NDArray[Any]:
        """Return the score of every query with each of these items, (queries, items); -inf for item -1."""
        ...


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
        return self._ranked(queries, k, RankOptions(exclude, exclude_seen, candidates, unknown, n_jobs=n_jobs))

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
        return self._scored(queries, items, RankOptions(unknown=unknown, n_jobs=n_jobs))

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
        options = RankOptions(exclude, exclude_seen, candidates, unknown, n_jobs=n_jobs)
        return self._recalled(queries, items, ks, options)

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
    def _batch(self, model: Predictor, queries: Any, options: RankOptions, executor: Executor) -> Batch:
        """Check queries."""

    def _continued(self, queries: Any) -> tuple[Any, Any]:
        """Return queries and their next items, which are both in what is given."""
        raise ValueError("items: expected one item per query, found None")

    def _distinct(self, queries: Any) -> tuple[Any, Ints | None]:
        """Return queries to rank once each, and which of them every given one is; None: they are those given."""
        return queries, None

    def _read(self, queries: Any, options: RankOptions) -> tuple[Batch, Executor]:
        """Return the checked queries with what ranks for them, and the threads to take."""
        executor = Executor.of(self.n_jobs if options.n_jobs is None else options.n_jobs)
        return self._batch(self._model(), queries, options, executor), executor

    def _ranked(self, queries: Any, k: int, options: RankOptions) -> Rankings:
        batch, executor = self._read(queries, options)
        items, scores = batch.top(k, options, executor)
        return named(batch.ids, self.item_ids_, items, scores, batch.nothing_known)

    def _scored(self, queries: Any, items: Any, options: RankOptions) -> NDArray[Any]:
        batch, executor = self._read(queries, options)
        numbers = number_ids("items", items, self.item_ids_, unknown=options.unknown, instead="have the score -inf")
        return batch.scores(numbers, executor)

    def _recalled(self, queries: Any, items: Any, ks: Sequence[int], options: RankOptions) -> dict[int, float]:
        self._model()
        if items is None:
            queries, items = self._continued(queries)
        targets = number_ids("items", items, self.item_ids_, unknown=options.unknown, instead="count as not found")
        own, depths = None, check_depths(ks)
        if options.exclude is None and options.candidates is None:  # else each may have filters of its own
            queries, own = self._distinct(queries)
        batch, executor = self._read(queries, options)
        own = np.arange(len(batch.ids)) if own is None else own
        check_lengths(own, targets)
        found, _ = batch.top(min(max(depths), len(self.item_ids_)), options, executor)
        return recall_of(found, own, targets, depths)


def named(
    query_ids: Ids, item_ids: Ids, items: Ints, scores: NDArray[Any], nothing_known: NDArray[np.bool_] | None = None
) -> Rankings:
    """Return the ids of items found for each query; lists that have fewer are shorter."""
    there = items >= 0
    if there.all():
        return Rankings(query_ids, item_ids[items], scores, None, nothing_known)
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return Rankings.of_lists(query_ids, item_ids[items[there]], scores[there], offsets, nothing_known)
