"""Rank the documents of a query by a linear score trained for the measure: ranking SVM, SVM-MAP and their kin."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.checks import Features
from slatewise.core.executor import Executor
from slatewise.core.graded import GradedLists
from slatewise.core.results import Fit, Round
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.data.row_source import ListTable, RowSource
from slatewise.metric_learning.interleave import Oracle
from slatewise.metric_learning.margin_fit import choose_strength, fit_margin
from slatewise.metric_learning.margin_hinge import ListOracle, MarginHinge
from slatewise.metric_learning.margin_source import levels_of, source_hinge
from slatewise.metric_learning.ordered_pairs import OrderedPairs
from slatewise.model.query_ranker import QueryRanker

Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Literal["map", "auc", "ndcg", "precision", "mrr"]
LOSSES = ("map", "auc", "ndcg", "precision", "mrr")


class MarginRanker(QueryRanker):
    """Rank documents by ``s_i = w . x_i``, with w trained for a ranking measure.

    ``min over w of 1/2 |w|^2 + C mean_q max over rankings of [loss + their score - the best ranking's score]``, solved
    to a certified gap. ``loss="auc"`` is the ranking SVM, ``loss="map"`` is SVM-MAP.

    Parameters
    ----------
    loss : {"map", "auc", "ndcg", "precision", "mrr"}
        What training minimises: 1 minus that measure of a list. "ndcg" has LETOR's discount and gain 0 or 1.
    k : int
        Ranks that count for "ndcg" and "precision".
    C : float or "auto"
        Weight of the hinge against the regularizer; "auto": by the same loss on inner folds over lists, of which
        there must then be two.
    threshold : float, optional
        The smallest relevance that counts as relevant. Default: all that is above the smallest relevance in training
        (in LETOR's grades 0, 1, 2: 1 and 2); for "auc" every pair of rows of different relevance counts instead.
    tol : float
        Relative certified gap at which training ends.
    max_iter : int
        Most rounds.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` every round.
    checkpoint : path, optional
        Where what was computed so far is kept; fit goes on from there if the file is of the same data and settings,
        with the same bits as if it had never stopped, and removes it at the end.
    n_threads : int, optional
        Threads over blocks of lists; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Of the folds of ``C="auto"``. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    coef_
        w, one weight per feature.
    C_
        What was given or chosen.
    objective_, lower_bound_, n_iter_
        The certificate: no weights have an objective below the bound.
    n_skipped_
        Lists that are left out, which fit warns of: without a relevant or without an irrelevant row they say nothing
        about a ranking.

    Notes
    -----
    Only differences inside a list count. Where features have another scale in every list, as in LETOR's raw
    collections, scale them first with :func:`slatewise.data.minmax_per_query`.

    The hinge compares with the ranking that has *all* relevant rows first. Where many irrelevant rows score among the
    relevant ones, a ranking that misplaces only k rows is no worse than that one, and the hinges of "precision" and
    "ndcg" are then smallest at w = 0, which is a warning.

    Examples
    --------
    >>> from slatewise import MarginRanker, datasets
    >>> queries = datasets.make_queries(n_queries=40, random_state=1)
    >>> ranker = MarginRanker("map").fit(queries.X, queries.y, qid=queries.qid)
    >>> ranker.predict(queries.X).shape == queries.y.shape
    True
    >>> bool(ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_)
    True
    """

    learned: ClassVar[Mapping[str, Rule]] = {
        "coef_": rules.learned_array(1),
        "C_": rules.POSITIVE,
        "objective_": rules.SEEN,
        "lower_bound_": rules.SEEN,
        "n_iter_": rules.count(0),
        "n_skipped_": rules.count(0),
        "has_qid_": rules.BOOLEAN,
    }
    coef_: Floats

    rules: ClassVar[Mapping[str, Rule]] = {
        "loss": rules.one_of(*LOSSES),
        "k": rules.count(),
        "C": rules.POSITIVE | rules.one_of("auto"),
        "threshold": rules.FINITE | rules.NONE,
        "tol": rules.POSITIVE,
        "max_iter": rules.count(),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_threads": rules.THREADS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        loss: Loss = "map",
        k: int = 10,
        C: float | Literal["auto"] = 1.0,
        threshold: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.k = k
        self.C = C
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_threads = n_threads
        self.random_state = random_state

    def check_learned(self) -> None:
        """Raise ValueError unless there is one weight per feature."""
        super().check_learned()
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError(f"coef_: expected {self.n_features_in_} numbers, found shape {self.coef_.shape}")

    def _certificate(self) -> dict[str, Any]:
        gap = (self.objective_ - self.lower_bound_) / max(self.objective_, 1e-300)
        return {"objective": self.objective_, "lower_bound": self.lower_bound_, "converged": gap <= self.tol}

    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None:
        hinge = self._hinge(lists)
        self.C_ = choose_strength(hinge, self.seed_) if self.C == "auto" else float(self.C)
        self._keep(fit_margin(hinge, self.C_, self.tol, self.max_iter, tell), lists.all_features)

    def _fit_source(self, source: RowSource, lists: ListTable, tell: Callable[[Round], None]) -> None:
        if isinstance(self.C, str):
            raise ValueError("C: expected a number with a source, of which nobody holds folds, found 'auto'")
        levels = levels_of(lists, self.threshold, every_grade=self.loss == "auc")
        useful = self._useful(levels.of_numbers(lists.least), levels.of_numbers(lists.most))
        hinge = source_hinge(source, lists, useful, levels, self._oracle(), Executor.of(self.n_threads))
        self.C_ = float(self.C)
        self._keep(fit_margin(hinge, self.C_, self.tol, self.max_iter, tell), lambda params: params)

    def _keep(self, fit: Fit, all_features: Callable[[Floats], Floats]) -> None:
        self.coef_ = all_features(fit.params)
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.n_iter_ = len(fit.history)
        if not self.coef_.any():
            advice = {
                "precision": "'map' and 'auc', or a larger k, look at more of a list",
                "ndcg": "'map' and 'auc', or a larger k, look at more of a list",
                "mrr": "'map' and 'auc' look at more of a list",
            }
            warnings.warn(
                f"nothing was learned: the hinge of loss={self.loss!r} is smallest where all weights are 0; "
                f"{advice.get(self.loss, 'look at the features, which say nothing about relevance inside a list')}",
                UserWarning,
                stacklevel=4,
            )

    def _hinge(self, lists: GradedLists) -> MarginHinge:
        """Keep the lists that say something, and choose the oracle."""
        levels, starts = self._levels(lists.y), lists.offsets[:-1]
        useful = self._useful(np.minimum.reduceat(levels, starts), np.maximum.reduceat(levels, starts))
        kept, levels = lists.keep(useful), levels[np.repeat(useful, np.diff(lists.offsets))]
        executor = Executor.of(self.n_threads)
        relevance = levels if self.loss == "auc" else levels.astype(np.int8)
        return MarginHinge(kept.X, relevance, kept.offsets, self._oracle(), executor, kept.weight)

    def _useful(self, least: NDArray[Any], most: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which lists say anything, by their levels, and warn of the others; refuse them where none does."""
        useful = least < most
        if not useful.any():
            raise ValueError(
                "y: expected a list with relevant and irrelevant rows, found only one class of rows in every list"
            )
        self.n_skipped_ = int(np.sum(~useful))
        if self.n_skipped_:
            relevant = int(np.sum(least[~useful] > 0))
            reasons = {"relevant rows only": relevant, "irrelevant rows only": self.n_skipped_ - relevant}
            if self.loss == "auc" and self.threshold is None:
                reasons = {"a single relevance": self.n_skipped_}
            why = ", ".join(f"{count} of {reason}" for reason, count in reasons.items() if count)
            warnings.warn(f"{self.n_skipped_} of {len(useful)} lists are left out: {why}", UserWarning, stacklevel=5)
        return useful

    def _oracle(self) -> ListOracle:
        return OrderedPairs() if self.loss == "auc" else Oracle(self.loss, int(self.k))

    def _levels(self, y: Floats) -> NDArray[np.int64]:
        """Relevance as whole numbers from 0: 0 and 1, or for the AUC of graded rows every grade."""
        if self.threshold is not None:
            return (y >= self.threshold).astype(np.int64)
        if self.loss == "auc":
            return np.unique(y, return_inverse=True)[1].astype(np.int64)
        return (y > y.min()).astype(np.int64)

    def _scores(self, X: Features) -> Floats:
        return X.astype(np.float64) @ self.coef_
