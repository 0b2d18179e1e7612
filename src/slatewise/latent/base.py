"""What LatentRanker and LatentFeatureRanker share: the parameters, what is learned, and how it ranks."""

from __future__ import annotations

import os
from dataclasses import astuple, replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Singles
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, seed_text, settings
from slatewise.core.rankings import Rankings
from slatewise.core.rules import CALLBACKS
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.factors import settings as factors
from slatewise.factors.growth import Former
from slatewise.factors.learner import Learned, Problem, check_engine, check_finite, learn, warn_of_stages
from slatewise.factors.pair_terms import PAIR_TERMS
from slatewise.factors.ranking import LatentModel, StagedRecommender, pair_term, similar_items
from slatewise.factors.settings import STARTS, Steps, TrainingSettings
from slatewise.factors.tables import Table, padded
from slatewise.persistence.checkpoint import Callbacks, Checkpoint, Path
from slatewise.persistence.file import ModelCard
from slatewise.recommend.export import against_equally_long, equally_long, write_index
from slatewise.recommend.ids import number_ids


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
    stage_learning_rate_: float = learned(rules.SINGLE_POSITIVE, "What later stages were trained with.")
    stage_norm_: float = learned(rules.NORM, "What later stages were trained with.")
    n_components_: int = learned(rules.count(1, rules.MOST_COMPONENTS), "Predictions are made with it.")
    pair_: str = learned(rules.one_of(*PAIR_TERMS), "How lists move items in predictions.")
    position_weights_: Singles = learned(rules.WEIGHTS, "The weights of ranks in predictions.")
    self_weight_: float = learned(rules.WEIGHT, "The weight of a query in its own list in predictions.")

    def query_vectors(self, queries: Any, stage: int | None = None) -> Singles:
        """Return vectors whose inner products with :meth:`item_vectors` are the scores that :meth:`rank` sorts by."""
        executor = Executor.of(self.n_jobs)
        return against_equally_long(self._batch(queries, "error", executor).at(stage).vectors(executor))

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

    def _settings(self, callbacks: Callbacks = None) -> TrainingSettings:
        """Resolve the parameters; the seed last, when nothing is left to refuse."""
        CALLBACKS.check("callbacks", callbacks)
        given = TrainingSettings(
            n_components=int(self.n_components),
            epochs=self.epochs,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            loss=resolved(self, "loss"),
            stages=resolved(self, "stages"),
            engine=resolved(self, "engine"),
            learning_rate=self.learning_rate,
            max_norm=self.max_norm,
            dropout=self.dropout,
            callbacks=callbacks or (),
        )
        check_engine(given)
        return given

    def _learn(self, given: TrainingSettings, problem: Problem, card: ModelCard, checkpoint: Path) -> Learned:
        """Train all stages."""
        as_used = {name: resolved(self, name) for name in ("loss", "stages", "engine")}
        state = Checkpoint.of(self, card.data_sha256, checkpoint, as_used)
        with self._watched(given.callbacks) as tell:
            return learn(replace(given, callbacks=(tell,)), problem, state, Executor.of(self.n_jobs))

    def _former_steps(self, given: TrainingSettings) -> Steps:
        """Return what to go on with: "auto" is what was found."""
        if self.n_stages_ > 1 and given.stages.pair != self.pair_:
            raise ValueError(
                f"stages: expected pair={self.pair_!r}, that of the stages to go on with, found "
                f"{given.stages.pair!r}; use fit"
            )
        return given.steps({name: getattr(self, f"{name}_") for name in STARTS})

    def _former(self) -> Former:
        pair = pair_term(self.pair_, self.n_components_, self.n_components_ + 1)
        epochs, queries, items = tuple(self.n_epochs_), tuple(self.query_factors_), tuple(self.item_factors_)
        return Former(queries, items, pair, self.query_steps_, self.item_steps_, epochs)

    def _keep(self, given: TrainingSettings, problem: Problem, found: Learned, card: ModelCard) -> Self:
        stages, (query_factors, item_factors) = found.stages, found.factors
        check_finite(query_factors, item_factors, found.steps)
        self._predictor = None
        self.query_factors_, self.item_factors_, self.model_card_ = query_factors, item_factors, card
        self.item_ids_ = problem.pairs.item_ids
        self.n_stages_, self.n_epochs_ = len(stages), [state.best_epoch for state in stages]
        self.query_steps_, self.item_steps_ = stages[0].queries.accumulators, stages[0].items.accumulators
        self.learning_rate_, self.max_norm_, self.stage_learning_rate_, self.stage_norm_ = astuple(found.steps)
        self.n_components_, self.pair_ = given.n_components, given.stages.pair
        self.position_weights_, self.self_weight_ = given.stages.weights(), float(given.stages.self_weight)
        return self

    def _keep_fit(self, given: TrainingSettings, problem: Problem, found: Learned, card: ModelCard) -> Self:
        self._keep(given, problem, found, card)
        warn_of_stages(self.n_stages_, given.stages.n)
        return self

    def _freeze(self) -> LatentModel:
        return LatentModel(
            self.item_ids_,
            tuple(Table.fixed(np.ascontiguousarray(rows)) for rows in self.item_factors_),
            pair_term(self.pair_, self.n_components_, self.n_components_ + 1),
            self.position_weights_,
            self.self_weight_,
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
        if np.asarray(self.position_weights_).dtype != np.float32:
            raise ValueError("position_weights_: expected float32, found others")
        if len(self.n_epochs_) != self.n_stages_:
            raise ValueError(f"n_epochs_: expected {self.n_stages_} numbers, found {len(self.n_epochs_)}")
        if len(self.item_ids_) < 2:
            raise ValueError(f"item_ids_: expected at least two items, found {len(self.item_ids_)}")
        pair = pair_term(self.pair_, self.n_components_, self.n_components_ + 1)
        width = padded(pair.S.start if self.n_stages_ == 1 else pair.segments[-1].stop)
        for name, shape in {
            "query_factors_": (self.n_stages_, self._n_rows(), width),
            "item_factors_": (self.n_stages_, len(self.item_ids_), width),
            "query_steps_": (self._n_rows(), 1),
        }.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, found {getattr(self, name).shape}")
