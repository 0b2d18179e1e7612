"""What rankers of a whole catalogue have in common: they freeze what they learnt, and ask it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from slatewise.core.executor import Executor
from slatewise.core.ids import one_or_more
from slatewise.core.rankings import Rankings
from slatewise.factors.device import check_device
from slatewise.factors.explanation import SlateExplanation
from slatewise.factors.input import Ids, check_ids
from slatewise.factors.model import LatentModel
from slatewise.factors.tables import Ints, Singles
from slatewise.latent.batch import QueryBatch
from slatewise.latent.frozen_ranker import FrozenRanker
from slatewise.recommend.evaluation import recall_of
from slatewise.recommend.filters import Seen, check_depths, check_lengths
from slatewise.recommend.ids import Unknown, number_ids


class CatalogueRanker(FrozenRanker[LatentModel]):
    """A frozen model, made of learned attributes, and the methods that ask it."""

    n_jobs: int | None
    item_ids_: Ids

    def rank(
        self,
        queries: Any,
        k: int = 10,
        stage: int | None = None,
        exclude: Any = None,
        unknown: Unknown = "error",
        *,
        exclude_seen: Seen = False,
        candidates: Any = None,
        device: str | None = None,
        query_features: Any = None,
    ) -> Rankings:
        """Return the k best items of each query, best first; equal scores in the order of ids.

        A query that excludes so many that fewer than k are left has a shorter list.

        Parameters
        ----------
        queries
            Ids, one or more, or features, as in :meth:`fit`, or rows of :meth:`LatentRanker.fold_in`; of a reranker,
            ids that its base can score. Of a ranker of sessions: lists of items, oldest first, or sessions in any form
            that ``fit`` takes, or ids of items, each a session of its own; none of them need be in fit's.
        k
            How many items.
        stage
            Which stage ranks; default: the last. Of a reranker, 0 is the base itself.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        unknown
            What becomes of ids that fit never saw, or that are no rows of a base given as matrices: "error", or
            "ignore" with a warning that counts them. Then items are left out of what is excluded and of their sessions;
            a query of which nothing is left, or an empty session, gets the order of the biases, marked in
            ``nothing_known``, or the mean of the base's rows. A base that is an object decides by itself.
        exclude_seen
            Of sessions: True shows no item that the session has, "last" all but its last one. Of ids: "last" shows all
            but the item of the same id; what a query had in fit is not kept, and is for ``exclude`` to say.
        candidates
            The only items to show: ids for all queries, or a sequence of ids for each, or a sparse matrix (queries,
            items).
        device
            "cuda", or "cuda:1" and so on: rank on a GPU, which pays for many queries. The same lists as on the CPU, but
            for scores that differ in their last digits. Needs ``pip install 'slatewise[gpu]'``; not with candidates.
            None or "cpu": here, whatever the engine of fit was.
        query_features
            Of a ranker of sessions that was fitted with them: features of whoever asks, a row per query, dense or
            sparse, with the columns of fit. None there: answers as with zeros, which is what somebody gets of whom
            nothing is known, and a warning. A session without items that has features is answered by them.

        Returns
        -------
        Rankings
            ``query_ids`` are the ids asked, or numbers from 0 for features and rows.
        """
        where, batch = check_device(device), self._batch(queries, unknown, query_features)
        last, shown = batch.model.check_stage(stage), batch.shown(k, exclude, unknown, exclude_seen, candidates)
        found = batch.ranked_by(last, shown, where)(k, executor=Executor.of(self.n_jobs))
        return batch.rankings(found, shown)

    def scores(
        self,
        queries: Any,
        items: Any,
        stage: int | None = None,
        unknown: Unknown = "error",
        *,
        query_features: Any = None,
    ) -> Singles:
        """Return the scores that :meth:`rank` sorts by, of every query with every item given, (queries, items).

        Parameters
        ----------
        queries, stage, query_features
            As in :meth:`rank`.
        items
            Ids of the items, one per column.
        unknown
            As in :meth:`rank`; an item that fit never saw has the score -inf.
        """
        batch = self._batch(queries, unknown, query_features)
        last, known = batch.model.check_stage(stage), batch.model.item_ids
        numbers = number_ids("items", items, known, unknown=unknown, instead="have the score -inf")
        return batch.scores(last, numbers, Executor.of(self.n_jobs))

    def explain(
        self,
        queries: Any,
        k: int = 10,
        stage: int | None = None,
        exclude: Any = None,
        unknown: Unknown = "error",
        *,
        exclude_seen: Seen = False,
        candidates: Any = None,
        query_features: Any = None,
    ) -> SlateExplanation:
        """Return what :meth:`rank` does with the parts of each score: who moved the item, and by how much.

        Parameters
        ----------
        queries, k, stage, exclude, unknown, exclude_seen, candidates, query_features
            As in :meth:`rank`.
        """
        batch = self._batch(queries, unknown, query_features)
        last, shown = batch.model.check_stage(stage), batch.shown(k, exclude, unknown, exclude_seen, candidates)
        return batch.explain(last, k, shown, Executor.of(self.n_jobs))

    def recall(
        self,
        queries: Any,
        items: Any = None,
        ks: Sequence[int] = (5, 10, 30, 50),
        stage: int | None = None,
        unknown: Unknown = "error",
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        device: str | None = None,
        query_features: Any = None,
    ) -> dict[int, float]:
        """Return, for each k, the share of pairs whose item is among the k best of all items for its query.

        Of sessions without ``items``, every item but the first of a session is one to be found after those before it;
        of :class:`slatewise.data.Prefixes` the next item of each. ``query_features`` have a row for each query that is
        given: a session, whatever it is asked, a prefix, or a query of a pair.
        With ``unknown="ignore"`` queries are treated as in :meth:`rank`, and pairs of items that fit never saw count as
        not found. The other switches are those of :meth:`rank`.
        """
        where, model, executor = check_device(device), self._model(), Executor.of(self.n_jobs)
        if items is None:
            queries, items, query_features = self._continued(queries, query_features)
        numbers = number_ids("items", items, model.item_ids, unknown=unknown, instead="count as not found")
        if exclude is None and candidates is None and query_features is None:
            batch, own = self._distinct(queries, unknown)
        else:
            batch, own = self._one_by_one(queries, unknown, query_features)
        check_lengths(own, numbers)
        last, depths = model.check_stage(stage), check_depths(ks)
        deepest = min(max(depths), len(model.item_ids))
        shown = batch.shown(deepest, exclude, unknown, exclude_seen, candidates)
        found = batch.ranked_by(last, shown, where)(deepest, executor=executor)
        return recall_of(found.items, own, numbers, depths)

    @abstractmethod
    def _batch(self, queries: Any, unknown: Unknown, query_features: Any = None) -> QueryBatch:
        """Check queries."""

    def _continued(self, queries: Any, query_features: Any) -> tuple[Any, Any, Any]:
        """Return queries and items that are both in what is given, and features of those queries."""
        raise ValueError("items: expected one item per query, found None")

    def _distinct(self, queries: Any, unknown: Unknown) -> tuple[QueryBatch, Ints]:
        """Return each query once, and where every one of them is."""
        distinct, own = np.unique(check_ids("queries", one_or_more("queries", queries)), return_inverse=True)
        return self._batch(distinct, unknown), own

    def _one_by_one(self, queries: Any, unknown: Unknown, query_features: Any = None) -> tuple[QueryBatch, Ints]:
        """Return every query as often as it is there: each may be shown something else, or asked by somebody else."""
        batch = self._batch(queries, unknown, query_features)
        return batch, np.arange(len(batch))
