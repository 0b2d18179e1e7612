"""Learn which items belong together, on top of any scorer (the outlook of Weston and Blitzer 2012)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.ids import one_or_more
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.estimators.base import SavedEstimator
from slatewise.factors.input import Ids, check_ids, refuse_context
from slatewise.factors.model import LatentModel, pair_term
from slatewise.factors.pair_terms import PAIR_TERMS
from slatewise.factors.settings import LatentSettings, position_weights
from slatewise.factors.tables import Singles, Table, padded
from slatewise.factors.training import EpochReport
from slatewise.latent.base_scorer import Scaled, pairs_for, rows_of
from slatewise.latent.batch import QueryBatch
from slatewise.latent.catalogue_ranker import CatalogueRanker
from slatewise.latent.fitting import shape_of, stages_of, tell_of_stages
from slatewise.persistence.saving import card_for
from slatewise.recommend.ids import Unknown


class StructuredReranker(CatalogueRanker):
    """Rerank all items of any scorer by ``f(q, d) = b(q, d) + sum_j w_j (S d).(S dbar_j)``.

    b is the base's score, dbar its k best items for the query and w_j = 1/j; S is learnt from observed pairs (WARP), or
    S and T with ``(S d).(T dbar_j)``. Further stages take the lists of the one before. A stage is kept only if recall
    on held-out pairs rose. From the third epoch on, what is judged and kept is the mean of S over an epoch.

    Parameters
    ----------
    base : matrix, sparse matrix, pair of matrices or object
        Scores (queries, items), of which a sparse matrix need not store the zeros; or vectors, (queries, n) and
        (items, n), whose inner products are the scores. Row and column numbers are then the ids. Or an object whose
        ``scores(queries, items)`` returns a matrix for given ids, such as a :class:`slatewise.LatentRanker`. A base
        that knows the pairs of fit by heart shows lists there that are better than any it will show later: fit it on
        other pairs.
    n_components : int
        Width of S, and of T, A and B.
    stages : int
        How many stages to train at most on top of the base, which is stage 0; a warning says where one did not help.
    pair : {"gram", "bilinear", "both"}
        S'S, which can only say that items belong together; S'T, which can also say that they do not; or S'S + A'B, the
        sum of such two, ``(S d).(S dbar_j) + (A d).(B dbar_j)``.
    k : int
        Items of a list, and the depth of the recall that is watched, though never more than a quarter of the catalogue.
    base_scale : float
        How many margins lie between the best and the k-th item of the base's lists on average: the base's own unit
        means nothing here. Larger: S can move less.
    learning_rate, max_norm : float
        AdaGrad's step, and the largest norm of a row, of S, T, A and B each.
    epochs : int
        Most passes over the pairs, per stage.
    validation_fraction : float
        Share of the pairs (at most 20,000), all those of some queries, held out to decide when a stage ends. 0, or
        queries too few to spare any: all epochs are run.
    patience : int
        Epochs without a better recall after which a stage ends.
    batch_size : int, optional
        Pairs of a step; default: a hundredth of them, between 64 and 2,048.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.factors.training.EpochReport` after every epoch.
    n_jobs : int, optional
        Threads over blocks of pairs or queries; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Start of S and order of the pairs. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    item_ids_
        Ids in ascending order: all columns of a matrix, or the items seen in fit.
    pair_factors_
        (stages, items, columns): S, and T, or A and B, after it, of every stage kept. Columns of zeros fill up
        to cache lines.
    base_unit_
        What the base's scores are divided by.
    n_components_, pair_, k_
        What all answers are made with, whatever the parameters are set to after fit.
    n_stages_, n_epochs_
        Stages kept, 0 where none helped, and how many epochs each was trained before it was best.

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
    >>> pairs = datasets.make_sessions(300, 40, random_state=0).sessions.pairs()
    >>> popularity = np.tile(np.bincount(pairs.items, minlength=40), (40, 1))
    >>> reranker = StructuredReranker(popularity, n_components=8, k=5, epochs=3).fit(pairs.queries, pairs.items)
    >>> reranker.rank([25, 3], k=4).ids.shape
    (2, 4)
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "item_ids_": rules.IDS,
        "pair_factors_": rules.learned_array(3, np.float32),
        "base_unit_": rules.UNIT,
        "n_components_": rules.count(1, rules.MOST_COMPONENTS),
        "pair_": rules.one_of(*PAIR_TERMS),
        "k_": rules.count(1, rules.MOST_LISTED),
        "n_stages_": rules.count(0),
        "n_epochs_": rules.vector("whole numbers", 0, rules.MOST, whole=True, empty=True),
    }
    _not_saved: ClassVar[tuple[str, ...]] = (*SavedEstimator._not_saved, "base")
    pair_factors_: Singles
    base_unit_: float
    n_components_: int
    pair_: str
    k_: int
    n_stages_: int
    n_epochs_: list[int]
    _frozen_from: ClassVar[tuple[str, ...]] = ("item_ids_", "pair_factors_", "n_components_", "pair_", "k_")

    _rules: ClassVar[Mapping[str, Rule]] = {
        "base": rules.ELSEWHERE,
        "n_components": rules.count(1, rules.MOST_COMPONENTS),
        "stages": rules.count(),
        "pair": rules.one_of(*PAIR_TERMS),
        "k": rules.count(1, rules.MOST_LISTED),
        "base_scale": rules.SINGLE_POSITIVE,
        "learning_rate": rules.SINGLE_POSITIVE,
        "max_norm": rules.NORM,
        "epochs": rules.count(),
        "validation_fraction": rules.SHARE,
        "patience": rules.count(),
        "batch_size": rules.count() | rules.NONE,
        "callbacks": rules.CALLBACKS,
        "n_jobs": rules.JOBS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        base: Any = None,
        n_components: int = 50,
        stages: int = 1,
        pair: Literal["gram", "bilinear", "both"] = "gram",
        k: int = 20,
        base_scale: float = 4.0,
        learning_rate: float = 0.1,
        max_norm: float = 1.0,
        epochs: int = 12,
        validation_fraction: float = 0.05,
        patience: int = 3,
        batch_size: int | None = None,
        callbacks: Sequence[Callable[[EpochReport], None]] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.base = base
        self.n_components = n_components
        self.stages = stages
        self.pair = pair
        self.k = k
        self.base_scale = base_scale
        self.learning_rate = learning_rate
        self.max_norm = max_norm
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.batch_size = batch_size
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, queries: ArrayLike, items: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries, items
            Ids, one per pair.
        sample_weight
            One weight >= 0 per pair.
        """
        rules.check(self)
        pairs = pairs_for(self.base, queries, items, sample_weight)
        self.n_features_in_ = 1  # a query is one id
        settings, executor = self._settings(), Executor.of(self.n_jobs)
        base = rows_of(self.base, cast("Ids", pairs.query_ids), pairs.item_ids)
        shape = shape_of(settings, pairs, settings.steps(), on_base=True)
        stages = stages_of(settings, pairs, shape, executor, base)
        first = stages.start(0, ())
        found = stages.cascade((first,)).top(np.arange(pairs.n_queries), min(self.k, shape.n_items), executor=executor)
        unit = self._unit(found.scores)
        stages = replace(stages, base=Scaled(base, unit))
        first.best_recall = stages.recall((first,))
        learned = stages.fit(settings.stages, (first,), settings.report)[1:]
        factors = np.array([state.items.values for state in learned], dtype=np.float32)
        self.pair_factors_ = factors.reshape(len(learned), len(pairs.item_ids), shape.width(1))
        self._frozen = None
        self.item_ids_, self.base_unit_ = pairs.item_ids, unit
        self.n_components_, self.pair_, self.k_ = int(self.n_components), self.pair, int(self.k)
        self.n_stages_, self.n_epochs_ = len(learned), [state.best_epoch for state in learned]
        self.model_card_ = card_for(pairs.n_queries, *pairs.arrays())
        tell_of_stages(self.n_stages_, self.stages)
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

    def _settings(self) -> LatentSettings:
        """Resolve the parameters: steps and norms are those of S, and the base is one stage more."""
        given = self.get_params(deep=False)
        of_S = {"stage_learning_rate": given.pop("learning_rate"), "stage_norm": given.pop("max_norm")}
        self._settle_seed()
        return LatentSettings.of(given | of_S | {"stages": self.stages + 1, "seed": self.seed_})

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
            position_weights(self.k_),
        )

    def _batch(self, queries: Any, unknown: Unknown, query_features: Any = None) -> QueryBatch:
        refuse_context(query_features, "of a reranker")
        model, ids = self._model(), check_ids("queries", one_or_more("queries", queries))
        return QueryBatch.on_base(model, ids, Scaled(rows_of(self.base, ids, model.item_ids, unknown), self.base_unit_))
