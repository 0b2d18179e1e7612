"""Rank all items for queries known by their features (Weston and Blitzer 2012)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Ints
from slatewise.core.checks import feature_rows, sparse_rows
from slatewise.core.declarations import param, settings
from slatewise.core.ids import Ids, check_ids
from slatewise.core.running.executor import Executor
from slatewise.estimators.sklearn import BaseEstimator, check_rows, check_weights
from slatewise.factors.growth import Places, first_epoch
from slatewise.factors.learner import Problem, warn_of_stages
from slatewise.factors.pairs import Pairs, as_singles, check_enough, cross_folds, hold_out_queries, single_rows
from slatewise.factors.queries import Features, featured_queries
from slatewise.factors.ranking import QueryBatch
from slatewise.factors.settings import ENGINE_TEXT, Blocked, Engine, Gpu, Stages
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
        given = self._settings(callbacks)
        pairs = feature_pairs(check_features(self, X, reset=True), y, sample_weight)
        card = card_for(pairs.n_queries, *pairs.arrays())
        used, validation = hold_out_queries(pairs, given.validation_fraction, given.depth, given.seed)
        folds = cross_folds(used, given.seed) if given.stages.n > 1 else None
        queries = featured_queries(pairs.features, given.n_components)
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
        is_fitted, given = "item_factors_" in vars(self), self._settings()
        fresh = feature_pairs(check_features(self, X, reset=not is_fitted), y, sample_weight, further=is_fitted)
        queries = featured_queries(fresh.features, given.n_components)
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

    def _batch(self, queries: Any, unknown: Unknown, executor: Executor) -> QueryBatch:
        model = self._model()
        features = check_features(self, queries, reset=False)
        make = featured_queries(features, self.n_components_)
        return QueryBatch(model, np.arange(features.shape[0]), tuple(make(table) for table in model.queries))

    def _n_rows(self) -> int:
        return self.n_features_in_
