"""Rank all items for queries known by their features (Weston and Blitzer 2012)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Ints
from slatewise.core.checks import feature_rows, sparse_rows
from slatewise.core.declarations import resolved
from slatewise.core.ids import Ids, check_ids
from slatewise.core.running.executor import Executor
from slatewise.estimators.sklearn import BaseEstimator, check_rows, check_weights
from slatewise.factors.growth import Places, check_components, first_epoch, one_more_epoch
from slatewise.factors.learner import Problem
from slatewise.factors.pairs import Pairs, as_singles, check_enough, cross_folds, hold_out_queries, single_rows
from slatewise.factors.queries import Features, featured_queries
from slatewise.factors.ranking import QueryBatch
from slatewise.factors.settings import Sampled, TrainingSettings
from slatewise.latent.ranker import LatentBase
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.saving import card_for
from slatewise.recommend.ids import Unknown, joined_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class FeaturePairs(Pairs):
    """Pairs of which a query is a row of features."""

    features: Features

    def arrays(self) -> list[NDArray[Any]]:
        """Return all that a fit learns from, for its hash."""
        rows = self.features
        known = (
            [rows] if isinstance(rows, np.ndarray) else [np.asarray(x) for x in (rows.data, rows.indices, rows.indptr)]
        )
        return [self.queries, self.items, self.weights, self.item_ids, *known]


def feature_pairs(
    features: Features, items: Any, sample_weight: ArrayLike | None, further: bool = False
) -> FeaturePairs:
    """Check and number pairs of rows of features, which are checked, and items."""
    if items is None:
        raise ValueError("y: expected one item per row, found None; this ranker requires y to be passed")
    n_rows = int(features.shape[0])
    weights = check_weights(sample_weight, n_rows)
    rows, numbers, item_ids = rows_and_items("y", items, n_rows)
    return check_enough(FeaturePairs(rows, numbers, weights[rows], item_ids, n_rows, features), further)


def rows_and_items(name: str, items: Any, n_rows: int) -> tuple[Ints, Ints, Ids]:
    """Return the row and the item of every pair, by number, and the ids of the items."""
    marks = sparse_rows(name, items)
    if marks is None and np.asarray(items).ndim == 2:
        from scipy.sparse import csr_array

        marks = csr_array(np.asarray(items))
    if marks is None:
        offered = check_ids(name, items)
        if len(offered) != n_rows:
            raise ValueError(f"{name}: expected one per row, {n_rows}, found {len(offered)}: inconsistent lengths")
        item_ids, numbers = np.unique(offered, return_inverse=True)
        return np.arange(n_rows), numbers.astype(np.int64), item_ids
    marks = marks.copy()
    marks.sum_duplicates()  # an entry stored twice is a 2
    if marks.shape[0] != n_rows or not np.isin(marks.data, (0, 1)).all():
        raise ValueError(f"{name}: expected zeros and ones of {n_rows} rows, found others, shape {marks.shape}")
    rows, columns = (np.asarray(part, dtype=np.int64) for part in marks.nonzero())
    return rows, columns, np.arange(marks.shape[1])


def check_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> Features:
    """Return finite float32 features, dense or CSR."""
    matrix = sparse_rows("X", X)
    if matrix is None:
        dense = check_rows(estimator, X, reset=reset)
        return as_singles("X", dense, lambda place: "row {}, column {}".format(*divmod(place, dense.shape[1])))
    rows = cast("csr_array", feature_rows("X", matrix))
    if reset:
        estimator.n_features_in_ = int(rows.shape[1])
    elif rows.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X: expected {estimator.n_features_in_} features, found {rows.shape[1]}")
    return single_rows("X", rows)


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
