"""Rank a whole catalogue by latent factors, and learn which items belong together (Weston and Blitzer 2012)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.rankings import Rankings
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.data.records import Prefixes, Sessions
from slatewise.factors.bags import AgeWeights
from slatewise.factors.base_levels import N_KNOTS
from slatewise.factors.engines import ENGINES
from slatewise.factors.input import Ids, LatentPairs, check_context, check_features, check_pairs, refuse_context
from slatewise.factors.model import LatentModel, pair_term
from slatewise.factors.pair_terms import PAIR_TERMS
from slatewise.factors.search import Learned
from slatewise.factors.settings import DROPOUT, STARTS, STARTS_OF_SUMS, LatentSettings
from slatewise.factors.tables import Ints, Singles, Table, padded
from slatewise.factors.training import EpochReport
from slatewise.latent.batch import QueryBatch, similar_items
from slatewise.latent.catalogue_ranker import CatalogueRanker
from slatewise.latent.fitting import are_many, check_for_kind, search_of, tell_of_stages, zero_untaught
from slatewise.latent.fold_in import FoldedQueries
from slatewise.latent.fold_in_rows import folded_in
from slatewise.latent.growth import Former, first_epoch, one_more_epoch
from slatewise.latent.session_bases import BASE, added_to, check_base, described, fitted_base, fresh, is_without_base
from slatewise.persistence.checkpoint import Checkpoint
from slatewise.persistence.file import ModelCard, ModelState
from slatewise.persistence.saving import card_for
from slatewise.recommend.export import against_equally_long, equally_long, write_index
from slatewise.recommend.ids import Unknown, number_ids
from slatewise.sessions.estimator import SessionModel, scorer_of
from slatewise.sessions.session_pairs import are_sessions, is_ragged, opened, session_pairs


class LatentRanker(CatalogueRanker):
    """Rank all items for a query by an inner product, trained on violators (WARP), in one or more stages.

    ``f(q, d) = (U q).(V d) + b_d`` at stage 0. A query is an id, a row of features, or what a session or a basket has
    so far: then ``U q`` is a weighted sum of rows of U over its items, and sessions that fit never saw are answered at
    the same price. A later stage adds ``sum_j w_j (S d).(S dbar_j)`` over the k best items dbar of the stage before, so
    that items which belong together rise together.

    Parameters
    ----------
    n_components : int
        Width n of U, V and S.
    stages : int
        How many stages to train at most; 1 is the plain latent ranker. A stage is kept only if recall on held-out pairs
        rose, and a warning says where it did not.
    k : int
        Items of a list handed over to the next stage, and the depth of the recall that is watched, though never more
        than a quarter of the catalogue.
    loss : {"warp", "auc"}
        Weight of a pair by the rank of its item: the top of the list matters most, or all ranks alike.
    alpha : float
        Of "warp": place i weighs ``i ** -alpha``. 1 is the paper's; more thinks of the top still more.
    engine : {"blocked", "sampled", "gpu"}
        "blocked": exact counts by matrix products, the same bits with any number of threads. "sampled": draws items
        until one violates; not reproducible with more than one thread; stages after the first are blocked all the same.
        "gpu": as "blocked" on one GPU, in float16 and with the mean over all violators; lists of stages and the recall
        that is watched are made there too; the same bits on the same GPU. Needs ``pip install 'slatewise[gpu]'``.
    negatives : "catalogue" or int
        Whom "blocked" compares a pair with: every item, or so many drawn for each step, and the k best of a query that
        has enough pairs to learn from them. "gpu" compares with every item.
    learning_rate, max_norm : float or "auto"
        AdaGrad's step, and the largest norm of a row, of U and V. "auto": some are tried for a few epochs, and the one
        that promises the best recall on the held-out pairs goes on, which takes two or three times as long as a fit
        with numbers. Where no pairs are held out, and in a first :meth:`partial_fit`, "auto" is .3 and 1.5; so it is
        for sessions whose pairs times items are more than 2 ** 31, but .6 and 2.5 where these have no base.
    stage_learning_rate, stage_norm : float or "auto"
        The same of S, and of T, A and B alike, where "auto" without held-out pairs is .1 and 1; stage 0 is trained once
        for all that are tried.
    pair : {"gram", "bilinear", "both"}
        How a list moves an item: by S'S, which can only say that items belong together; by S'T, which can also say that
        they do not; or by S'S + A'B, the sum of such two, ``(S d).(S dbar_j) + (A d).(B dbar_j)``.
    position_weights : "reciprocal" or k numbers
        w_j of the list's j-th item.
    own_weight : float
        Where queries are items too (what comes after this one?): the weight of the query in its own list. Queries whose
        id no item has, and rows of :meth:`fold_in`, are in none. With "gram" a pair then teaches both directions.
    window : int or None
        Of sessions: how many of the last items make a query, each with a weight of its own by age. None: sessions are
        baskets, whose items are in no order and all count alike.
    base : "auto", None, :class:`slatewise.SessionBlend`, ``SessionNeighbors`` or ``SessionCooccurrence``
        Of sessions: whose scores are added, by a weight that is learnt; it is fitted on the same sessions. "auto":
        ``SessionBlend()`` for sessions, none for baskets. Ids and features have none.
    dropout : float or "auto"
        Share of the numbers of a query's vector that are left out, at random, in each step of training. "auto": .5 for
        sessions, 0 for other queries.
    epochs : int
        Most passes over the pairs, per stage.
    validation_fraction : float
        Share of the pairs (at most 20,000 pairs) held out to decide when a stage ends; of ids, a pair of every query
        and of every item is trained on all the same, and sessions are held out whole. 0, or pairs too few to spare any:
        all epochs are run.
    patience : int
        Epochs without a better recall after which a stage ends.
    batch_size : int, optional
        Pairs of a step; default: a hundredth of them, between 64 and 2,048.
    max_draws : int, optional
        Of "sampled", at most as many as there are other items, which is the default.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.factors.training.EpochReport` after every epoch of fit, those of trials
        included; partial_fit calls none.
    checkpoint : path, optional
        Where fit keeps its state after every epoch; it goes on from there if the file is of the same data and settings,
        and removes it at the end. With "blocked", and with "gpu" on the same GPU, the bits are those of a fit that
        never stopped, and "auto" finds the same.
    n_jobs : int, optional
        Threads over blocks of pairs or queries. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Start of the factors and order of the pairs. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    query_ids_, item_ids_
        Ids in ascending order; queries given by features, and sessions, have none.
    query_factors_, item_factors_
        (stages, rows, columns): U and 1, or a row of U per feature, or of sessions a row of U per item, one per feature
        of whoever asks and then the weights by age; V, b, S and T, or S, A and B. Columns of zeros fill up to cache
        lines.
    window_
        Of sessions; None for baskets, and 0 where queries are neither.
    base_
        The fitted base; None where there is none.
    learned_weight_
        Of what was learnt beside the base: 0, the base alone; None, without the base; 1, as both were learnt together.
    learning_rate_, max_norm_, stage_learning_rate_, stage_norm_
        What was trained with.
    n_components_, pair_, position_weights_, own_weight_
        What all answers are made with, whatever the parameters are set to after fit; as many weights as ``k`` was.
    n_stages_, n_epochs_
        Stages kept, and how many epochs each was trained before it was best.

    Notes
    -----
    Pairs that occur twice count twice. Other items of the same query are negatives of a pair like any other.

    Of sessions, with the items x_t, x_{t-1}, ... so far,

    ``f(q, d) = sum_j w_j (U x_{t-j}).(V d) + b_d + sum_j r_j [x_{t-j} = d]``,  j = 0 to ``window - 1``

    and every item but the first of a session is one to be found. ``w_j >= 0`` (:attr:`age_weights_`, the first is 1)
    and ``r_j`` (:attr:`repeat_weights_`), for items that come again, are learnt. Of a basket each item is to be found
    among the others, and the sum is divided by the root of their number.

    With ``query_features`` F, a row per session, ``sum_f F_sf (U f).(V d)`` is added, f being the features of whoever
    asks: an id, or anything that is known of them.

    Examples
    --------
    >>> from slatewise import LatentRanker, datasets
    >>> pairs = datasets.make_sessions(300, 40, random_state=0).sessions.pairs()
    >>> ranker = LatentRanker(n_components=8, epochs=5).fit(pairs.queries, pairs.items)
    >>> found = ranker.rank([25, 3], k=5)
    >>> found.ids.shape, found.scores.shape
    ((2, 5), (2, 5))

    Sessions, oldest item first:

    >>> visits = [["tea", "milk", "sugar"], ["bread", "butter", "jam"], ["tea", "milk", "sugar"], ["bread", "jam"]]
    >>> ranker = LatentRanker(n_components=4, epochs=9, validation_fraction=0).fit(visits)
    >>> ranker.rank([["tea", "milk"], ["bread"]], k=1, exclude_seen=True).ids.tolist()
    [['sugar'], ['jam']]

    Sessions, and who they are of: after tea one takes milk, the other lemon.

    >>> visits, users = [["tea", "milk"], ["tea", "lemon"]] * 9, [[1, 0], [0, 1]] * 9
    >>> ranker = LatentRanker(n_components=4, epochs=9, base=None, validation_fraction=0)
    >>> ranker = ranker.fit(visits, query_features=users)
    >>> ranker.rank([["tea"], ["tea"]], k=1, query_features=[[1, 0], [0, 1]]).ids.tolist()
    [['milk'], ['lemon']]
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "query_ids_": rules.IDS,
        "item_ids_": rules.IDS,
        "query_factors_": rules.learned_array(3, np.float32),
        "item_factors_": rules.learned_array(3, np.float32),
        "query_steps_": rules.STEPS,
        "item_steps_": rules.STEPS,
        "by_features_": rules.BOOLEAN,
        "window_": rules.count(0, rules.MOST_LISTED) | rules.NONE,
        "learned_weight_": rules.WEIGHT | rules.NONE,
        "n_stages_": rules.count(),
        "n_epochs_": rules.vector("whole numbers", 0, rules.MOST, whole=True),
        "learning_rate_": rules.SINGLE_POSITIVE,
        "max_norm_": rules.NORM,
        "stage_learning_rate_": rules.SINGLE_POSITIVE,
        "stage_norm_": rules.NORM,
        "n_components_": rules.count(1, rules.MOST_COMPONENTS),
        "pair_": rules.one_of(*PAIR_TERMS),
        "position_weights_": rules.WEIGHTS,
        "own_weight_": rules.WEIGHT,
    }
    _parts: ClassVar[tuple[str, ...]] = ("base_",)
    query_ids_: Ids
    query_factors_: Singles
    item_factors_: Singles
    query_steps_: Singles
    item_steps_: Singles
    by_features_: bool
    window_: int | None
    base_: SessionModel | None
    learned_weight_: float | None
    n_stages_: int
    n_epochs_: list[int]
    learning_rate_: float
    max_norm_: float
    stage_learning_rate_: float
    stage_norm_: float
    n_components_: int
    pair_: str
    position_weights_: Singles
    own_weight_: float
    _frozen_from: ClassVar[tuple[str, ...]] = (
        "item_ids_",
        "item_factors_",
        "query_ids_",
        "query_factors_",
        "by_features_",
        "window_",
        "base_",
        "n_components_",
        "pair_",
        "position_weights_",
        "own_weight_",
    )

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_components": rules.count(1, rules.MOST_COMPONENTS),
        "stages": rules.count(),
        "k": rules.count(1, rules.MOST_LISTED),
        "loss": rules.one_of("warp", "auc"),
        "alpha": rules.NOT_NEGATIVE,
        "engine": rules.one_of(*ENGINES),
        "negatives": rules.count() | rules.one_of("catalogue"),
        "learning_rate": rules.SINGLE_POSITIVE | rules.one_of("auto"),
        "max_norm": rules.NORM | rules.one_of("auto"),
        "stage_learning_rate": rules.SINGLE_POSITIVE | rules.one_of("auto"),
        "stage_norm": rules.NORM | rules.one_of("auto"),
        "pair": rules.one_of(*PAIR_TERMS),
        "position_weights": rules.one_of("reciprocal") | rules.WEIGHTS,
        "own_weight": rules.WEIGHT,
        "window": rules.count(1, rules.MOST_LISTED) | rules.NONE,
        "base": BASE,
        "dropout": rules.number("a number from 0 to 0.99", 0.0, 0.99) | rules.one_of("auto"),
        "epochs": rules.count(),
        "validation_fraction": rules.SHARE,
        "patience": rules.count(),
        "batch_size": rules.count() | rules.NONE,
        "max_draws": rules.count() | rules.NONE,
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_jobs": rules.JOBS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        n_components: int = 100,
        stages: int = 1,
        k: int = 20,
        loss: Literal["warp", "auc"] = "warp",
        alpha: float = 1.0,
        engine: str = "blocked",
        negatives: Literal["catalogue"] | int = "catalogue",
        learning_rate: Literal["auto"] | float = "auto",
        max_norm: Literal["auto"] | float = "auto",
        stage_learning_rate: Literal["auto"] | float = 0.1,
        stage_norm: Literal["auto"] | float = 1.0,
        pair: Literal["gram", "bilinear", "both"] = "gram",
        position_weights: Literal["reciprocal"] | ArrayLike = "reciprocal",
        own_weight: float = 0.0,
        window: int | None = 20,
        base: Literal["auto"] | SessionModel | None = "auto",
        dropout: Literal["auto"] | float = "auto",
        epochs: int = 12,
        validation_fraction: float = 0.05,
        patience: int = 3,
        batch_size: int | None = None,
        max_draws: int | None = None,
        callbacks: Sequence[Callable[[EpochReport], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.stages = stages
        self.k = k
        self.loss = loss
        self.alpha = alpha
        self.engine = engine
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.max_norm = max_norm
        self.stage_learning_rate = stage_learning_rate
        self.stage_norm = stage_norm
        self.pair = pair
        self.position_weights = position_weights
        self.own_weight = own_weight
        self.window = window
        self.base = base
        self.dropout = dropout
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.batch_size = batch_size
        self.max_draws = max_draws
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        queries: Any,
        items: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        query_features: Any = None,
    ) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries
            Ids, one per pair (whole numbers or strings); or features (rows, d), dense or sparse; or, with ``items``
            None, a matrix of interactions whose entries are weights (then ids are row and column numbers), or sessions:
            :class:`slatewise.data.Sessions`, lists of lists of ids, oldest first, or a data frame with the columns
            "session" and "item" (and "time", which then orders them). A session of one item teaches nothing.
        items
            The item of each pair: ids; with features also a 0/1 matrix (rows, items).
        sample_weight
            One weight >= 0 per pair (with features: per row; with sessions: per session).
        query_features
            Of sessions: features of whoever asks, (sessions, d), dense or sparse, a row per session; a one-hot row is
            an id, as that of a user. Each feature has a row of U, learnt like those of items, which is added to the
            query times the feature's number: numbers should be around 1. Answers want the same columns.
        """
        pairs = self._pairs(queries, items, sample_weight, query_features)
        settings, executor = self._settings(pairs), Executor.of(self.n_jobs)
        card = card_for(pairs.n_queries, *pairs.arrays())
        base = fitted_base(self.base, pairs, self.n_jobs)
        as_used = {"position_weights": settings.position_weights, "base": described(base)}
        checkpoint = Checkpoint.of(self, card.data_sha256, as_used=as_used)
        learned = search_of(settings, pairs, checkpoint, executor, base).fit(settings.steps())
        checkpoint.remove()
        for state in learned.stages:
            zero_untaught(state.queries, pairs)
        self._keep(settings, pairs, learned, card, base)
        tell_of_stages(self.n_stages_, settings.stages)
        return self

    def partial_fit(
        self,
        queries: Any,
        items: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        query_features: Any = None,
    ) -> Self:
        """Go on with one epoch over further pairs; ids not seen before get rows of their own.

        Parameters
        ----------
        queries, items, sample_weight, query_features
            As in :meth:`fit`. On a ranker that is not fitted this is a fit of one epoch, with nothing held out; on one
            that is, parameters count as they are now, and "auto" is what was found, but ``n_components`` and the
            columns of ``query_features`` must stay, and ``pair`` beside later stages, whose S is kept.
        """
        fitted = "item_factors_" in vars(self)
        fresh = self._pairs(queries, items, sample_weight, query_features, further=fitted)
        settings, executor = self._settings(fresh), Executor.of(self.n_jobs)
        if not fitted:
            base = fitted_base(self.base, fresh, self.n_jobs)
            learned = first_epoch(settings, settings.steps(), fresh, base, executor)
            return self._keep(settings, fresh, learned, card_for(fresh.n_queries, *fresh.arrays()), base)
        if self.n_stages_ > 1 and settings.pair != self.pair_:
            raise ValueError(
                f"pair: expected {self.pair_!r}, that of the stages to go on with, found {settings.pair!r}; use fit"
            )
        steps = settings.steps({name: getattr(self, f"{name}_") for name in STARTS})
        epochs, base = tuple(self.n_epochs_), self.base_
        former = Former(self._model(), self.query_steps_, self.item_steps_, epochs, base, self.learned_weight_)
        pairs, learned = one_more_epoch(settings, steps, fresh, former, executor)
        if base is not None and pairs.sessions is not None:
            base = added_to(base, pairs, self.n_jobs)
        # Rows of features are new each time, ids may be old ones.
        before = self.model_card_.n_lists if self.by_features_ else 0
        card = card_for(before + pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        return self._keep(settings, pairs, learned, card, base)

    @property
    def age_weights_(self) -> Singles:
        """w_j of a session's items, the last one's first; none of other queries."""
        return self._weights_by_age()[0]

    @property
    def repeat_weights_(self) -> Singles:
        """r_j, what an item gets that a session has already, by its age."""
        return self._weights_by_age()[1]

    def score(self, queries: Any, y: Any, stage: int | None = None, unknown: Unknown = "error") -> Singles:
        """Return :meth:`scores`, with a warning: from 0.3 on this is one figure, ``R@20`` of pairs.

        Parameters
        ----------
        queries, y, stage, unknown
            As in :meth:`scores`, ``y`` being the items.
        """
        warnings.warn(
            "LatentRanker.score becomes R@20, one figure, in 0.3: use scores(queries, items) for the matrix",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.scores(queries, y, stage, unknown)

    def fold_in(self, items: Any, unknown: Unknown = "error") -> FoldedQueries:
        """Return rows of U, (queries, n_components), for queries that fit never saw; :meth:`rank` takes them.

        They are an array of a type of their own, :class:`slatewise.latent.fold_in.FoldedQueries`, so that numbers which
        are ids never pass for rows.

        The items' factors stay, and each row is the one in the ball of ``max_norm`` under which the items seen are
        most likely (a softmax over the catalogue): the same answer every time.

        Parameters
        ----------
        items
            What each query was seen with: a sequence of ids per query, or a sparse matrix (queries, items) of weights
            in the order of ``item_ids_``. Items that occur twice count twice; of a query without items, rank gives the
            order of the biases.
        unknown
            As in :meth:`rank`; with "ignore" items that fit never saw are left out.
        """
        return folded_in(self._model(), items, unknown, self.max_norm_, Executor.of(self.n_jobs))

    def query_vectors(self, queries: Any, stage: int | None = None, *, query_features: Any = None) -> Singles:
        """Return vectors whose inner products with :meth:`item_vectors` are the scores that :meth:`rank` sorts by.

        Of sessions, without what their own items and the base add to the scores of few items.
        """
        batch = self._batch(queries, "error", query_features)
        last = batch.model.check_stage(stage)
        factors = batch.cascade(last).factors(len(batch), Executor.of(self.n_jobs))
        return against_equally_long(factors.queries.vectors(np.arange(len(batch)))[:, : batch.model.width(last)])

    def item_vectors(self, stage: int | None = None) -> Singles:
        """Return V, b and, at later stages, S, and A of "both", (items, columns), in the order of ``item_ids_``.

        One more column, against which queries have 0, makes all rows equally long: so whoever is nearest by angle
        also scores most, which is what an index of neighbours needs.
        """
        model = self._model()
        last = model.check_stage(stage)
        return equally_long(self.item_factors_[last, :, : model.width(last)])

    def export_index(self, path: str | os.PathLike[str], stage: int | None = None) -> None:
        """Write :meth:`item_vectors` as a usearch index of inner products, for searches that need not be exact.

        Keys are places in ``item_ids_``; search with :meth:`query_vectors`. With ``n_jobs=1`` the file has the same
        bytes every time. Needs ``pip install 'slatewise[ann]'``.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        stage
            As in :meth:`rank`.
        """
        write_index(path, self.item_vectors(stage), Executor.of(self.n_jobs))

    def similar_items(self, ids: ArrayLike, k: int = 10) -> Rankings:
        """Return the k items whose rows of V have the largest cosine with each item's, itself left out."""
        model = self._model()
        return similar_items(model, number_ids("ids", ids, model.item_ids), k, Executor.of(self.n_jobs))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _pairs(
        self, queries: Any, items: Any, weight: ArrayLike | None, query_features: Any, further: bool = False
    ) -> LatentPairs:
        """Check every parameter and the data: the door of all that trains."""
        rules.check(self)
        queries = opened(queries) if items is None else queries
        if isinstance(queries, Sessions) and items is not None:
            raise ValueError("items: expected None, sessions have theirs, found some")
        if items is not None and is_ragged(queries):
            raise ValueError("items: expected None with lists of several lengths, which are sessions, found some")
        if items is None and are_sessions(queries):
            pairs = session_pairs(queries, weight, self.window, further, query_features)
        else:
            refuse_context(query_features)
            pairs = check_pairs(queries, items, weight, partial(check_features, self, reset=not further), further)
        return pairs

    def _settings(self, pairs: LatentPairs) -> LatentSettings:
        """Resolve what such pairs are trained with; the seed last, when nothing is left to refuse."""
        settings = LatentSettings.of(self.get_params(deep=False))
        check_for_kind(settings, pairs)
        if self.dropout == "auto" and pairs.sessions is not None:
            settings = replace(settings, dropout=DROPOUT)
        if pairs.sessions is not None and is_without_base(self.base, pairs.sessions) and are_many(pairs):
            settings = replace(settings, starts=STARTS_OF_SUMS)
        self._settle_seed()
        return replace(settings, seed=self.seed_)

    def _freeze(self) -> LatentModel:
        return LatentModel(
            self.item_ids_,
            tuple(Table.fixed(np.ascontiguousarray(rows)) for rows in self.item_factors_),
            pair_term(self.pair_, self.n_components_, self.n_components_ + 1),
            self.position_weights_,
            self.own_weight_,
            tuple(Table.fixed(np.ascontiguousarray(rows)) for rows in self.query_factors_),
            self.query_ids_,
            self.by_features_,
            self.window_,
            self._n_context(),
            None if self.base_ is None else scorer_of(self.base_),
        )

    def _batch(self, queries: Any, unknown: Unknown, query_features: Any = None) -> QueryBatch:
        model = self._model()
        if model.window != 0:
            return QueryBatch.of_sessions(model, queries, unknown, query_features, Executor.of(self.n_jobs))
        refuse_context(query_features)
        if model.by_features:
            return QueryBatch.of_features(model, check_features(self, queries, reset=False))
        if isinstance(queries, FoldedQueries):
            return QueryBatch.of_rows(model, queries)
        return QueryBatch.of_ids(model, queries, unknown)

    def _continued(self, queries: Any, query_features: Any) -> tuple[Any, Any, Any]:
        if self.window_ == 0:
            return super()._continued(queries, query_features)
        if self.window_ is None:
            raise ValueError("items: expected one item per basket, found None")
        if isinstance(queries, Prefixes):
            return queries, queries.next_items, query_features
        sessions = Sessions.of(queries)
        prefixes = sessions.prefixes()
        if query_features is not None:
            query_features = check_context(query_features, len(sessions))[prefixes.sessions]
        return prefixes, prefixes.next_items, query_features

    def _weights_by_age(self) -> tuple[Singles, Singles]:
        if self._model().window == 0:
            raise AttributeError("age_weights_, repeat_weights_: expected a fit on sessions, found another")
        ages = AgeWeights(self._model().queries[0], self._n_rows(), self._n_knots())
        return ages.of(ages.items), ages.of(ages.repeats)

    def _distinct(self, queries: Any, unknown: Unknown) -> tuple[QueryBatch, Ints]:
        if not self.by_features_ and self.window_ == 0 and not isinstance(queries, FoldedQueries):
            return super()._distinct(queries, unknown)
        return self._one_by_one(queries, unknown)

    def __sklearn_tags__(self) -> Any:
        tags: Any = cast("Any", super()).__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        LatentSettings.of(self.get_params(deep=False))
        if np.asarray(self.position_weights_).dtype != np.float32:
            raise ValueError("position_weights_: expected float32, found others")
        if len(self.n_epochs_) != self.n_stages_:
            raise ValueError(f"n_epochs_: expected {self.n_stages_} numbers, found {len(self.n_epochs_)}")
        by_items = self.window_ != 0
        check_base(self.base_, self.item_ids_, by_items)
        if self.by_features_ and by_items:
            raise ValueError(f"window_: expected 0 for queries given by features, found {self.window_}")
        if not self.by_features_ and not by_items and self.n_features_in_ != 1:
            raise ValueError(f"n_features_in_: expected 1 where a query is one id, found {self.n_features_in_}")
        if (self.by_features_ or by_items) and len(self.query_ids_):
            kind = "sessions" if by_items else "queries given by features"
            raise ValueError(f"query_ids_: expected none for {kind}, found {len(self.query_ids_)}")
        if len(self.item_ids_) < 2:
            raise ValueError(f"item_ids_: expected at least two items, found {len(self.item_ids_)}")
        pair = pair_term(self.pair_, self.n_components_, self.n_components_ + 1)
        width = padded(pair.S.start if self.n_stages_ == 1 else pair.segments[-1].stop)
        rows = self.n_features_in_ if self.by_features_ else len(self.query_ids_)
        if by_items:
            rows = len(self.item_ids_) + self.n_features_in_ - 1 + 2 * (self.window_ or 1) + self._n_knots()
        for name, shape in {
            "query_factors_": (self.n_stages_, rows, width),
            "item_factors_": (self.n_stages_, len(self.item_ids_), width),
            "query_steps_": (rows, 1),
            "item_steps_": (len(self.item_ids_), 2),
        }.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name}: expected shape {shape}, found {getattr(self, name).shape}")
        if by_items:
            weights = self.query_factors_[:, self._n_rows() :][:, : self.window_ or 1, 0]
            if (weights < 0).any() or (weights[:, 0] != 1).any():
                raise ValueError("query_factors_: expected weights by age >= 0 and 1 for the last item, found others")
            if (self.query_factors_[:, rows - self._n_knots() :, 0] < 0).any():
                raise ValueError("query_factors_: expected steps of the base >= 0, found others")

    @classmethod
    def _from_state(cls, state: ModelState, name: str) -> Self:
        """Build the ranker that a model file describes; a base that was given as an object is one again."""
        ranker = super()._from_state(state, name)
        if "base" not in state.params and ranker.base_ is not None:
            ranker.base = fresh(ranker.base_)
        return ranker

    def _n_context(self) -> int:
        return 0 if self.window_ == 0 else self._n_rows() - len(self.item_ids_)

    def _n_rows(self) -> int:
        """How many rows of U sessions have: one per item, and one per feature of whoever asks."""
        return self.query_factors_.shape[1] - 2 * (self.window_ or 1) - self._n_knots()

    def _n_knots(self) -> int:
        return 0 if self.base_ is None else N_KNOTS

    def _keep(
        self,
        settings: LatentSettings,
        pairs: LatentPairs,
        learned: Learned,
        card: ModelCard,
        base: SessionModel | None,
    ) -> Self:
        stages, (query_factors, item_factors) = learned.stages, learned.factors
        query_steps = stages[0].queries.accumulators
        if base is not None and stages[0].weight is None:
            base, query_factors, query_steps = None, query_factors[:, :-N_KNOTS], query_steps[:-N_KNOTS]
        finite = rules.learned_array(3, np.float32)
        if not (finite.allows(query_factors) and finite.allows(item_factors)):
            raise ValueError(
                "learning_rate: expected steps under which factors stay finite, found "
                f"{learned.steps.learning_rate:g}; features that are too large do the same"
            )
        self._frozen = None
        self.query_factors_, self.item_factors_, self.model_card_ = query_factors, item_factors, card
        self.by_features_ = pairs.features is not None
        self.window_ = 0 if pairs.sessions is None else pairs.sessions.window
        if pairs.features is None:  # a query is one id, or one session and what is known of whoever asks
            self.n_features_in_ = 1 if pairs.sessions is None else 1 + pairs.sessions.n_context
        self.base_, self.learned_weight_ = base, stages[0].weight
        self.query_ids_ = np.empty(0, dtype=np.int64) if pairs.query_ids is None else pairs.query_ids
        self.item_ids_ = pairs.item_ids
        self.n_stages_, self.n_epochs_ = len(stages), [state.best_epoch for state in stages]
        self.query_steps_, self.item_steps_ = query_steps, stages[0].items.accumulators
        self.learning_rate_, self.max_norm_, self.stage_learning_rate_, self.stage_norm_ = astuple(learned.steps)
        self.n_components_, self.pair_ = int(settings.n_components), settings.pair
        self.position_weights_, self.own_weight_ = settings.position_weights, float(settings.own_weight)
        return self
