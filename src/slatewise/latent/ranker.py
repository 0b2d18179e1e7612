"""Rank all items for queries known by their ids (Weston and Blitzer 2012)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Ints, Singles
from slatewise.core.declarations import JOBS_TEXT, learned, param, seed_text, settings
from slatewise.core.ids import Ids, check_ids, one_or_more
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.factors import settings as factors
from slatewise.factors.growth import Former, Places, first_epoch, one_more_epoch
from slatewise.factors.learner import (
    Learned,
    Problem,
    check_finite,
    learn,
    steps_of,
    training_settings,
    warn_of_stages,
    zero_rows_without_pairs,
)
from slatewise.factors.pair_terms import PAIR_TERMS, OwnItems, PairTerm, self_items
from slatewise.factors.pairs import IdPairs, hold_out_pairs, id_pairs, warn_of_users
from slatewise.factors.queries import IdQueries
from slatewise.factors.ranking import (
    LatentModel,
    QueryBatch,
    StagedRecommender,
    items_of_same_id,
    marked,
    pair_term,
    similar_items,
)
from slatewise.factors.settings import STARTS, TrainingSettings
from slatewise.factors.tables import Table, padded
from slatewise.latent.fold_in import TOLERANCE, FoldedQueries, fold_in
from slatewise.persistence.checkpoint import Callbacks, Path
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for
from slatewise.recommend.export import against_equally_long, equally_long, write_index
from slatewise.recommend.filters import RankOptions, check_sets
from slatewise.recommend.ids import Unknown, joined_ids, number_ids


class LatentBase(StagedRecommender):
    """Rank all items by an inner product, trained on violators (WARP), in one or more stages."""

    n_components: int = param(
        rules.count(1, rules.MOST_COMPONENTS), "Width n of U, V and S.", default=100, kw_only=False
    )
    loss: str | factors.Loss = param(factors.LOSSES, factors.LOSS_TEXT, default="warp")
    stages: int | factors.Stages = param(
        settings(factors.Stages),
        """The maximum number of stages, or :class:`slatewise.factors.Stages`, which says how lists move items.""",
        default=1,
    )
    engine: str | factors.Engine = param(factors.ENGINES, factors.ENGINE_TEXT, default="blocked")
    learning_rate: float | Literal["auto"] = param(factors.RATE, factors.RATE_TEXT, default="auto")
    max_norm: float | Literal["auto"] = param(factors.NORM, factors.NORM_TEXT, default="auto")
    dropout: float = param(factors.DROPOUT, factors.DROPOUT_TEXT, default=0.0)
    epochs: int = param(rules.count(), factors.EPOCHS_TEXT, default=12)
    validation_fraction: float = param(
        rules.SHARE,
        """Share of the pairs, at most 20,000, held out to decide when a stage ends. 0, or too few pairs to hold any
        out: all epochs are run.""",
        default=0.05,
    )
    patience: int = param(rules.count(), factors.PATIENCE_TEXT, default=3)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(
        rules.SEED, seed_text("Of the start of the factors and the order of the pairs."), default=None
    )

    query_factors_: Singles = learned(
        rules.learned_array(3, np.float32),
        """(stages, rows, columns): [U | 1] of every stage. Columns of zeros fill up to cache lines.""",
    )
    item_factors_: Singles = learned(
        rules.learned_array(3, np.float32), """(stages, items, columns): V, b, and S and T, or S, A and B."""
    )
    query_steps_: Singles = learned(rules.STEPS, "AdaGrad's sums of squares of the rows of U, for ``partial_fit``.")
    item_steps_: Singles = learned(rules.STEPS, "The same of V and b.", shape=("item_ids_", 2))
    n_stages_: int = learned(rules.count(), "The number of stages kept.")
    n_epochs_: list[int] = learned(
        rules.vector("whole numbers", 0, rules.MOST, whole=True),
        "The number of epochs of each stage until its best one.",
    )
    learning_rate_: float = learned(rules.SINGLE_POSITIVE, "What was trained with.")
    max_norm_: float = learned(rules.NORM, "What was trained with.")
    n_components_: int = learned(rules.count(1, rules.MOST_COMPONENTS), "Predictions are made with it.")
    pair_: str = learned(
        rules.one_of(*PAIR_TERMS), "How lists move items; absent with one stage, as all below.", optional=True
    )
    position_weights_: Singles = learned(rules.WEIGHTS, "The weights of the ranks of a list.", optional=True)
    stage_learning_rate_: float = learned(rules.SINGLE_POSITIVE, "What later stages were trained with.", optional=True)
    stage_norm_: float = learned(rules.NORM, "What later stages were trained with.", optional=True)

    def query_vectors(self, queries: Any, stage: int | None = None) -> Singles:
        """Return vectors whose inner products with :meth:`item_vectors` are the scores that :meth:`rank` sorts by."""
        batch, executor = self._read(queries, RankOptions(stage=stage))
        return against_equally_long(cast("QueryBatch", batch).vectors(executor))

    def item_vectors(self, stage: int | None = None) -> Singles:
        """Return V, b and, at later stages, S, and A of "both", (items, columns), in the order of ``item_ids_``.

        One more column, against which queries have 0, makes all rows equally long: so the nearest by angle also scores
        most, which is what an index of neighbors needs.
        """
        model = self._model()
        last = model.check_stage(stage)
        return equally_long(self.item_factors_[last, :, : model.width(last)])

    def export_index(self, path: str | os.PathLike[str], stage: int | None = None) -> None:
        """Write :meth:`item_vectors` as a usearch index of inner products, for searches that need not be exact.

        Keys are positions in ``item_ids_``; search with :meth:`query_vectors`. With ``n_jobs=1`` the file has the same
        bytes every time. Needs ``pip install 'slatewise[ann]'``.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        stage
            As in :meth:`rank`.
        """
        write_index(path, self.item_vectors(stage=stage), Executor.of(self.n_jobs))

    def similar_items(self, ids: ArrayLike, k: int = 10) -> Rankings:
        """Return the k items whose rows of V have the largest cosine with each item's, itself left out."""
        model = self._model()
        return similar_items(model, number_ids("ids", ids, model.item_ids), k, Executor.of(self.n_jobs))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _go_on(
        self,
        given: TrainingSettings,
        problem: Problem,
        places: Places,
        card: ModelCard,
        prepare: Callable[[Table], None] | None = None,
    ) -> Self:
        """Train one more epoch, with what was found where "auto" is given; ``prepare`` changes the rows of U first."""
        if given.n_components != self.n_components_:
            raise ValueError(
                f"n_components: expected {self.n_components_}, that of the tables to go on with, found "
                f"{given.n_components}; use fit"
            )
        if self.n_stages_ > 1 and given.stages.pair != self.pair_:
            raise ValueError(
                f"stages: expected pair={self.pair_!r}, that of the stages to go on with, found "
                f"{given.stages.pair!r}; use fit"
            )
        steps = steps_of(given, {name: getattr(self, f"{name}_", start) for name, start in STARTS.items()})
        former = Former(
            tuple(self.query_factors_),
            tuple(self.item_factors_),
            self._pair_term(),
            self.query_steps_,
            self.item_steps_,
            tuple(self.n_epochs_),
        )
        found = one_more_epoch(given, steps, problem, former, places, Executor.of(self.n_jobs), prepare)
        return self._keep(given, problem, found, card)

    def _keep(self, given: TrainingSettings, problem: Problem, found: Learned, card: ModelCard) -> Self:
        """Set what was learned; what a fit before has learned and this one has not is taken away."""
        stages, (query_factors, item_factors) = found.stages, found.factors
        check_finite(query_factors, item_factors, found.steps)
        for name in self._optional:
            vars(self).pop(name, None)
        self._predictor = None
        self.query_factors_, self.item_factors_, self.model_card_ = query_factors, item_factors, card
        self.item_ids_, self.n_components_ = problem.pairs.item_ids, given.n_components
        self.n_stages_, self.n_epochs_ = len(stages), [state.best_epoch for state in stages]
        self.query_steps_, self.item_steps_ = stages[0].queries.accumulators, stages[0].items.accumulators
        self.learning_rate_, self.max_norm_ = found.steps.learning_rate, found.steps.max_norm
        if len(stages) > 1:
            self.pair_, self.position_weights_ = given.stages.pair, given.stages.weights()
            self.stage_learning_rate_, self.stage_norm_ = found.steps.stage_learning_rate, found.steps.stage_norm
        return self

    def _pair_term(self) -> PairTerm:
        """Return how lists move items; with one stage only the columns before it count."""
        return pair_term(getattr(self, "pair_", "semidefinite"), self.n_components_, self.n_components_ + 1)

    def _freeze(self) -> LatentModel:
        return LatentModel(
            self.item_ids_,
            tuple(Table.fixed(np.ascontiguousarray(rows)) for rows in self.item_factors_),
            self._pair_term(),
            getattr(self, "position_weights_", np.empty(0, dtype=np.float32)),
            getattr(self, "self_weight_", 0.0),
            tuple(Table.fixed(np.ascontiguousarray(rows)) for rows in self.query_factors_),
        )

    def __sklearn_tags__(self) -> Any:
        tags: Any = cast("Any", super()).__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _n_rows(self) -> int:
        """Return the number of rows of U."""
        raise NotImplementedError

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        several = self.n_stages_ > 1
        wrong = sorted(name for name in self._optional if (name in vars(self)) != several)
        if wrong:
            there = "there with several stages" if several else "absent with one stage"
            raise ValueError(f"{wrong[0]}: expected it to be {there}, found n_stages_={self.n_stages_}")
        if several and np.asarray(self.position_weights_).dtype != np.float32:
            raise ValueError("position_weights_: expected float32, found others")
        if len(self.n_epochs_) != self.n_stages_:
            raise ValueError(f"n_epochs_: expected {self.n_stages_} numbers, found {len(self.n_epochs_)}")
        if len(self.item_ids_) < 2:
            raise ValueError(f"item_ids_: expected at least two items, found {len(self.item_ids_)}")
        pair = self._pair_term()
        width = padded(pair.segments[-1].stop if several else pair.S.start)
        for name, shape in {
            "query_factors_": (self.n_stages_, self._n_rows(), width),
            "item_factors_": (self.n_stages_, len(self.item_ids_), width),
            "query_steps_": (self._n_rows(), 1),
        }.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, found {getattr(self, name).shape}")


class LatentRanker(LatentBase):
    """Rank all items for a query known by its id; for users and their items take CollaborativeRanker.

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
    self_weight_: float = learned(
        rules.WEIGHT, "The weight of a query in its own list; absent with one stage.", optional=True
    )

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
        own = _in_own_lists(self.stages, pairs) if isinstance(self.stages, factors.Stages) else None
        warn_of_users(pairs)
        with self._watched(callbacks) as tell:
            self._settle_seed()
            given = training_settings(self, self.validation_fraction, self.seed_, (tell,))
            card = card_for(pairs.n_queries, *pairs.arrays())
            used, validation = hold_out_pairs(pairs, given.validation_fraction, given.depth, given.seed)
            problem = Problem(used, validation, IdQueries, pairs.n_queries, by_id=True, self_items=own)
            found = learn(self, given, problem, card, checkpoint)
        for state in found.stages:
            zero_rows_without_pairs(state.queries, pairs)
        self._keep(given, problem, found, card)
        warn_of_stages(self.n_stages_, given.stages.n)
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
        if not is_fitted:
            own = _in_own_lists(self.stages, fresh) if isinstance(self.stages, factors.Stages) else None
            self._settle_seed()
            given = training_settings(self, 0.0, self.seed_)
            card = card_for(fresh.n_queries, *fresh.arrays())
            problem = Problem(fresh, None, IdQueries, fresh.n_queries, by_id=True, self_items=own)
            found = first_epoch(
                given, problem, Executor.of(self.n_jobs), lambda table: zero_rows_without_pairs(table, fresh)
            )
            return self._keep(given, problem, found, card)
        item_ids, old_items, new_items = joined_ids("items", self.item_ids_, fresh.item_ids)
        query_ids, old_queries, new_queries = joined_ids("queries", self.query_ids_, fresh.query_ids)
        pairs = IdPairs(
            new_queries[fresh.queries], new_items[fresh.items], fresh.weights, item_ids, len(query_ids), query_ids
        )
        own = _in_own_lists(self.stages, pairs) if isinstance(self.stages, factors.Stages) else None
        self._settle_seed()
        given = training_settings(self, 0.0, self.seed_)
        problem = Problem(pairs, None, IdQueries, pairs.n_queries, by_id=True, self_items=own)
        card = card_for(pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        places = Places(old_queries, old_items)
        return self._go_on(
            given, problem, places, card, lambda table: zero_rows_without_pairs(table, pairs, old_queries)
        )

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

    def _keep(self, given: TrainingSettings, problem: Problem, found: Learned, card: ModelCard) -> Self:
        super()._keep(given, problem, found, card)
        if self.n_stages_ > 1:
            self.self_weight_ = float(given.stages.self_weight)
        self.query_ids_ = cast("IdPairs", problem.pairs).query_ids
        self.n_features_in_ = 1  # a query is one id
        return self

    def _batch(self, model: LatentModel, queries: Any, options: RankOptions, executor: Executor) -> QueryBatch:
        n = self.n_components_
        if isinstance(queries, FoldedQueries):
            rows = queries.vectors
            if rows.ndim != 2 or rows.shape[1] != n or not np.isfinite(rows).all():
                raise ValueError(f"queries: expected finite rows of {n} numbers, found {rows.dtype} {rows.shape}")
            own = np.zeros((len(rows), model.queries[0].values.shape[1]), dtype=np.float32)
            own[:, :n], own[:, n] = rows, 1.0
            # U and V are the same at all stages, so one row serves all.
            own_row = (IdQueries(Table.fixed(own)),) * len(model.items)
            return QueryBatch(model, np.arange(len(rows)), own_row, stage=options.stage)
        ids = check_ids("queries", one_or_more("queries", queries))
        instead = "get the order of the biases"
        numbers = number_ids("queries", ids, self.query_ids_, unknown=options.unknown, instead=instead)
        vectors: list[Singles] = [table.values[numbers] for table in model.queries]
        for values in vectors:
            values[numbers < 0, :n] = 0.0
        return QueryBatch(
            model,
            ids,
            tuple(IdQueries(Table.fixed(values)) for values in vectors),
            histories=items_of_same_id(ids, model.item_ids),
            has_items=False,
            self_items=self_items(ids, model.item_ids, model.self_weight) if model.self_weight else None,
            nothing_known=marked(numbers < 0),
            stage=options.stage,
        )

    def _distinct(self, queries: Any) -> tuple[Any, Ints | None]:
        """Rank once for a query that occurs several times."""
        if isinstance(queries, FoldedQueries):
            return queries, None
        return np.unique(check_ids("queries", one_or_more("queries", queries)), return_inverse=True)

    def _n_rows(self) -> int:
        return len(self.query_ids_)

    def _check_learned(self) -> None:
        """Raise ValueError unless a query is one id."""
        super()._check_learned()
        if self.n_features_in_ != 1:
            raise ValueError(f"n_features_in_: expected 1 where a query is one id, found {self.n_features_in_}")


def _in_own_lists(stages: factors.Stages, pairs: IdPairs) -> OwnItems | None:
    """Return the item that each query is, for its own list; raise ValueError where later stages have none."""
    own = self_items(pairs.query_ids, pairs.item_ids, stages.self_weight)
    if own is not None and stages.n > 1 and (own.items < 0).all():
        found = stages.self_weight
        raise ValueError(f"Stages.self_weight: expected 0 where no query has the id of an item, found {found!r}")
    return own
