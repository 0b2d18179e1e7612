"""Rank all items for queries known by their features (Weston and Blitzer 2012)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.declarations import resolved
from slatewise.core.running.executor import Executor
from slatewise.factors.growth import Places, check_components, first_epoch, one_more_epoch
from slatewise.factors.learner import Problem
from slatewise.factors.pairs import cross_folds, hold_out_queries
from slatewise.factors.queries import featured_queries
from slatewise.factors.ranking import QueryBatch
from slatewise.factors.settings import Sampled, TrainingSettings
from slatewise.latent.base import LatentBase
from slatewise.latent.pairs import FeaturePairs, check_features, feature_pairs, rows_and_items
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.saving import card_for
from slatewise.recommend.ids import Unknown, joined_ids


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
        pairs = feature_pairs(check_features(self, X, reset=True), y, sample_weight)
        given = self._settings(callbacks)
        card = card_for(pairs.n_queries, *pairs.arrays())
        self._settle_seed()
        given = replace(given, seed=self.seed_)
        problem = _problem(given, pairs)
        return self._keep_fit(given, problem, self._learn(given, problem, card, checkpoint), card)

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
        fresh = feature_pairs(check_features(self, X, reset=not is_fitted), y, sample_weight, further=is_fitted)
        given, executor = self._settings(), Executor.of(self.n_jobs)
        self._settle_seed()
        given = replace(given, seed=self.seed_)
        if not is_fitted:
            problem = _problem(replace(given, validation_fraction=0.0), fresh)
            found = first_epoch(given, problem, executor)
            return self._keep(given, problem, found, card_for(fresh.n_queries, *fresh.arrays()))
        check_components(given, self.n_components_)
        steps = self._former_steps(given)
        item_ids, old_items, new_items = joined_ids("y", self.item_ids_, fresh.item_ids)
        pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
        problem = _problem(replace(given, validation_fraction=0.0), pairs)
        places = Places(np.arange(self.n_features_in_), old_items)
        found = one_more_epoch(given, steps, problem, self._former(), places, executor)
        # Rows of features are new each time.
        card = card_for(self.model_card_.n_lists + pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        return self._keep(given, problem, found, card)

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

    def _settings(self, callbacks: Callbacks = None) -> TrainingSettings:
        """Resolve the parameters; some mean nothing where queries are known by features."""
        engine, stages = resolved(self, "engine"), resolved(self, "stages")
        if isinstance(engine, Sampled):
            raise ValueError(f"engine: expected 'blocked' or 'gpu' for features, found {self.engine!r}")
        if stages.self_weight:
            raise ValueError(f"stages: expected self_weight=0 for features, which are no items, found {self.stages!r}")
        return super()._settings(callbacks)

    def _batch(self, queries: Any, unknown: Unknown, executor: Executor) -> QueryBatch:
        model = self._model()
        features = check_features(self, queries, reset=False)
        make = featured_queries(features, self.n_components_)
        return QueryBatch(model, np.arange(features.shape[0]), tuple(make(table) for table in model.queries))

    def _n_rows(self) -> int:
        return self.n_features_in_


def _problem(given: TrainingSettings, pairs: FeaturePairs) -> Problem:
    used, validation = hold_out_queries(pairs, given.validation_fraction, given.depth, given.seed)
    return Problem(
        used,
        validation,
        featured_queries(pairs.features, given.n_components),
        int(pairs.features.shape[1]),
        folds=cross_folds(used, given.seed),
    )
