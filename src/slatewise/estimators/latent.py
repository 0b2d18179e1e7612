"""Rank a whole catalogue by latent factors, and learn which items belong together (Weston and Blitzer 2012)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.estimators._latent_checkpoint import LatentCheckpoint
from slatewise.estimators._latent_checks import check_learned, check_settings, position_weights
from slatewise.estimators._latent_growth import fill_rows, joined_ids
from slatewise.estimators._latent_input import (
    Ids,
    LatentPairs,
    check_features,
    check_ids,
    check_pairs,
    number_ids,
    queries_of,
)
from slatewise.estimators._latent_lists import check_depths, check_exclude, check_k
from slatewise.estimators._latent_validation import cross_folds, hold_out
from slatewise.estimators._sklearn import check_is_fitted
from slatewise.estimators.saving import SavedEstimator, card_for
from slatewise.warp.blocked import BlockedEngine, step_size
from slatewise.warp.engine import Factors, WarpEngine
from slatewise.warp.negatives import Negatives, SharedNegatives, SharedWithLists, WholeCatalogue
from slatewise.warp.pairs import TrainingPairs
from slatewise.warp.queries import IdQueries
from slatewise.warp.rank_weights import rank_weights
from slatewise.warp.recall import recall_at
from slatewise.warp.sampled import SampledEngine
from slatewise.warp.stages import Shape, Stages, stage_factors
from slatewise.warp.tables import Ints, Singles, Table
from slatewise.warp.top_k import top_items
from slatewise.warp.training import EpochReport, Schedule, StageState


class LatentRanker(SavedEstimator):
    """Rank all items for a query by an inner product, trained on violators (WARP), in one or more stages.

    ``f(q, d) = (U q).(V d) + b_d`` at stage 0. A later stage adds ``sum_j w_j (S d).(S dbar_j)`` over the k best items
    dbar of the stage before, so that items which belong together rise together.

    Parameters
    ----------
    n_components : int
        Width n of U, V and S.
    stages : int
        How many stages to train at most; 1 is the plain latent ranker. A stage is kept only if recall on held-out pairs
        rose.
    k : int
        Items of a list handed over to the next stage, and the depth of the recall that is watched.
    loss : {"warp", "auc"}
        Weight of a pair by the rank of its item: harmonic (the top of the list matters most), or all ranks alike.
    engine : {"blocked", "sampled"}
        "blocked": exact counts by matrix products, the same bits with any number of threads. "sampled": draws items
        until one violates; not reproducible with more than one thread; stages after the first are blocked all the same.
    negatives : "catalogue" or int
        Whom "blocked" compares a pair with: every item, or so many drawn for each step and the k best of the query.
    learning_rate, max_norm : float
        AdaGrad's step, and the largest norm of a row, of U and V.
    stage_learning_rate, stage_norm : float
        The same of S.
    position_weights : "reciprocal" or k numbers
        w_j of the list's j-th item.
    epochs : int
        Most passes over the pairs, a stage.
    validation_fraction : float
        Share of the pairs (at most 20,000 pairs) held out to decide when a stage ends. 0: all epochs are run.
    patience : int
        Epochs without a better recall after which a stage ends.
    batch_size : int, optional
        Pairs of a step; default: a hundredth of them, between 64 and 2,048.
    max_draws : int, optional
        Of "sampled"; default: as many as there are other items.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.warp.training.EpochReport` after every epoch.
    checkpoint : path, optional
        Where fit keeps its state after every epoch; it goes on from there if the file is of the same data and settings,
        and removes it at the end. With "blocked" the bits are those of a fit that never stopped.
    n_threads : int, optional
        Threads over blocks of pairs or queries.
    random_state : int, optional
        Start of the factors and order of the pairs.

    Attributes
    ----------
    query_ids_, item_ids_
        Ids in ascending order; queries given by features have none.
    query_factors_, item_factors_
        (stages, rows, columns): U and 1, or a row of U a feature; V, b and S. Columns of zeros fill up to cache lines.
    n_stages_, n_epochs_
        Stages kept, and how many epochs each was trained before it was best.

    Notes
    -----
    Pairs that occur twice count twice. Other items of the same query are negatives of a pair like any other.

    Examples
    --------
    >>> from slatewise import LatentRanker, datasets
    >>> pairs = datasets.make_sessions(300, 40, random_state=0).sessions.pairs()
    >>> ranker = LatentRanker(n_components=8, epochs=5).fit(pairs.queries, pairs.items)
    >>> ids, scores = ranker.rank([25, 3], k=5)
    >>> ids.shape, scores.shape
    ((2, 5), (2, 5))
    """

    saved_attributes = (
        "query_ids_",
        "item_ids_",
        "query_factors_",
        "item_factors_",
        "query_steps_",
        "item_steps_",
        "by_features_",
        "n_stages_",
        "n_epochs_",
    )
    query_ids_: Ids
    item_ids_: Ids
    query_factors_: Singles
    item_factors_: Singles
    query_steps_: Singles
    item_steps_: Singles
    by_features_: bool
    n_stages_: int
    n_epochs_: list[int]

    def __init__(
        self,
        n_components: int = 50,
        stages: int = 1,
        k: int = 20,
        loss: Literal["warp", "auc"] = "warp",
        engine: Literal["blocked", "sampled"] = "blocked",
        negatives: Literal["catalogue"] | int = "catalogue",
        learning_rate: float = 0.3,
        max_norm: float = 2.5,
        stage_learning_rate: float = 0.1,
        stage_norm: float = 1.0,
        position_weights: Literal["reciprocal"] | ArrayLike = "reciprocal",
        epochs: int = 12,
        validation_fraction: float = 0.05,
        patience: int = 3,
        batch_size: int | None = None,
        max_draws: int | None = None,
        callbacks: Sequence[Callable[[EpochReport], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.stages = stages
        self.k = k
        self.loss = loss
        self.engine = engine
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.max_norm = max_norm
        self.stage_learning_rate = stage_learning_rate
        self.stage_norm = stage_norm
        self.position_weights = position_weights
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.batch_size = batch_size
        self.max_draws = max_draws
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, queries: Any, items: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries
            Ids, one a pair (whole numbers or strings); or features (rows, d), dense or sparse; or, with ``items`` None,
            a matrix of interactions whose entries are weights (then ids are row and column numbers).
        items
            The item of each pair: ids; with features also a 0/1 matrix (rows, items).
        sample_weight
            One weight >= 0 a pair (with features: a row).
        """
        pairs = check_pairs(self, queries, items, sample_weight)
        check_settings(self, pairs.features is not None)
        shape = self._shape(pairs)
        card = card_for(pairs.n_queries, pairs.queries, pairs.items, pairs.weights)
        checkpoint = LatentCheckpoint.of(self.checkpoint, self._belongs_to(card.data_sha256))
        done, going = checkpoint.read(shape)

        def watch(done: tuple[StageState, ...], seen: EpochReport, state: StageState) -> None:
            checkpoint.write(done, state)
            for callback in self.callbacks or ():
                callback(seen)

        learned = self._stages(pairs, shape).fit(self.stages, done, going, watch)
        self._keep(pairs, learned)
        self.model_card_ = card
        checkpoint.remove()
        return self

    def partial_fit(self, queries: Any, items: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with one epoch over further pairs; ids not seen before get rows of their own.

        Parameters
        ----------
        queries, items, sample_weight
            As in :meth:`fit`. On a ranker that is not fitted this is a fit of one epoch, with nothing held out.
        """
        fitted = "item_factors_" in vars(self)
        fresh = check_pairs(self, queries, items, sample_weight, reset=not fitted)
        check_settings(self, fresh.features is not None)
        if self.stages != 1 or (fitted and self.n_stages_ != 1):
            raise ValueError("stages: expected 1 for partial_fit, found more; use fit")
        pairs, state = self._grown(fresh) if fitted else (fresh, self._new(fresh))
        training = _training(pairs)
        rng = np.random.default_rng((self._seed(), 0, state.epoch))
        factors = Factors(queries_of(pairs.features, self.n_components)(state.queries), state.items)
        nothing = np.empty((pairs.n_queries, 0), dtype=np.int64)
        self._engine(state, nothing, len(training)).epoch(factors, training, rng)
        self._keep(pairs, (replace(state, epoch=state.epoch + 1, best_epoch=state.epoch + 1),))
        self.model_card_ = card_for(pairs.n_queries, pairs.queries, pairs.items, pairs.weights)
        return self

    def rank(self, queries: Any, k: int = 10, stage: int | None = None, exclude: Any = None) -> tuple[Ids, Singles]:
        """Return the ids and scores of the k best items of each query, best first; equal scores in the order of ids.

        Parameters
        ----------
        queries
            Ids or features, as in :meth:`fit`.
        k
            How many items.
        stage
            Which stage ranks; default: the last.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        """
        factors, n_queries = self._factors(queries, stage)
        hidden = check_exclude(exclude, n_queries, self.item_ids_)
        check_k(k, len(self.item_ids_), hidden)
        found = top_items(factors.queries, np.arange(n_queries), factors.items.values, k, hidden, self.n_threads)
        return self.item_ids_[found.items], found.scores

    def similar_items(self, ids: ArrayLike, k: int = 10) -> tuple[Ids, Singles]:
        """Return the k items whose rows of V have the largest cosine with each item's, itself left out."""
        check_is_fitted(self)
        numbers = number_ids("ids", ids, self.item_ids_)
        hidden = check_exclude([[name] for name in self.item_ids_[numbers].tolist()], len(numbers), self.item_ids_)
        check_k(k, len(self.item_ids_), hidden)
        rows = self.item_factors_[0].copy()
        rows[:, self.n_components :] = 0.0
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
        table = Table(rows, np.zeros((len(rows), 0), dtype=np.float32), ())
        found = top_items(IdQueries(table), numbers, rows, k, hidden, self.n_threads)
        return self.item_ids_[found.items], found.scores

    def recall(
        self, queries: Any, items: Any, ks: Sequence[int] = (5, 10, 30, 50), stage: int | None = None
    ) -> dict[int, float]:
        """Return, for each k, the share of pairs whose item is among the k best of all items for its query."""
        check_is_fitted(self)
        numbers = number_ids("items", items, self.item_ids_)
        if self.by_features_:
            factors, n_queries = self._factors(queries, stage)
            own = np.arange(n_queries)
        else:
            asked, own = np.unique(check_ids("queries", queries), return_inverse=True)
            factors, _ = self._factors(asked, stage)
        if len(own) != len(numbers) or not len(own):
            raise ValueError(f"items: expected one a query and at least one, found {len(numbers)} for {len(own)}")
        return recall_at(factors, own, numbers, check_depths(ks), self.n_threads)

    def __sklearn_tags__(self) -> Any:
        tags: Any = cast("Any", super()).__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        check_learned(self)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _seed(self) -> int:
        return 0 if self.random_state is None else int(self.random_state)

    def _belongs_to(self, data_hash: str) -> str:
        free = ("callbacks", "checkpoint", "n_threads")
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in free}
        return hashlib.sha256(f"{data_hash}{sorted(settings.items())}".encode()).hexdigest()

    def _shape(self, pairs: LatentPairs) -> Shape:
        return Shape(
            self.n_components,
            pairs.n_queries if pairs.features is None else int(pairs.features.shape[1]),
            len(pairs.item_ids),
            self.learning_rate,
            self.max_norm,
            self.learning_rate,
            self.stage_learning_rate,
            self.stage_norm,
            by_id=pairs.features is None,
        )

    def _stages(self, pairs: LatentPairs, shape: Shape) -> Stages:
        used, validation = hold_out(pairs, self.validation_fraction, self.k, self._seed())
        training = _training(used)
        return Stages(
            shape,
            queries_of(pairs.features, self.n_components),
            pairs.n_queries,
            training,
            validation,
            Schedule(self.epochs, self.patience, self._seed()),
            position_weights(self),
            lambda state, lists: self._engine(state, lists, len(training)),
            cross_folds(pairs, validation, self._seed()) if self.stages > 1 else None,
            self.n_threads,
        )

    def _new(self, pairs: LatentPairs) -> StageState:
        return self._stages(pairs, self._shape(pairs)).start(0, ())

    def _grown(self, fresh: LatentPairs) -> tuple[LatentPairs, StageState]:
        """Return the pairs numbered among all ids, and the tables with rows for all of them."""
        if self.by_features_ != (fresh.features is not None):
            raise ValueError("queries: expected ids or features as in fit, found the other kind")
        item_ids, old_items, new_items = joined_ids("items", self.item_ids_, fresh.item_ids)
        pairs = replace(fresh, items=new_items[fresh.items], item_ids=item_ids)
        old_queries = np.arange(self.n_features_in_)
        if pairs.query_ids is not None:
            query_ids, old_queries, new_queries = joined_ids("queries", self.query_ids_, pairs.query_ids)
            pairs = replace(pairs, queries=new_queries[pairs.queries], query_ids=query_ids)
        queries, items = self._shape(pairs).tables(0)
        rng = np.random.default_rng((self._seed(), 0, sum(self.n_epochs_), len(item_ids)))
        n = self.n_components
        fill_rows(queries, n, old_queries, self.query_factors_[0], self.query_steps_, rng)
        fill_rows(items, n, old_items, self.item_factors_[0], self.item_steps_, rng)
        return pairs, StageState(0, queries, items, epoch=sum(self.n_epochs_))

    def _engine(self, state: StageState, lists: Ints, n_pairs: int) -> WarpEngine:
        n_items = len(state.items.values)
        weight = rank_weights(n_items, 1.0 if self.loss == "warp" else 0.0)
        if self.engine == "sampled" and state.stage == 0:
            return SampledEngine(state.queries, weight, self.max_draws or n_items - 1, self.n_threads)
        negatives: Negatives = WholeCatalogue()
        if self.negatives != "catalogue":
            # A later stage begins at the lists it was handed, and moves little.
            drawn = int(self.negatives)
            negatives = SharedWithLists(drawn, lists) if state.stage else SharedNegatives(drawn, self.k)
        return BlockedEngine(negatives, weight, self.batch_size or step_size(n_pairs), self.n_threads)

    def _keep(self, pairs: LatentPairs, learned: tuple[StageState, ...]) -> None:
        self.by_features_ = pairs.features is not None
        self.query_ids_ = np.empty(0, dtype=np.int64) if pairs.query_ids is None else pairs.query_ids
        self.item_ids_ = pairs.item_ids
        self.n_stages_ = len(learned)
        self.n_epochs_ = [state.best_epoch for state in learned]
        self.query_factors_ = _stack([state.queries.values for state in learned])
        self.item_factors_ = _stack([state.items.values for state in learned])
        self.query_steps_, self.item_steps_ = learned[0].queries.accumulators, learned[0].items.accumulators

    def _factors(self, queries: Any, stage: int | None) -> tuple[Factors, int]:
        """Return factors whose queries are numbered as given, and how many they are."""
        check_is_fitted(self)
        last = self.n_stages_ - 1 if stage is None else stage
        if type(last) is not int or not 0 <= last < self.n_stages_:
            raise ValueError(f"stage: expected a number from 0 to {self.n_stages_ - 1}, found {stage!r}")
        features, rows = None, slice(None)
        if self.by_features_:
            features = check_features(self, queries, reset=False)
            n_queries = int(features.shape[0])
        else:
            rows = number_ids("queries", queries, self.query_ids_)
            n_queries = len(rows)
        tables = [(_as_table(self.query_factors_[t][rows]), _as_table(self.item_factors_[t])) for t in range(last + 1)]
        pair = Shape(self.n_components, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0).pair
        make = queries_of(features, self.n_components)
        return stage_factors(make, n_queries, tables, pair, position_weights(self), self.n_threads), n_queries


def _training(pairs: LatentPairs) -> TrainingPairs:
    return TrainingPairs.of(pairs.queries, pairs.items, (pairs.weights / pairs.weights.mean()).astype(np.float32))


def _stack(parts: list[Singles]) -> Singles:
    width = max(part.shape[1] for part in parts)
    return np.stack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


def _as_table(values: Singles) -> Table:
    return Table(np.ascontiguousarray(values), np.empty((len(values), 0), dtype=np.float32), ())
