"""Rank all items for queries known by their features (Weston and Blitzer 2012)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.declarations import param, settings
from slatewise.core.running.executor import Executor
from slatewise.factors.growth import Places, first_epoch
from slatewise.factors.learner import Problem, warn_of_stages
from slatewise.factors.pairs import check_features, cross_folds, feature_pairs, hold_out_queries, rows_and_items
from slatewise.factors.queries import featured_queries
from slatewise.factors.ranking import LatentModel, QueryBatch
from slatewise.factors.settings import ENGINE_TEXT, Blocked, Engine, Gpu, Stages
from slatewise.latent.ranker import LatentBase
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import RankOptions
from slatewise.recommend.ids import joined_ids

_STAGES = settings(Stages)

NO_SELF_ITEMS = rules.Rule(
    f"{_STAGES.expected} with self_weight=0",
    lambda value: _STAGES.allows(value) and not getattr(value, "self_weight", 0),
    _STAGES.kinds,
)


class LatentFeatureRanker(LatentBase):
    """Rank all items for a query known by a row of features.

    ``f(x, d) = (U' x).(V d) + b_d`` at stage 0, with a row of U per feature, trained on violators (WARP). A later stage
    adds ``sum_j w_j (S d).(S dbar_j)`` over the k best items dbar of the stage before, so that items which belong
    together rise together.

    Notes
    -----
    Held out are all pairs of some rows. Where there are several stages, the lists that a stage learns from are
    cross-fitted: those of a fold's rows come from a model trained without the fold.

    Examples
    --------
    >>> from slatewise import LatentFeatureRanker
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> y = np.repeat(["apple", "bread", "cheese"], 20)
    >>> ranker = LatentFeatureRanker(n_components=4, epochs=9).fit(X, y)
    >>> ranker.rank([[0.0, 1.0, 0.0]], k=1).ids.tolist()
    [['bread']]
    """

    stages: int | Stages = param(
        NO_SELF_ITEMS,
        """The maximum number of stages, or :class:`slatewise.factors.Stages`, which says how lists move items; rows of
        features are no items, so ``self_weight`` is 0.""",
        default=1,
    )
    engine: str | Engine = param(settings(Blocked, Gpu), ENGINE_TEXT, default="blocked")

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from rows and their items.

        Parameters
        ----------
        X
            Features (rows, d), dense or sparse.
        y
            The item id of each row, or a 0/1 matrix (rows, items).
        sample_weight
            One weight >= 0 per row.
        callbacks
            Functions to call with a :class:`slatewise.factors.settings.EpochReport` after every epoch, those of the
            search included.
        checkpoint
            A file that keeps the state after every epoch. If it is there, and of the same data and settings, fit goes
            on from it; it is removed at the end. The bits are those of a fit that never stopped.
        """
        rules.check(self)
        pairs = feature_pairs(self, X, y, sample_weight, reset=True)
        given = self._settings(callbacks)
        card = card_for(pairs.n_queries, *pairs.arrays())
        used, validation = hold_out_queries(pairs, given.validation_fraction, given.depth, given.seed)
        folds = cross_folds(used, given.seed) if given.stages.n > 1 else None
        queries = partial(featured_queries, pairs.features, given.n_components)
        problem = Problem(used, validation, queries, self.n_features_in_, folds=folds)
        self._keep(given, problem, self._learn(given, problem, card, checkpoint), card)
        warn_of_stages(self.n_stages_, given.stages.n)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with one epoch over further rows; items not seen before get rows of their own.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`. On a ranker that is not fitted this is a fit of one epoch, with nothing held out; on one
            that is, parameters count as they are now, and "auto" is what was found, but ``n_components`` must stay, and
            the pair term beside later stages, whose S is kept.
        """
        rules.check(self)
        is_fitted = "item_factors_" in vars(self)
        fresh, given = feature_pairs(self, X, y, sample_weight, reset=not is_fitted), self._settings()
        queries = partial(featured_queries, fresh.features, given.n_components)
        if not is_fitted:
            problem = Problem(fresh, None, queries, self.n_features_in_)
            found = first_epoch(given, problem, Executor.of(self.n_jobs))
            return self._keep(given, problem, found, card_for(fresh.n_queries, *fresh.arrays()))
        item_ids, old_items, new_items = joined_ids("y", self.item_ids_, fresh.item_ids)
        pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
        problem = Problem(pairs, None, queries, self.n_features_in_)
        # Rows of features are new each time.
        card = card_for(self.model_card_.n_lists + pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        return self._go_on(given, problem, Places(np.arange(self.n_features_in_), old_items), card)

    def score(self, X: Any, y: Any) -> float:  # pyright: ignore[reportIncompatibleMethodOverride] # scikit-learn's names
        """Return recall at 20: the share of pairs of a row and its item that is among the 20 best.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        """
        self._model()
        features = check_features(self, X, reset=False)
        rows, numbers, item_ids = rows_and_items("y", y, int(features.shape[0]))
        return super().score(features[rows], item_ids[numbers])

    # --- parts -------------------------------------------------------------------------------------------------------

    def _batch(self, model: LatentModel, queries: Any, options: RankOptions, executor: Executor) -> QueryBatch:
        features = check_features(self, queries, reset=False)
        made = tuple(featured_queries(features, self.n_components_, table) for table in model.queries)
        return QueryBatch(model, np.arange(features.shape[0]), made, stage=options.stage)

    def _n_rows(self) -> int:
        return self.n_features_in_
