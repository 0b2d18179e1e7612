"""Rank all items for queries known by their ids (Weston and Blitzer 2012)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Ints, Singles
from slatewise.core.declarations import learned
from slatewise.core.ids import Ids, check_ids, one_or_more
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.running.executor import Executor
from slatewise.factors.growth import Places, check_components, first_epoch, one_more_epoch
from slatewise.factors.learner import Problem, zero_rows_without_pairs
from slatewise.factors.pair_terms import self_items
from slatewise.factors.pairs import hold_out_pairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.ranking import QueryBatch, items_of_same_id, marked
from slatewise.factors.settings import TrainingSettings
from slatewise.factors.tables import Table
from slatewise.latent.base import LatentBase
from slatewise.latent.fold_in import TOLERANCE, FoldedQueries, fold_in
from slatewise.latent.pairs import IdPairs, id_pairs, warn_of_users
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import check_sets
from slatewise.recommend.ids import Unknown, joined_ids, number_ids
from slatewise.recommend.recommender import Filters


class LatentRanker(LatentBase):
    """Rank all items for a query known by its id; users and their items are better off with SessionRanker.

    ``f(q, d) = (U q).(V d) + b_d`` at stage 0, trained on violators (WARP). A later stage adds
    ``sum_j w_j (S d).(S dbar_j)`` over the k best items dbar of the stage before, so that items which belong together
    rise together.

    Notes
    -----
    Pairs that occur twice count twice. Other items of the same query are negatives of a pair like any other. Of
    held-out pairs, one pair of every query and of every item is trained on all the same.

    Examples
    --------
    >>> from slatewise import LatentRanker, datasets
    >>> pairs = datasets.make_sessions(300, 40, random_state=0).sessions.pairs()
    >>> ranker = LatentRanker(n_components=8, epochs=5).fit(pairs.queries, pairs.items)
    >>> found = ranker.rank([25, 3], k=5)
    >>> found.ids.shape, found.scores.shape
    ((2, 5), (2, 5))
    """

    query_ids_: Ids = learned(rules.IDS, "Ids of the queries, ascending.")

    def fit(
        self,
        queries: Any,
        items: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries
            Ids, one per pair (whole numbers or strings); or, with ``items`` None, a matrix of interactions whose
            entries are weights (then ids are row and column numbers).
        items
            The item id of each pair.
        sample_weight
            One weight >= 0 per pair.
        callbacks
            Functions to call with a :class:`slatewise.factors.settings.EpochReport` after every epoch, those of the
            search included.
        checkpoint
            A file that keeps the state after every epoch. If it is there, and of the same data and settings, fit goes
            on from it; it is removed at the end. With "blocked", and with "gpu" on the same GPU, the bits are those of
            a fit that never stopped.
        """
        rules.check(self)
        pairs = id_pairs(queries, items, sample_weight)
        warn_of_users(pairs)
        given = self._settings(callbacks)
        card = card_for(pairs.n_queries, *pairs.arrays())
        self._settle_seed()
        given = replace(given, seed=self.seed_)
        problem = _problem(given, pairs)
        found = self._learn(given, problem, card, checkpoint)
        for state in found.stages:
            _zero(state.queries, pairs)
        self._keep_fit(given, problem, found, card)
        self.query_ids_, self.n_features_in_ = pairs.query_ids, 1  # a query is one id
        return self

    def partial_fit(self, queries: Any, items: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with one epoch over further pairs; ids not seen before get rows of their own.

        Parameters
        ----------
        queries, items, sample_weight
            As in :meth:`fit`. On a ranker that is not fitted this is a fit of one epoch, with nothing held out; on one
            that is, parameters count as they are now, and "auto" is what was found, but ``n_components`` must stay, and
            the pair term beside later stages, whose S is kept.
        """
        rules.check(self)
        is_fitted = "item_factors_" in vars(self)
        fresh = id_pairs(queries, items, sample_weight, further=is_fitted)
        given, executor = self._settings(), Executor.of(self.n_jobs)
        self._settle_seed()
        given = replace(given, seed=self.seed_)
        card = card_for(fresh.n_queries, *fresh.arrays())
        if not is_fitted:
            problem = _problem(replace(given, validation_fraction=0.0), fresh)
            found = first_epoch(given, problem, executor, lambda table: _zero(table, fresh))
            self._keep(given, problem, found, card)
            self.query_ids_, self.n_features_in_ = fresh.query_ids, 1
            return self
        check_components(given, self.n_components_)
        steps = self._former_steps(given)
        item_ids, old_items, new_items = joined_ids("items", self.item_ids_, fresh.item_ids)
        query_ids, old_queries, new_queries = joined_ids("queries", self.query_ids_, fresh.query_ids)
        pairs = IdPairs(
            new_queries[fresh.queries], new_items[fresh.items], fresh.weights, item_ids, len(query_ids), query_ids
        )
        problem = _problem(replace(given, validation_fraction=0.0), pairs)
        found = one_more_epoch(
            given,
            steps,
            problem,
            self._former(),
            Places(old_queries, old_items),
            executor,
            lambda table: _zero(table, pairs, old_queries),
        )
        card = card_for(pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        self._keep(given, problem, found, card)
        self.query_ids_ = query_ids
        return self

    def fold_in(self, items: Any, *, unknown: Unknown = "error") -> FoldedQueries:
        """Return queries that fit never saw, known by their items, for :meth:`rank` and the other methods.

        The items' factors stay, and each query is the row in the ball of ``max_norm`` under which its items are most
        likely (a softmax over the catalog): the same answer every time.

        Parameters
        ----------
        items
            The items of each query: a sequence of ids per query, or a sparse matrix (queries, items) of weights in the
            order of ``item_ids_``. Items that occur twice count twice; a query without items is ranked by the biases.
        unknown
            As in :meth:`rank`; with "ignore" items that fit never saw are left out.
        """
        model = self._model()
        seen = check_sets("items", items, model.item_ids, unknown)
        if not (np.isfinite(seen.data) & (seen.data > 0)).all():
            raise ValueError("items: expected finite weights >= 0, found others")
        n, rows = model.n_components, model.items[0].values
        found = fold_in(seen, np.ascontiguousarray(rows[:, :n]), rows[:, n], self.max_norm_, Executor.of(self.n_jobs))
        if not found.gap <= TOLERANCE:
            warnings.warn(
                f"fold_in stopped with a certified gap of {found.gap:.1e}, more than {TOLERANCE:.0e}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return FoldedQueries(found.rows.astype(np.float32))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _batch(self, queries: Any, unknown: Unknown, executor: Executor) -> QueryBatch:
        model, n = self._model(), self.n_components_
        if isinstance(queries, FoldedQueries):
            rows = queries.vectors
            if rows.ndim != 2 or rows.shape[1] != n or not np.isfinite(rows).all():
                raise ValueError(f"queries: expected finite rows of {n} numbers, found {rows.dtype} {rows.shape}")
            own = np.zeros((len(rows), model.queries[0].values.shape[1]), dtype=np.float32)
            own[:, :n], own[:, n] = rows, 1.0
            # U and V are the same at all stages, so one row serves all.
            return QueryBatch(model, np.arange(len(rows)), (IdQueries(Table.fixed(own)),) * model.n_stages)
        ids = check_ids("queries", one_or_more("queries", queries))
        numbers = number_ids("queries", ids, self.query_ids_, unknown=unknown, instead="get the order of the biases")
        vectors: list[Singles] = [table.values[numbers] for table in model.queries]
        for values in vectors:
            values[numbers < 0, :n] = 0.0
        return QueryBatch(
            model,
            ids,
            tuple(IdQueries(Table.fixed(values)) for values in vectors),
            histories=items_of_same_id(ids, model.item_ids),
            has_items=False,
            self_items=self_items(ids, model.item_ids, model.self_weight),
            nothing_known=marked(numbers < 0),
        )

    def _judged(self, queries: Any, items: Any, filters: Filters, n_jobs: int | None) -> tuple[QueryBatch, Ints, Ints]:
        """Rank once for a query that occurs several times, unless each has filters of its own."""
        if isinstance(queries, FoldedQueries) or filters.exclude is not None or filters.candidates is not None:
            return super()._judged(queries, items, filters, n_jobs)
        self._model()
        if items is None:
            self._continued(queries)
        targets = self._targets(items, filters.unknown)
        ids = check_ids("queries", one_or_more("queries", queries))
        distinct, own = np.unique(ids, return_inverse=True)
        return self._batch(distinct, filters.unknown, self._executor(n_jobs)), own, targets

    def _n_rows(self) -> int:
        return len(self.query_ids_)

    def _check_learned(self) -> None:
        """Raise ValueError unless a query is one id."""
        super()._check_learned()
        if self.n_features_in_ != 1:
            raise ValueError(f"n_features_in_: expected 1 where a query is one id, found {self.n_features_in_}")


def _problem(given: TrainingSettings, pairs: IdPairs) -> Problem:
    own = self_items(pairs.query_ids, pairs.item_ids, given.stages.self_weight)
    if own is not None and given.stages.n > 1 and (own.items < 0).all():
        found = given.stages.self_weight
        raise ValueError(f"Stages.self_weight: expected 0 where no query has the id of an item, found {found!r}")
    used, validation = hold_out_pairs(pairs, given.validation_fraction, given.depth, given.seed)
    return Problem(used, validation, IdQueries, pairs.n_queries, by_id=True, self_items=own)


def _zero(table: Table, pairs: IdPairs, *known: Ints) -> None:
    zero_rows_without_pairs(table, pairs.n_queries, pairs.queries, *known)
