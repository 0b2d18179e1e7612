"""Recommenders of several stages: ``stage`` and ``device`` beside the filters that all recommenders have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slatewise.core.arrays import Singles
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.factors.batch import QueryBatch
from slatewise.factors.device import check_device
from slatewise.factors.explanation import SlateExplanation
from slatewise.factors.model import LatentModel
from slatewise.recommend.filters import check_k
from slatewise.recommend.recommender import DEFAULT_K, Filters, Recommender

if TYPE_CHECKING:
    from slatewise.recommend.filters import Seen
    from slatewise.recommend.ids import Unknown


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
        where = check_device(device)
        batch = self._batch(queries, unknown, self._executor(n_jobs)).at(stage, where)
        return self._ranked(batch, k, Filters(exclude, exclude_seen, candidates, unknown), n_jobs)

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
        batch = self._batch(queries, unknown, self._executor(n_jobs)).at(stage)
        return self._scored(batch, items, unknown, n_jobs)

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
        where, filters = check_device(device), Filters(exclude, exclude_seen, candidates, unknown)
        batch, own, targets = self._judged(queries, items, filters, n_jobs)
        return self._recall(batch.at(stage, where), own, targets, ks, filters, n_jobs)

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
        batch = self._batch(queries, unknown, self._executor(n_jobs)).at(stage)
        filters = Filters(exclude, exclude_seen, candidates, unknown)
        return explained(batch, k, filters, self._executor(n_jobs))

    @abstractmethod
    def _batch(self, queries: Any, unknown: Unknown, executor: Executor) -> QueryBatch:
        """Check queries."""


def explained(batch: QueryBatch, k: int, filters: Filters, executor: Executor) -> SlateExplanation:
    """Rank, and take the scores apart."""
    shown, n_items = batch.filtered(filters), len(batch.model.item_ids)
    check_k(min(k, n_items) if k == DEFAULT_K else k, n_items)
    return batch.explain(min(int(k), n_items), shown, executor)
