"""Rank next items of sessions by latent factors beside a base of neighbors and counts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Singles
from slatewise.core.declarations import JOBS_TEXT, Settings, expanded, learned, param, resolved, seed_text, settings
from slatewise.core.rankings import Rankings
from slatewise.core.rules import CALLBACKS, Rule
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.data.records import Prefixes, Sessions
from slatewise.estimators.sklearn import available_if
from slatewise.factors.bags import AGE_WEIGHTS, REPEAT_WEIGHTS, SPLINE_STEPS, BagParts, bag_queries, query_bags
from slatewise.factors.engines.gpu import check_device
from slatewise.factors.growth import Former, Places, check_components, first_epoch, grown, one_more_epoch
from slatewise.factors.learner import Learned, check_engine, check_finite, learn, steps_of
from slatewise.factors.offsets import N_KNOTS
from slatewise.factors.ranking import (
    LatentModel,
    QueryBatch,
    SlateExplanation,
    marked,
    pair_term,
    similar_items,
)
from slatewise.factors.settings import (
    AUC,
    ENGINES,
    LOSSES,
    STARTS,
    STARTS_OF_SUMS,
    Blocked,
    Factors,
    Gpu,
    TrainingSettings,
    Warp,
)
from slatewise.factors.tables import Table, Weights, padded
from slatewise.persistence.checkpoint import Callbacks, Checkpoint, Path
from slatewise.persistence.file import ModelCard, ModelState
from slatewise.persistence.saving import card_for
from slatewise.recommend.export import against_equally_long, equally_long, write_index
from slatewise.recommend.filters import DEFAULT_K, RankOptions
from slatewise.recommend.histories import NumberedSessions, SessionQueries, number_sessions
from slatewise.recommend.ids import Unknown, number_ids
from slatewise.recommend.recommender import Batch, Recommender
from slatewise.sessions.blend import MOST_AGES, SessionBlend
from slatewise.sessions.estimator import SessionBatch, SessionModel, fit_numbered, scorer_of, with_further
from slatewise.sessions.problem import (
    SessionPairs,
    check_query_features,
    further_scores,
    session_pairs,
    session_problem,
    whole_problem,
)
from slatewise.sessions.sparse_scores import SparseScorer, normalized_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.recommend.filters import Seen

BASE, FACTORS = "base", "factors"


def _has_factors(ranker: Any) -> bool:
    """Raise AttributeError unless a ranker has factors, or, before fit, will have some."""
    has = hasattr(ranker, "item_factors_") if hasattr(ranker, "item_ids_") else ranker.factors is not None
    if not has:
        raise AttributeError("factors: expected a ranker that was fitted with factors, found one of a base alone")
    return True


class Blend(Settings, shorthand="blend"):
    """Similar sessions and counts at once: the probability that an item comes next, given the scores of both.

    ``score(q, d) = exp h / (sum over candidates of exp h + number of other items)`` with h the sum of a monotone line
    through nine knots of each score, and, of items that the session has, a number for each age.
    """

    k: int = param(rules.count(1, rules.MOST_LISTED), "The number of similar sessions.", default=100)
    window: int | None = param(
        rules.count(1, MOST_AGES) | rules.NONE,
        "The number of items of the query that count, the last ones. None: as ``window`` of the ranker; of baskets 20.",
        default=None,
    )


BASES = settings(Blend) | rules.NONE
BASES |= Rule("SessionNeighbors or SessionCooccurrence", lambda value: isinstance(value, SessionModel))


@dataclass(frozen=True, eq=False)
class SessionPredictor:
    """What predictions are made with."""

    base: SparseScorer | None
    factors: LatentModel | None


class SessionRanker(Recommender[SessionPredictor]):
    """Rank all items for a session by latent factors beside a base of similar sessions and counts.

    ``f(q, d) = a g(base(q, d)) / m + sum_j w_j (U x_{t-j}).(V d) + b_d + sum_j r_j [x_{t-j} = d]``

    for the items x_t, x_{t-1}, ... of a session, j = 0 to ``window - 1``, trained on violators (WARP). Sessions that
    fit never saw are ranked at the same price.

    Notes
    -----
    Every item but the first of a session is a target. ``w_j >= 0`` (:attr:`age_weights_`, the first is 1) and ``r_j``
    (:attr:`repeat_weights_`), for items that come again, are learned. Of a basket each item is a target given the
    others, and the sum is divided by the root of their number. Held out are the last sessions, whole.

    In training a query is scored by a base that has not seen its session. The weight of the factors beside the base is
    chosen on the held-out sessions; without them both are added as they were learned together.

    With ``query_features`` F, a row per session, ``sum_f F_sf (U f).(V d)`` is added: an id of a user as a one-hot row,
    or anything that is known of the session.

    Examples
    --------
    Sessions, oldest item first:

    >>> from slatewise import SessionRanker
    >>> from slatewise.factors import Factors
    >>> visits = [["tea", "milk", "sugar"], ["bread", "butter", "jam"], ["tea", "milk", "sugar"], ["bread", "jam"]]
    >>> ranker = SessionRanker(Factors(n_components=4, epochs=9), validation_fraction=0).fit(visits)
    >>> ranker.rank([["tea", "milk"], ["bread"]], k=1, exclude_seen=True).ids.tolist()
    [['sugar'], ['jam']]

    Without training, by similar sessions and counts alone:

    >>> SessionRanker(None).fit(visits).rank([["tea"]], k=1, exclude_seen=True).ids.tolist()
    [['milk']]

    Users who take milk or lemon after tea:

    >>> visits, users = [["tea", "milk"], ["tea", "lemon"]] * 9, [[1, 0], [0, 1]] * 9
    >>> ranker = SessionRanker(Factors(n_components=4, epochs=9), base=None, validation_fraction=0)
    >>> ranker = ranker.fit(visits, query_features=users)
    >>> ranker.rank([["tea"], ["tea"]], k=1, query_features=[[1, 0], [0, 1]]).ids.tolist()
    [['milk'], ['lemon']]
    """

    _parts: ClassVar[tuple[str, ...]] = ("base_",)

    factors: str | Factors | None = param(
        settings(Factors) | rules.NONE,
        "The latent factors. None: the base alone, without training.",
        default="default",
        kw_only=False,
    )
    base: str | Blend | SessionModel | None = param(
        BASES,
        """Whose scores are added: a blend of similar sessions and counts, or a copy of the estimator, fitted on the
        same sessions. None: the factors alone.""",
        default="blend",
    )
    window: int | None = param(
        rules.count(1, rules.MOST_LISTED) | rules.NONE,
        """The number of last items that make a query, each with a weight by age. None: sessions are baskets, whose
        items are in no order and count alike.""",
        default=20,
    )
    validation_fraction: float = param(
        rules.SHARE,
        """Share of the pairs, at most 20,000, whose sessions are held out to decide when the factors are trained and
        what they weigh; without factors none are.""",
        default=0.05,
    )
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(
        rules.SEED,
        seed_text("Of the start of the factors, the order of the pairs and the folds of the base."),
        default=None,
    )

    parts_: list[str] = learned(rules.LISTED_NAMES, """The parts of the score: "base", "factors", or both.""")
    weights_: list[float] = learned(
        rules.vector("numbers >= 0", 0.0, rules.MOST_WEIGHT), "The weight of each part, relative to the first."
    )
    base_: SessionModel = learned(rules.ANY, "The fitted base; absent without one.", saved=False)
    query_factors_: Singles = learned(
        rules.learned_array(2, np.float32),
        """U, a row per item and then one per query feature; absent without factors. Columns of zeros fill up to cache
        lines.""",
        shape=("rows", "columns"),
        optional=True,
    )
    item_factors_: Singles = learned(
        rules.learned_array(2, np.float32),
        "V and b, a row per item; absent without factors.",
        shape=("item_ids_", "columns"),
        optional=True,
    )
    age_weights_: Singles = learned(
        rules.learned_array(1, np.float32), "w_j of a session's items, the last one's first.", optional=True
    )
    repeat_weights_: Singles = learned(
        rules.learned_array(1, np.float32),
        "r_j, what an item gets that a session has already, by its age.",
        shape=("age_weights_",),
        optional=True,
    )
    spline_steps_: Singles = learned(
        rules.learned_array(1, np.float32),
        "The steps of the piecewise linear a g of the base's scores; absent without a base or without factors.",
        shape=(N_KNOTS,),
        optional=True,
    )
    query_steps_: Singles = learned(
        rules.STEPS, "AdaGrad's sums of squares, for ``partial_fit``.", shape=("rows", 1), optional=True
    )
    item_steps_: Singles = learned(rules.STEPS, "The same of V and b.", shape=("item_ids_", 2), optional=True)
    weight_steps_: Singles = learned(
        rules.STEPS,
        "The same of ``age_weights_`` and of ``repeat_weights_``.",
        shape=(2, "age_weights_"),
        optional=True,
    )
    n_query_features_: int = learned(rules.count(0), "The number of query features.")
    n_components_: int = learned(rules.count(1, rules.MOST_COMPONENTS), "Width of U and V.", optional=True)
    window_: int = learned(rules.count(1, rules.MOST_LISTED), "``window`` of fit; absent for baskets.", optional=True)
    n_epochs_: int = learned(rules.count(0), "The number of epochs until the best one.", optional=True)
    learning_rate_: float = learned(rules.SINGLE_POSITIVE, "What was trained with.", optional=True)
    max_norm_: float = learned(rules.NORM, "What was trained with.", optional=True)

    def fit(
        self,
        sessions: Any,
        sample_weight: ArrayLike | None = None,
        *,
        query_features: Any = None,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from sessions.

        Parameters
        ----------
        sessions
            :class:`slatewise.data.Sessions`, a list of lists of ids (oldest first, all whole numbers or all strings),
            or a data frame with the columns session and item, and time where there is one. A session of one item
            teaches nothing.
        sample_weight
            One weight >= 0 per session, for the factors.
        query_features
            Features of the sessions, (sessions, d), dense or sparse. Each feature has a row of U, learned like those of
            items, which is added to the query times the feature's number: numbers should be around 1. ``rank`` takes
            the same columns.
        callbacks
            Functions to call with a :class:`slatewise.factors.settings.EpochReport` after every epoch, those of the
            search included.
        checkpoint
            A file that keeps the state after every epoch. If it is there, and of the same data and settings, fit goes
            on from it; it is removed at the end. The bits are those of a fit that never stopped.
        """
        rules.check(self)
        CALLBACKS.check("callbacks", callbacks)
        factors = resolved(self, "factors")
        if factors is None:
            with self._watched(callbacks):
                return self._fit_base(sessions, sample_weight, query_features)
        pairs = session_pairs(sessions, sample_weight, self.window, query_features=query_features)
        settings, executor = self._training_settings(factors, pairs), Executor.of(self.n_jobs)
        with self._watched(callbacks) as tell:
            base = None if self.base is None else self._fitted_base(pairs.sessions)
            self._settle_seed()
            settings = replace(settings, seed=self.seed_, callbacks=(tell,))
            problem = session_problem(settings, pairs, base, executor)
            card = card_for(pairs.n_queries, *pairs.arrays())
            state = Checkpoint.of(self, card.data_sha256, checkpoint, {"factors": factors, "base": described(base)})
            found = learn(settings, problem, state, executor, searched=not pairs.are_many)
        return self._keep(found, pairs, card, base)

    def partial_fit(self, sessions: Any, sample_weight: ArrayLike | None = None, *, query_features: Any = None) -> Self:
        """Go on with one epoch over further sessions; items not seen before get rows of their own.

        Parameters
        ----------
        sessions, sample_weight, query_features
            As in :meth:`fit`. On a ranker that is not fitted this is a fit of one epoch, with nothing held out; on one
            that is, parameters count as they are now, and "auto" is what was found, but ``n_components``, ``window``
            and the columns of ``query_features`` must stay.
        """
        rules.check(self)
        factors = resolved(self, "factors")
        is_fitted = "item_ids_" in vars(self)
        if is_fitted and (factors is None) != ("item_factors_" not in vars(self)):
            raise ValueError(f"factors: expected those of fit, found {self.factors!r}; use fit")
        with self._watched(None):
            if factors is None:
                if not is_fitted:
                    return self._fit_base(sessions, sample_weight, query_features)
                _refuse(sample_weight, query_features)
                return self._keep_base(with_further(self.base_, sessions, self.n_jobs))
            pairs = session_pairs(sessions, sample_weight, self.window, is_fitted, query_features)
            settings, executor = self._training_settings(factors, pairs), Executor.of(self.n_jobs)
            if is_fitted:
                self._settle_seed()
                return self._go_on(replace(settings, seed=self.seed_), pairs, executor)
            base = None if self.base is None else self._fitted_base(pairs.sessions)
            self._settle_seed()
            settings = replace(settings, seed=self.seed_, validation_fraction=0.0)
            found = first_epoch(settings, session_problem(settings, pairs, base, executor), executor)
            return self._keep(found, pairs, card_for(pairs.n_queries, *pairs.arrays()), base)

    def rank(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        query_features: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
    ) -> Rankings:
        """Return the k best next items of each session, best first; equal scores in the order of ids.

        A session for which fewer than k items are left has a shorter list.

        Parameters
        ----------
        queries
            Sessions in any form that :meth:`fit` takes, or :class:`slatewise.data.Prefixes`; also a list of ids, or one
            id: each is then a session of that item alone.
        k
            The number of items, at most as many as there are. The default is capped by the size of the catalog.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        exclude_seen
            True: do not show the items of the session; "last": not its last item.
        candidates
            The only items to show: ids for all queries, or a sequence of ids for each, or a sparse matrix (queries,
            items).
        unknown
            Ids that fit never saw: "error", or "ignore" with a warning that counts them; they are then left out. A
            session of which nothing is left is ranked by the biases, and marked in ``nothing_known``.
        query_features
            Features of the sessions, where fit had some, with the same columns. None there: zeros, with a warning. A
            session without items that has features is ranked by them.
        device
            "cuda", or "cuda:1" and so on: rank with the factors on a GPU, which pays for many queries. The same lists
            as on the CPU, except for scores that differ in their last digits. Needs ``pip install 'slatewise[gpu]'``;
            not with candidates. None or "cpu": the CPU, whatever the engine of fit was.
        n_jobs
            Threads; None: as the parameter of the estimator says.
        """
        options = RankOptions(exclude, exclude_seen, candidates, unknown, query_features, None, device, n_jobs)
        return self._ranked(queries, k, options)

    def scores(
        self,
        queries: Any,
        items: Any,
        *,
        unknown: Unknown = "error",
        query_features: Any = None,
        n_jobs: int | None = None,
    ) -> Any:
        """Return the scores that :meth:`rank` sorts by, of every session with every item given, (queries, items).

        Parameters
        ----------
        queries, query_features, n_jobs
            As in :meth:`rank`.
        items
            Ids of the items, one per column.
        unknown
            As in :meth:`rank`; an item that fit never saw has the score -inf.
        """
        return self._scored(queries, items, RankOptions(unknown=unknown, query_features=query_features, n_jobs=n_jobs))

    def recall(
        self,
        queries: Any,
        items: Any = None,
        ks: Sequence[int] = (5, 10, 20),
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        query_features: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
    ) -> dict[int, float]:
        """Return, for each k, the share of sessions whose next item is among the k best.

        Parameters
        ----------
        queries
            As in :meth:`rank`.
        items
            The next item of each session. None: of :class:`slatewise.data.Prefixes` the next item of each, and of
            sessions every item but the first, each after those before it.
        ks
            Depths of the recall.
        query_features
            A row for each query that is given: a session, or a prefix.
        exclude, exclude_seen, candidates, unknown, device, n_jobs
            As in :meth:`rank`; next items that fit never saw count as not found.
        """
        self._model()
        if items is None:
            queries, items, query_features = self._continued_with(queries, query_features)
        options = RankOptions(exclude, exclude_seen, candidates, unknown, query_features, None, device, n_jobs)
        return self._recalled(queries, items, ks, options)

    @available_if(_has_factors)
    def explain(
        self,
        queries: Any,
        k: int = DEFAULT_K,
        *,
        exclude: Any = None,
        exclude_seen: Seen = False,
        candidates: Any = None,
        unknown: Unknown = "error",
        query_features: Any = None,
        n_jobs: int | None = None,
    ) -> SlateExplanation:
        """Return the lists of :meth:`rank` with the parts of each score of the factors.

        Parameters
        ----------
        queries, k, exclude, exclude_seen, candidates, unknown, query_features, n_jobs
            As in :meth:`rank`.
        """
        options = RankOptions(exclude, exclude_seen, candidates, unknown, query_features, n_jobs=n_jobs)
        batch, executor = self._read(queries, options)
        return cast("QueryBatch", batch).explain(k, options, executor)

    @available_if(_has_factors)
    def query_vectors(self, queries: Any, *, query_features: Any = None) -> Singles:
        """Return vectors whose inner products with :meth:`item_vectors` are the scores of the factors.

        Without the amounts that the base and the session's own items add to the scores of few items.
        """
        batch, executor = self._read(queries, RankOptions(query_features=query_features))
        return against_equally_long(cast("QueryBatch", batch).vectors(executor))

    @available_if(_has_factors)
    def item_vectors(self) -> Singles:
        """Return V and b, (items, columns), in the order of ``item_ids_``.

        One more column, against which queries have 0, makes all rows equally long: so the nearest by angle also scores
        most, which is what an index of neighbors needs.
        """
        model = self._factors()
        return equally_long(self.item_factors_[:, : model.width(0)])

    @available_if(_has_factors)
    def export_index(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`item_vectors` as a usearch index of inner products, for searches that need not be exact.

        Keys are positions in ``item_ids_``; search with :meth:`query_vectors`. With ``n_jobs=1`` the file has the same
        bytes every time. Needs ``pip install 'slatewise[ann]'``.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        write_index(path, self.item_vectors(), Executor.of(self.n_jobs))

    @available_if(_has_factors)
    def similar_items(self, ids: ArrayLike, k: int = 10) -> Rankings:
        """Return the k items whose rows of V have the largest cosine with each item's, itself left out."""
        model = self._factors()
        return similar_items(model, number_ids("ids", ids, model.item_ids), k, Executor.of(self.n_jobs))

    # --- training ----------------------------------------------------------------------------------------------------

    def _training_settings(self, factors: Factors, pairs: SessionPairs) -> TrainingSettings:
        engine = cast("Blocked | Gpu", expanded(ENGINES.kinds, factors.engine))
        if isinstance(engine, Blocked) and engine.negatives != "all":
            raise ValueError(f"factors: expected negatives='all' for sessions, found {factors!r}")
        settings = TrainingSettings(
            n_components=int(factors.n_components),
            epochs=factors.epochs,
            validation_fraction=self.validation_fraction,
            patience=factors.patience,
            loss=cast("Warp | AUC", expanded(LOSSES.kinds, factors.loss)),
            engine=engine,
            learning_rate=factors.learning_rate,
            max_norm=factors.max_norm,
            dropout=factors.dropout,
            starts=STARTS_OF_SUMS if self.base is None and pairs.are_many else STARTS,
        )
        check_engine(settings)
        return settings

    def _fitted_base(self, sessions: NumberedSessions) -> SessionModel:
        base = resolved(self, "base")
        if base is None:
            raise ValueError("base: expected one without factors, found None")
        if isinstance(base, SessionModel):
            base = unfitted(base)
        else:
            base = SessionBlend(base.k, window=base.window or min(self.window or 20, MOST_AGES), n_jobs=self.n_jobs)
        rules.check(base)
        fit_numbered(base, sessions)
        return base

    def _fit_base(self, sessions: Any, sample_weight: Any, query_features: Any) -> Self:
        """Fit the base alone."""
        _refuse(sample_weight, query_features)
        numbered = number_sessions(sessions, in_order=self.window is not None)
        base = self._fitted_base(numbered)
        self._settle_seed()
        self._forget()
        return self._keep_base(base)

    def _keep_base(self, base: SessionModel) -> Self:
        self.base_, self.item_ids_, self.model_card_ = base, base.item_ids_, base.model_card_
        self.parts_, self.weights_, self.n_query_features_, self.n_features_in_ = [BASE], [1.0], 0, 1
        if self.window is not None:
            self.window_ = int(self.window)
        return self

    def _go_on(self, settings: TrainingSettings, fresh: SessionPairs, executor: Executor) -> Self:
        """Train one epoch on further sessions."""
        check_components(settings, self.n_components_)
        window = getattr(self, "window_", None)
        if window != fresh.window:
            raise ValueError(
                f"window: expected {window}, that of the tables to go on with, found {fresh.window}; use fit"
            )
        if self.n_query_features_ != fresh.n_features:
            n = self.n_query_features_
            expected = f"{n} columns, as in fit" if n else "None, as in fit"
            raise ValueError(f"query_features: expected {expected}, found {fresh.n_features or None}")
        item_ids, old_items, pairs = fresh.among(self.item_ids_)
        base: SessionModel | None = getattr(self, "base_", None)
        levels = None if base is None else further_scores(base, pairs, old_items, executor)
        problem = whole_problem(settings, pairs, levels)
        features = len(item_ids) + np.arange(self.n_query_features_)
        places = Places(np.append(old_items, features), old_items, new_are_random=False)
        former = Former(
            (self.query_factors_,),
            (self.item_factors_,),
            pair_term("semidefinite", self.n_components_, self.n_components_ + 1),
            self.query_steps_,
            self.item_steps_,
            (self.n_epochs_,),
            self._weights(),
        )
        steps = steps_of(settings, {**STARTS, "learning_rate": self.learning_rate_, "max_norm": self.max_norm_})
        if FACTORS in self.parts_:
            found, weight = one_more_epoch(settings, steps, problem, former, places, executor), self.weights_[-1]
        else:  # the base ranks alone: nothing is trained
            state, epoch = grown(settings, steps, problem, former, places), self.n_epochs_ + 1
            found, weight = Learned((replace(state, epoch=epoch, best_epoch=epoch),), steps), 0.0
        found = replace(found, stages=(replace(found.stages[0], weight=weight),))
        if base is not None:
            base = with_further(base, Sessions(item_ids[pairs.sessions.items], pairs.sessions.offsets), self.n_jobs)
        card = card_for(pairs.n_queries, *pairs.arrays()).after(self.model_card_)
        return self._keep(found, pairs, card, base)

    def _keep(self, found: Learned, pairs: SessionPairs, card: ModelCard, base: SessionModel | None) -> Self:
        state = found.stages[0]
        if state.weight is None:
            base = None
        check_finite(state.queries.values, state.items.values, found.steps)
        self._forget()
        if base is None:
            self.parts_, self.weights_ = [FACTORS], [1.0]
        else:
            self.base_, self.spline_steps_ = base, state.queries.weights[SPLINE_STEPS].values
            weight = 1.0 if state.weight is None else float(state.weight)
            self.parts_, self.weights_ = ([BASE, FACTORS], [1.0, weight]) if weight else ([BASE], [1.0])
        self.item_ids_, self.model_card_, self.n_features_in_ = pairs.item_ids, card, 1  # a query is one session
        self.query_factors_, self.item_factors_ = state.queries.values, state.items.values
        self.query_steps_, self.item_steps_ = state.queries.accumulators, state.items.accumulators
        ages, repeats = (state.queries.weights[name] for name in (AGE_WEIGHTS, REPEAT_WEIGHTS))
        self.age_weights_, self.repeat_weights_ = ages.values, repeats.values
        self.weight_steps_ = np.stack([ages.accumulators, repeats.accumulators])
        self.n_query_features_, self.n_components_ = pairs.n_features, state.items.segments[0].stop
        if pairs.window is not None:
            self.window_ = int(pairs.window)
        self.n_epochs_ = state.best_epoch
        self.learning_rate_, self.max_norm_ = found.steps.learning_rate, found.steps.max_norm
        return self

    def _forget(self) -> None:
        """Take away what a fit before has learned, of which this one may have less."""
        for name in (*self._optional, "base_", "_predictor"):
            vars(self).pop(name, None)

    # --- predictions -------------------------------------------------------------------------------------------------

    def _freeze(self) -> SessionPredictor:
        base: SessionModel | None = getattr(self, "base_", None)
        scorer = None if base is None else scorer_of(base)
        if "item_factors_" not in vars(self):
            return SessionPredictor(scorer, None)
        model = LatentModel(
            self.item_ids_,
            (Table.fixed(np.ascontiguousarray(self.item_factors_)),),
            pair_term("semidefinite", self.n_components_, self.n_components_ + 1),
            np.empty(0, dtype=np.float32),
            queries=(Table.fixed(np.ascontiguousarray(self.query_factors_), self._weights()),),
        )
        return SessionPredictor(scorer, model)

    def _batch(self, model: SessionPredictor, queries: Any, options: RankOptions, executor: Executor) -> Batch:
        factors, base = model.factors, model.base
        if factors is None:
            if options.query_features is not None:
                raise ValueError("query_features: expected None without factors, found some")
            check_device(options.device)
            return SessionBatch.of(queries, self.item_ids_, cast("SparseScorer", base), options.unknown)
        seen = SessionQueries.of(queries, self.item_ids_, options.unknown)
        features, nothing = self._query_features(options.query_features, len(seen)), seen.nothing_known
        if features is not None:
            nothing &= np.diff(features.indptr) == 0
        seen.warn_of_nothing_known("get the order of the biases", nothing)
        bags = query_bags(seen.items, seen.starts, seen.ends, getattr(self, "window_", None))
        levels = None if base is None else normalized_scores(base, seen, executor)
        make = bag_queries(
            BagParts(bags, np.arange(len(seen)), levels, features), len(self.item_ids_), self.n_components_
        )
        made = tuple(make(table) for table in factors.queries)
        return QueryBatch(factors, seen.ids, made, histories=seen, nothing_known=marked(nothing))

    def _query_features(self, features: Any, n_queries: int) -> csr_array | None:
        """Return checked features; zeros, with a warning, where fit had some and the queries have not."""
        n = self.n_query_features_
        if features is not None:
            if not n:
                raise ValueError("query_features: expected None where fit had none, found some")
            return check_query_features(features, n_queries, n)
        if not n:
            return None
        from scipy.sparse import csr_array

        warnings.warn(
            f"query_features: fit had {n} of them and these {n_queries} queries come without: "
            "they are answered as with zeros",
            stacklevel=4,
        )
        return cast("csr_array", csr_array((n_queries, n), dtype=np.float32))

    def _continued_with(self, queries: Any, query_features: Any) -> tuple[Any, Any, Any]:
        if self.window is None and "window_" not in vars(self):
            raise ValueError("items: expected one item per basket, found None")
        if isinstance(queries, Prefixes):
            return queries, queries.next_items, query_features
        sessions = Sessions.of(queries)
        prefixes = sessions.prefixes()
        if query_features is not None:
            query_features = check_query_features(query_features, len(sessions))[prefixes.sessions]
        return prefixes, prefixes.next_items, query_features

    def _factors(self) -> LatentModel:
        return cast("LatentModel", self._model().factors)

    def _weights(self) -> dict[str, Weights]:
        """Return copies of the weights beside U."""
        of_ages, of_repeats = self.weight_steps_.copy()
        weights = {
            AGE_WEIGHTS: Weights(self.age_weights_.copy(), of_ages),
            REPEAT_WEIGHTS: Weights(self.repeat_weights_.copy(), of_repeats),
        }
        if "base_" in vars(self):
            weights[SPLINE_STEPS] = Weights(self.spline_steps_.copy(), np.zeros(N_KNOTS, dtype=np.float32))
        return weights

    # --- files -------------------------------------------------------------------------------------------------------

    def _check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super()._check_learned()
        base: Any = getattr(self, "base_", None)
        if base is not None and not isinstance(base, SessionModel):
            raise ValueError(f"base_: expected a ranker of sessions, found {type(base).__name__}")
        if base is not None and not np.array_equal(base.item_ids_, self.item_ids_):
            raise ValueError(f"base_: expected the {len(self.item_ids_)} items of the ranker, found others")
        has_factors = "item_factors_" in vars(self)
        known = [[BASE], [BASE, FACTORS], [FACTORS]]
        if list(self.parts_) not in known or (base is None) != (self.parts_[0] == FACTORS):
            raise ValueError(f"parts_: expected one of {known}, with a base where it says so, found {self.parts_}")
        if len(self.weights_) != len(self.parts_) or self.weights_[0] != 1:
            raise ValueError(f"weights_: expected 1 and a number for each other part, found {self.weights_}")
        if FACTORS in self.parts_ and not has_factors:
            raise ValueError("item_factors_: expected factors where parts_ says so, found none")
        if self.n_features_in_ != 1:
            raise ValueError(f"n_features_in_: expected 1 where a query is one session, found {self.n_features_in_}")
        if has_factors:
            self._check_factors()

    def _check_factors(self) -> None:
        on_base = "base_" in vars(self)
        missing = sorted(self._optional - {"window_", "spline_steps_"} - vars(self).keys())
        if missing:
            raise ValueError(f"{missing[0]}: expected with item_factors_, found none")
        if ("spline_steps_" in vars(self)) != on_base:
            raise ValueError("spline_steps_: expected with factors on a base, and only there")
        if len(self.item_ids_) < 2:
            raise ValueError(f"item_ids_: expected at least two items, found {len(self.item_ids_)}")
        shape = len(self.item_ids_) + self.n_query_features_, padded(self.n_components_ + 1)
        if self.query_factors_.shape != shape:
            raise ValueError(f"query_factors_: expected shape {shape}, found {self.query_factors_.shape}")
        if len(self.age_weights_) != getattr(self, "window_", 1):
            raise ValueError(f"age_weights_: expected a weight per age, found {len(self.age_weights_)}")
        if (self.age_weights_ < 0).any() or self.age_weights_[0] != 1:
            raise ValueError("age_weights_: expected numbers >= 0 and 1 for the last item, found others")
        if on_base and (self.spline_steps_ < 0).any():
            raise ValueError("spline_steps_: expected numbers >= 0, found others")

    @classmethod
    def _from_state(cls, state: ModelState, name: str) -> Self:
        """Build the ranker that a model file describes; a base that was given as an object is one again."""
        given = "base" in state.params
        ranker = super()._from_state(state, name)
        if not given and "base_" in vars(ranker):
            ranker.base = unfitted(ranker.base_)
        return ranker


def unfitted(base: SessionModel) -> SessionModel:
    """Return a base with the same parameters that has learned nothing."""
    return type(base)(**base.get_params(deep=False))


def described(base: SessionModel | None) -> Any:
    """Return a base in a form that can be hashed: its name and parameters."""
    if base is None:
        return None
    params = sorted((name, value) for name, value in base.get_params(deep=False).items() if name != "n_jobs")
    return [type(base).__name__, *(part for pair in params for part in pair)]


def _refuse(sample_weight: Any, query_features: Any) -> None:
    for name, value in (("sample_weight", sample_weight), ("query_features", query_features)):
        if value is not None:
            raise ValueError(f"{name}: expected None without factors, found a value")
