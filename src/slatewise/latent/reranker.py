"""Learn which items belong together, on top of any scorer (the outlook of Weston and Blitzer 2012)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Ints, Singles
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, seed_text, settings
from slatewise.core.ids import check_ids, one_or_more
from slatewise.core.rules import CALLBACKS
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.factors.learner import Problem, stages_of, steps_of, warn_of_stages
from slatewise.factors.pair_terms import PAIR_TERMS
from slatewise.factors.pairs import hold_out_queries
from slatewise.factors.queries import zero_queries
from slatewise.factors.ranking import LatentModel, QueryBatch, StagedRecommender, items_of_same_id, pair_term
from slatewise.factors.settings import EPOCHS_TEXT, PATIENCE_TEXT, Blocked, Stages, TrainingSettings
from slatewise.factors.tables import Table, padded
from slatewise.latent.base_scores import Scaled, pairs_for, rows_of
from slatewise.persistence.checkpoint import Callbacks
from slatewise.persistence.saving import card_for
from slatewise.recommend.filters import RankOptions


class StructuredReranker(StagedRecommender):
    """Rerank all items of any scorer by ``f(q, d) = b(q, d) + sum_j w_j (S d).(S dbar_j)``.

    b is the base's score, dbar its k best items for the query and w_j = 1/j; S is learned from observed pairs (WARP),
    or S and T with ``(S d).(T dbar_j)``. Further stages take the lists of the one before. A stage is kept only if
    recall on held-out pairs rose. From the third epoch on, the mean of S over an epoch is measured and kept.

    Notes
    -----
    A saved file has no base: after loading, ``set_params(base=...)`` gives it back.

    Bases that people have, from a sparse matrix X (queries, items) of counts. None of them fills a dense matrix::

        X.log1p()                                          # the counts themselves
        (svd.fit_transform(X), svd.components_.T)          # sklearn's TruncatedSVD
        (nmf.fit_transform(X), nmf.components_.T)          # sklearn's NMF
        (model.user_factors, model.item_factors)           # implicit's models

    Examples
    --------
    >>> from slatewise import StructuredReranker, datasets
    >>> from slatewise.factors import Stages
    >>> pairs = datasets.make_sessions(300, 40, random_state=0).sessions.pairs()
    >>> popularity = np.tile(np.bincount(pairs.items, minlength=40), (40, 1))
    >>> reranker = StructuredReranker(popularity, n_components=8, stages=Stages(k=5), epochs=3)
    >>> reranker = reranker.fit(pairs.queries, pairs.items)
    >>> reranker.rank([25, 3], k=4).ids.shape
    (2, 4)
    """

    base: Any = param(
        rules.ANY,
        """Scores (queries, items), of which a sparse matrix need not store the zeros; or vectors, (queries, n) and
        (items, n), whose inner products are the scores. Row and column numbers are then the ids. Or an object whose
        ``scores(queries, items)`` returns a matrix for given ids, such as a :class:`slatewise.LatentRanker`. A base
        that has learned the pairs of fit ranks them better than any later pairs: fit it on other pairs.""",
        default=None,
        saved=False,
        kw_only=False,
    )
    n_components: int = param(rules.count(1, rules.MOST_COMPONENTS), "Width of S, and of T, A and B.", default=50)
    stages: int | Stages = param(
        settings(Stages),
        """The maximum number of stages on top of the base, which is stage 0, or :class:`slatewise.factors.Stages`,
        which says how lists move items.""",
        default=1,
    )
    base_scale: float = param(
        rules.SINGLE_POSITIVE,
        """The number of margins between the best and the k-th item of the base's lists on average: the base's own unit
        means nothing here. Larger: S can move less.""",
        default=4.0,
    )
    batch_size: int | None = param(
        rules.count() | rules.NONE, "Pairs of a step. None: a hundredth of them, between 64 and 2,048.", default=None
    )
    epochs: int = param(rules.count(), EPOCHS_TEXT, default=12)
    validation_fraction: float = param(
        rules.SHARE,
        """Share of the pairs, at most 20,000, all those of some queries, held out to decide when a stage ends. 0, or
        too few queries to hold any out: all epochs are run.""",
        default=0.05,
    )
    patience: int = param(rules.count(), PATIENCE_TEXT, default=3)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(
        rules.SEED, seed_text("Of the start of S and the order of the pairs."), default=None
    )

    pair_factors_: Singles = learned(
        rules.learned_array(3, np.float32),
        """(stages, items, columns): S, and T, or A and B, after it, of every stage kept. Columns of zeros fill up to
        cache lines.""",
    )
    base_unit_: float = learned(rules.UNIT, "What the base's scores are divided by.")
    n_components_: int = learned(rules.count(1, rules.MOST_COMPONENTS), "Predictions are made with it.")
    pair_: str = learned(rules.one_of(*PAIR_TERMS), "How lists move items in predictions.")
    position_weights_: Singles = learned(rules.WEIGHTS, "The weights of ranks in predictions.")
    n_stages_: int = learned(rules.count(0), "The number of stages kept, 0 where none helped.")
    n_epochs_: list[int] = learned(
        rules.vector("whole numbers", 0, rules.MOST, whole=True, empty=True),
        "The number of epochs of each stage until its best one.",
    )

    def fit(
        self,
        queries: ArrayLike,
        items: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        callbacks: Callbacks = None,
    ) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries, items
            Ids, one per pair.
        sample_weight
            One weight >= 0 per pair.
        callbacks
            Functions to call with a :class:`slatewise.factors.settings.EpochReport` after every epoch.
        """
        rules.check(self)
        pairs = pairs_for(self.base, queries, items, sample_weight)
        given, executor = self._settings(callbacks), Executor.of(self.n_jobs)
        self.n_features_in_ = 1  # a query is one id
        k, n_items = given.stages.k, len(pairs.item_ids)
        base = rows_of(self.base, pairs.query_ids, pairs.item_ids)
        used, validation = hold_out_queries(pairs, given.validation_fraction, k, given.seed)
        problem = Problem(used, validation, zero_queries, pairs.n_queries, base=base)
        stages = stages_of(given, problem, steps_of(given), executor)
        first = stages.start(0, ())
        found = stages.cascade((first,)).top(np.arange(pairs.n_queries), min(k, n_items), executor=executor)
        unit = self._unit(found.scores)
        stages = replace(stages, base=Scaled(base, unit))
        first.best_recall = stages.recall((first,))
        with self._watched(callbacks) as tell:
            learned = stages.fit(given.stages.n, (first,), tell)[1:]
        factors = np.array([state.items.values for state in learned], dtype=np.float32)
        self.pair_factors_ = factors.reshape(len(learned), n_items, stages.shape.width(1))
        self._predictor = None
        self.item_ids_, self.base_unit_ = pairs.item_ids, unit
        self.n_components_, self.pair_ = int(self.n_components), given.stages.pair
        self.position_weights_ = given.stages.weights()
        self.n_stages_, self.n_epochs_ = len(learned), [state.best_epoch for state in learned]
        self.model_card_ = card_for(pairs.n_queries, *pairs.arrays())
        warn_of_stages(self.n_stages_, given.stages.n - 1)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the base to one ``.safetensors`` file.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        super().save(path)

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        if len(self.n_epochs_) != self.n_stages_:
            raise ValueError(f"n_epochs_: expected {self.n_stages_} numbers, found {len(self.n_epochs_)}")
        if not len(self.item_ids_) or self.n_features_in_ != 1:
            raise ValueError("item_ids_, n_features_in_: expected at least one item, and 1 for a query of one id")
        width = padded(pair_term(self.pair_, self.n_components_, 0).segments[-1].stop)
        shape = (self.n_stages_, len(self.item_ids_), width)
        if self.pair_factors_.shape != shape:
            raise ValueError(f"pair_factors_: expected float32 of shape {shape}, found {self.pair_factors_.shape}")

    # --- parts -------------------------------------------------------------------------------------------------------

    def _settings(self, callbacks: Callbacks) -> TrainingSettings:
        """Resolve the parameters: the base is one stage more."""
        stages: Stages = resolved(self, "stages")
        for name in ("learning_rate", "max_norm"):
            if isinstance(getattr(stages, name), str):
                raise ValueError(f"stages: expected a number as {name} of a reranker, found {stages!r}")
        if stages.self_weight:
            raise ValueError(f"stages: expected self_weight=0 for a reranker, found {stages!r}")
        CALLBACKS.check("callbacks", callbacks)
        self._settle_seed()
        return TrainingSettings(
            n_components=int(self.n_components),
            epochs=self.epochs,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            seed=self.seed_,
            stages=replace(stages, n=int(stages.n) + 1),
            engine=Blocked(batch_size=self.batch_size),
            depth=stages.k,
            callbacks=callbacks or (),
        )

    def _unit(self, best: Singles) -> float:
        """Return the mean gap between the best and the k-th score, over ``base_scale``; 1 where there is none."""
        ends = best[:, [0, -1]].astype(np.float64)  # a gap of float32 numbers need not be one
        gap = float((ends[:, 0] - ends[:, 1]).mean())
        unit = gap / float(self.base_scale) if gap > 0 else 1.0
        if not rules.UNIT.allows(unit):
            raise ValueError(
                f"base: expected lists that span 1e-30 to 3.4e+38 times base_scale={self.base_scale:g} on average, "
                f"found {gap:g}; multiply the scores by a number"
            )
        return unit

    def _freeze(self) -> LatentModel:
        alone = Table.zeros(len(self.item_ids_), 0, ())
        return LatentModel(
            self.item_ids_,
            (alone, *(Table.fixed(np.ascontiguousarray(rows)) for rows in self.pair_factors_)),
            pair_term(self.pair_, self.n_components_, 0),
            self.position_weights_,
        )

    def _batch(self, model: LatentModel, queries: Any, options: RankOptions, executor: Executor) -> QueryBatch:
        ids = check_ids("queries", one_or_more("queries", queries))
        base = Scaled(rows_of(self.base, ids, model.item_ids, options.unknown), self.base_unit_)
        made = tuple(zero_queries(table) for table in model.items)
        histories = items_of_same_id(ids, model.item_ids)
        return QueryBatch(model, ids, made, histories=histories, has_items=False, base=base, stage=options.stage)

    def _distinct(self, queries: Any) -> tuple[Any, Ints | None]:
        """Rank once for a query that occurs several times."""
        return np.unique(check_ids("queries", one_or_more("queries", queries)), return_inverse=True)
