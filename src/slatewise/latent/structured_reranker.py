"""Learn which items belong together, on top of any scorer (the outlook of Weston and Blitzer 2012)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.rules import Rule, is_whole
from slatewise.core.seeds import RandomState
from slatewise.latent.base_scorer import Scaled, rows_of
from slatewise.latent.blocked import step_size
from slatewise.latent.engine import Factors
from slatewise.latent.explanation import SlateExplanation, moved_by_list, shown_ids
from slatewise.latent.fitting import training_pairs
from slatewise.latent.input import Ids, Unknown, check_ids, number_ids
from slatewise.latent.lists import check_depths, check_exclude, check_k
from slatewise.latent.on_base import BaseScores, StagesOnBase, base_alone, base_scores, next_factors, top_on_base
from slatewise.latent.pair_terms import PairTerm
from slatewise.latent.reranker_settings import pairs_for
from slatewise.latent.settings import PAIR_TERMS
from slatewise.latent.tables import Segment, Singles, Table, padded
from slatewise.latent.top_k import TopItems
from slatewise.latent.training import EpochReport, Schedule
from slatewise.latent.validation import hold_out
from slatewise.model.saving import SavedEstimator, card_for
from slatewise.model.sklearn import check_is_fitted


class StructuredReranker(SavedEstimator):
    """Rerank all items of any scorer by ``f(q, d) = b(q, d) + sum_j w_j (S d).(S dbar_j)``.

    b is the base's score, dbar its k best items for the query and w_j = 1/j; S is learnt from observed pairs (WARP), or
    S and T with ``(S d).(T dbar_j)``. Further stages take the lists of the one before. A stage is kept only if recall
    on held-out pairs rose.

    Parameters
    ----------
    base : matrix, sparse matrix, pair of matrices or object
        Scores (queries, items), of which a sparse matrix need not store the zeros; or vectors, (queries, n) and
        (items, n), whose inner products are the scores. Row and column numbers are then the ids. Or an object whose
        ``score(queries, items)`` returns a matrix for given ids, such as a :class:`slatewise.LatentRanker`. A base that
        knows the pairs of fit by heart shows lists there that are better than any it will show later: fit it on other
        pairs.
    n_components : int
        Width of S, and of T.
    stages : int
        How many stages to train at most on top of the base, which is stage 0.
    pair : {"gram", "bilinear"}
        S'S, which can only say that items belong together, or S'T, which can also say that they do not.
    k : int
        Items of a list, and the depth of the recall that is watched, though never more than a quarter of the catalogue.
    base_scale : float
        How many margins lie between the best and the k-th item of the base's lists on average: the base's own unit
        means nothing here. Larger: S can move less.
    learning_rate, max_norm : float
        AdaGrad's step, and the largest norm of a row, of S and T.
    epochs : int
        Most passes over the pairs, a stage.
    validation_fraction : float
        Share of the pairs (at most 20,000), all those of some queries, held out to decide when a stage ends. 0, or
        queries too few to spare any: all epochs are run.
    patience : int
        Epochs without a better recall after which a stage ends.
    batch_size : int, optional
        Pairs of a step; default: a hundredth of them, between 64 and 2,048.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.latent.training.EpochReport` after every epoch.
    n_threads : int, optional
        Threads over blocks of pairs or queries; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Start of S and order of the pairs. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    item_ids_
        Ids in ascending order: all columns of a matrix, or the items seen in fit.
    pair_factors_
        (stages, items, columns): S, and T after it, of every stage kept. Columns of zeros fill up to cache lines.
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
    >>> reranker.rank([25, 3], k=4)[0].shape
    (2, 4)
    """

    learned: ClassVar[Mapping[str, Rule]] = {
        "item_ids_": rules.IDS,
        "pair_factors_": rules.learned_array(3, np.float32),
        "base_unit_": rules.UNIT,
        "n_components_": rules.count(1, rules.MOST_COMPONENTS),
        "pair_": rules.one_of(*PAIR_TERMS),
        "k_": rules.count(1, rules.MOST_LISTED),
        "n_stages_": rules.count(0),
        "n_epochs_": rules.vector("whole numbers", 0, rules.MOST, whole=True, empty=True),
    }
    not_saved: ClassVar[tuple[str, ...]] = (*SavedEstimator.not_saved, "base")
    item_ids_: Ids
    pair_factors_: Singles
    base_unit_: float
    n_components_: int
    pair_: str
    k_: int
    n_stages_: int
    n_epochs_: list[int]

    rules: ClassVar[Mapping[str, Rule]] = {
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
        "n_threads": rules.THREADS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        base: Any = None,
        n_components: int = 50,
        stages: int = 1,
        pair: Literal["gram", "bilinear"] = "gram",
        k: int = 20,
        base_scale: float = 4.0,
        learning_rate: float = 0.1,
        max_norm: float = 1.0,
        epochs: int = 12,
        validation_fraction: float = 0.05,
        patience: int = 3,
        batch_size: int | None = None,
        callbacks: Sequence[Callable[[EpochReport], None]] | None = None,
        n_threads: int | None = None,
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
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, queries: ArrayLike, items: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from observed pairs.

        Parameters
        ----------
        queries, items
            Ids, one a pair.
        sample_weight
            One weight >= 0 a pair.
        """
        rules.check(self)
        pairs = pairs_for(self, check_ids("queries", queries), check_ids("items", items), sample_weight)
        self._settle_seed()
        self.item_ids_ = pairs.item_ids
        self.n_components_, self.pair_, self.k_ = int(self.n_components), self.pair, int(self.k)
        query_ids = cast("Ids", pairs.query_ids)
        base = rows_of(self.base, query_ids, pairs.item_ids)
        self.base_unit_ = self._unit(base, len(query_ids))
        # A base scores queries that were never seen, as it does features: all pairs of a query are held out together.
        rows = replace(pairs, features=np.empty((len(query_ids), 0), dtype=np.float32))
        used, validation = hold_out(rows, self.validation_fraction, self.k_, self.seed_)
        training = training_pairs(used)
        stages = StagesOnBase(
            Scaled(base, self.base_unit_),
            len(query_ids),
            len(pairs.item_ids),
            self._pair(),
            training,
            validation,
            Schedule(self.epochs, self.patience, self.seed_),
            self._weights(),
            self.batch_size or step_size(len(training)),
            self.n_threads,
        )
        tables, self.n_epochs_ = stages.fit(self.stages, self._report)
        self.n_stages_ = len(tables)
        shape = (len(tables), len(pairs.item_ids), self._width())
        self.pair_factors_ = np.array([table.values for table in tables], dtype=np.float32).reshape(shape)
        self.model_card_ = card_for(pairs.n_queries, *pairs.arrays())
        return self

    def rank(
        self, queries: ArrayLike, k: int = 10, stage: int | None = None, exclude: Any = None, unknown: Unknown = "error"
    ) -> tuple[Ids, Singles]:
        """Return the ids and scores of the k best items of each query, best first; equal scores in the order of ids.

        A query that excludes so many that fewer than k are left has the id -1 (of names: an empty string) and the score
        -inf in the places that stay empty.

        Parameters
        ----------
        queries
            Ids that the base can score, seen in fit or not.
        k
            How many items.
        stage
            Which stage ranks, 0 being the base itself; default: the last.
        exclude
            Items not to show: a sequence of ids for each query, or a sparse matrix (queries, items) in the order of
            ``item_ids_``.
        unknown
            What becomes of queries that are no rows of a base given as matrices, and of excluded items that fit never
            saw: "error", or "ignore" with a warning that counts them. Then such a query gets the mean of the base's
            rows, and such an item is excluded anyway. A base that is an object decides by itself what it does with ids
            that it does not know.
        """
        base, n_queries = self._base(queries, unknown)
        found = self._top(base, n_queries, k, self._last(stage), exclude, unknown)
        return shown_ids(self.item_ids_, found.items), found.scores

    def explain(
        self, queries: ArrayLike, k: int = 10, stage: int | None = None, exclude: Any = None, unknown: Unknown = "error"
    ) -> SlateExplanation:
        """Return the k best items of each query with the parts of their scores: who moved them, and by how much.

        Parameters
        ----------
        queries, k, stage, exclude, unknown
            As in :meth:`rank`.
        """
        base, n_queries = self._base(queries, unknown)
        last = self._last(stage)
        items = self._top(base, n_queries, k, last, exclude, unknown).items
        lists, moved = np.empty((n_queries, 0), dtype=np.int64), np.zeros((*items.shape, 0))
        if last:
            lists = self._top(base, n_queries, min(self.k_, len(self.item_ids_)), last - 1).items
            weights = self._weights()[: lists.shape[1]]
            moved = moved_by_list(self.pair_factors_[last - 1], self._pair(), items, lists, weights)
        own = base_scores(base, np.arange(n_queries), items, len(self.item_ids_)).astype(np.float64)
        own[items < 0] = -np.inf
        shown = shown_ids(self.item_ids_, items)
        return SlateExplanation(shown, own, np.zeros(own.shape), self.item_ids_[lists], moved)

    def recall(
        self,
        queries: ArrayLike,
        items: ArrayLike,
        ks: Sequence[int] = (5, 10, 30, 50),
        stage: int | None = None,
        unknown: Unknown = "error",
    ) -> dict[int, float]:
        """Return, for each k, the share of pairs whose item is among the k best of all items for its query.

        With ``unknown="ignore"`` queries are treated as in :meth:`rank`, and pairs of items that fit never saw count as
        not found.
        """
        check_is_fitted(self)
        numbers = number_ids("items", items, self.item_ids_, unknown=unknown, instead="count as not found")
        asked, own = np.unique(check_ids("queries", queries), return_inverse=True)
        if len(own) != len(numbers) or not len(own):
            raise ValueError(f"items: expected one a query and at least one, found {len(numbers)} for {len(own)}")
        depths = check_depths(ks)
        base, n_queries = self._base(asked, unknown)
        lists = self._top(base, n_queries, min(max(depths), len(self.item_ids_)), self._last(stage)).items
        hits = lists[own] == numbers[:, None]
        return {k: float(hits[:, :k].any(axis=1).mean()) for k in depths}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the base to one ``.safetensors`` file.

        Parameters
        ----------
        path
            Where to write; a file already there is replaced.
        """
        super().save(path)

    def check_learned(self) -> None:
        """Raise ValueError unless the arrays of a file fit each other and the parameters."""
        super().check_learned()
        if len(self.n_epochs_) != self.n_stages_:
            raise ValueError(f"n_epochs_: expected {self.n_stages_} numbers, found {len(self.n_epochs_)}")
        if not len(self.item_ids_) or self.n_features_in_ != 1:
            raise ValueError("item_ids_, n_features_in_: expected at least one item, and 1 for a query of one id")
        shape = (self.n_stages_, len(self.item_ids_), self._width())
        if self.pair_factors_.shape != shape:
            raise ValueError(f"pair_factors_: expected float32 of shape {shape}, found {self.pair_factors_.shape}")

    # --- parts -------------------------------------------------------------------------------------------------------

    def _unit(self, base: BaseScores, n_queries: int) -> float:
        """Return the mean gap between the best and the k-th item, over ``base_scale``; 1 where there is none."""
        k = min(self.k_, len(self.item_ids_))
        found = top_on_base(base, base_alone(len(self.item_ids_)), np.arange(n_queries), k, n_threads=self.n_threads)
        ends = found.scores[:, [0, -1]].astype(np.float64)  # a gap of float32 numbers need not be one
        gap = float((ends[:, 0] - ends[:, 1]).mean())
        unit = gap / float(self.base_scale) if gap > 0 else 1.0
        if not rules.UNIT.allows(unit):
            raise ValueError(
                f"base: expected lists that span 1e-30 to 3.4e+38 times base_scale={self.base_scale:g} on average, "
                f"found {gap:g}; multiply the scores by a number"
            )
        return unit

    def _pair(self) -> PairTerm:
        return PAIR_TERMS[self.pair_](Segment(0, self.n_components_, float(self.learning_rate), float(self.max_norm)))

    def _width(self) -> int:
        return padded(self._pair().segments[-1].stop)

    def _weights(self) -> Singles:
        return (1.0 / np.arange(1, min(self.k_, len(self.item_ids_)) + 1)).astype(np.float32)

    def _report(self, seen: EpochReport) -> None:
        for callback in self.callbacks or ():
            callback(seen)

    def _last(self, stage: int | None) -> int:
        last = self.n_stages_ if stage is None else stage
        if not is_whole(last) or not 0 <= last <= self.n_stages_:
            raise ValueError(f"stage: expected a number from 0 (the base) to {self.n_stages_}, found {stage!r}")
        return int(last)

    def _base(self, queries: ArrayLike, unknown: Unknown) -> tuple[BaseScores, int]:
        """Return the base's scores, in its unit, of queries called by their places, and how many these are."""
        check_is_fitted(self)
        ids = check_ids("queries", queries)
        return Scaled(rows_of(self.base, ids, self.item_ids_, unknown), self.base_unit_), len(ids)

    def _top(
        self, base: BaseScores, n_queries: int, k: int, last: int, exclude: Any = None, unknown: Unknown = "error"
    ) -> TopItems:
        hidden = check_exclude(exclude, n_queries, self.item_ids_, unknown)
        check_k(k, len(self.item_ids_))
        factors = self._factors(base, n_queries, last)
        return top_on_base(base, factors, np.arange(n_queries), k, hidden, self.n_threads)

    def _factors(self, base: BaseScores, n_queries: int, last: int) -> Factors:
        factors = base_alone(len(self.item_ids_))
        for values in self.pair_factors_[:last]:
            table = Table(np.ascontiguousarray(values), np.empty((len(values), 0), dtype=np.float32), ())
            factors = next_factors(base, factors, table, self._pair(), n_queries, self._weights(), self.n_threads)
        return factors
