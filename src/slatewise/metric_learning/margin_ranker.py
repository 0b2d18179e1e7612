"""Rank the documents of a query by a linear score trained for the measure: ranking SVM, SVM-MAP and similar.

    min over w of  1/2 |w|^2 + C R(w) ,     R of :class:`~slatewise.metric_learning.margin_hinge.MarginHinge`

C may be chosen on inner folds over lists, by the loss that is trained for. A cut of R has no C in it, so a path of
growing C costs little more than its last point: every fit of a fold starts from the cuts of the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats
from slatewise.core.checks import Features
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, seed_text, settings
from slatewise.core.numerics.bundle import ActiveCuts, one_slack
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.numerics.strengths import Step, random_folds, search_path
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockObjective
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.data.row_files import RowFormat, RowGroup
from slatewise.data.row_source import ListTable, RowSource
from slatewise.estimators.lists import GradedLists
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.losses.training import AUC, MAP, MRR, NDCG, Precision, TrainingLoss, cutoff_of
from slatewise.metric_learning.margin_hinge import MarginHinge, source_hinge
from slatewise.metric_learning.oracle import Oracle

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""C times the mean squared distance of a row from the center of its list."""
FOLDS = 5
_TOLERANCE, _ROUNDS = 1e-2, 200  # a rough fit is enough to choose by


class MarginRanker(QueryRanker):
    """Rank documents by ``s_i = w . x_i``, with w trained for a ranking measure.

    ``min over w of 1/2 |w|^2 + C mean_q max over rankings of [loss + their score - the best ranking's score]``, solved
    to a certified gap. ``loss="auc"`` is the ranking SVM, ``loss="map"`` is SVM-MAP.

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

    loss: str | AUC | MAP | MRR | NDCG | Precision = param(
        settings(MAP, AUC, NDCG, Precision, MRR),
        """What training minimizes: 1 minus that measure of a list. Without a ``threshold`` all rows above the smallest
        relevance in training are relevant (in LETOR's grades 0, 1, 2: 1 and 2); for "auc" every pair of rows of
        different relevance counts instead.""",
        default="map",
        kw_only=False,
    )
    C: float | Literal["auto"] = param(
        rules.POSITIVE | rules.one_of("auto"),
        """Weight of the hinge against the regularizer; "auto": by the same loss on inner folds over lists; this
        needs at least two lists.""",
        default=1.0,
    )
    tol: float = param(rules.POSITIVE, "Relative certified gap at which training ends.", default=1e-3)
    max_iter: int = param(rules.count(), "The maximum number of rounds.", default=1000)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(rules.SEED, seed_text('Of the folds of ``C="auto"``.'), default=None)

    coef_: Floats = learned(rules.learned_array(1), "w, one weight per feature.", shape=("n_features_in_",))
    C_: float = learned(rules.POSITIVE, "The given or chosen C.")
    objective_: float = learned(rules.ANY_NUMBER, "The objective of ``coef_``.")
    lower_bound_: float = learned(rules.ANY_NUMBER, "The certificate: no weights have an objective below it.")
    n_iter_: int = learned(rules.count(0), "The number of rounds.")
    n_skipped_: int = learned(
        rules.count(0),
        """The number of lists left out, with a warning: lists without a relevant or without an irrelevant row, from
        which no ranking can be learned.""",
    )

    def _certificate(self) -> dict[str, Any]:
        gap = (self.objective_ - self.lower_bound_) / max(self.objective_, 1e-300)
        return {"objective": self.objective_, "lower_bound": self.lower_bound_, "converged": gap <= self.tol}

    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None:
        hinge = self._hinge(lists)
        self.C_ = choose_strength(hinge, self.seed_) if self.C == "auto" else float(self.C)
        self._keep(fit_margin(hinge, self.C_, self.tol, self.max_iter, tell), lists.all_features)

    def _fit_source(self, source: RowSource, lists: ListTable, tell: Callable[[Round], None]) -> None:
        if isinstance(self.C, str):
            raise ValueError("C: expected a number with a source, which has no folds, found 'auto'")
        levels = self._levels(lists.grades)
        useful = self._useful(levels.of_numbers(lists.least), levels.of_numbers(lists.most))
        risk = source_hinge(source, lists, useful, levels, self._oracle(), Executor.of(self.n_jobs))
        self.C_ = float(self.C)
        self._keep(fit_margin(risk, self.C_, self.tol, self.max_iter, tell), lambda params: params)

    def _keep(self, fit: Fit, all_features: Callable[[Floats], Floats]) -> None:
        self.coef_ = all_features(fit.params)
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.n_iter_ = len(fit.history)
        if not self.coef_.any():
            loss = self._loss()
            advice: dict[type[TrainingLoss], str] = {
                Precision: "'map' and 'auc', or a larger k, look at more of a list",
                NDCG: "'map' and 'auc', or a larger k, look at more of a list",
                MRR: "'map' and 'auc' look at more of a list",
            }
            warnings.warn(
                f"nothing was learned: the hinge of loss={loss.shorthand!r} is smallest where all weights are 0; "
                f"{advice.get(type(loss), 'check the features, which may not depend on relevance')}",
                UserWarning,
                stacklevel=4,
            )

    def _hinge(self, lists: GradedLists) -> MarginHinge:
        """Return the hinge of the lists that have rows of different relevance."""
        levels = self._levels(np.unique(lists.y))
        relevance, starts = levels.of_numbers(lists.y), lists.offsets[:-1]
        kept = lists.keep(self._useful(np.minimum.reduceat(relevance, starts), np.maximum.reduceat(relevance, starts)))
        executor = Executor.of(self.n_jobs)
        return MarginHinge(kept.X, levels.of_numbers(kept.y), kept.offsets, self._oracle(), executor, kept.weight)

    def _useful(self, least: NDArray[Any], most: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which lists have rows of different levels, and warn of the others; it is an error if none has."""
        useful = least < most
        if not useful.any():
            raise ValueError(
                "y: expected a list with relevant and irrelevant rows, found only one class of rows in every list"
            )
        self.n_skipped_ = int(np.sum(~useful))
        if self.n_skipped_:
            relevant = int(np.sum(least[~useful] > 0))
            reasons = {"relevant rows only": relevant, "irrelevant rows only": self.n_skipped_ - relevant}
            if isinstance(self._loss(), AUC) and self._loss().threshold is None:
                reasons = {"a single relevance": self.n_skipped_}
            why = ", ".join(f"{count} of {reason}" for reason, count in reasons.items() if count)
            warnings.warn(f"{self.n_skipped_} of {len(useful)} lists are left out: {why}", UserWarning, stacklevel=5)
        return useful

    def _loss(self) -> TrainingLoss:
        return resolved(self, "loss")

    def _oracle(self) -> Oracle:
        loss = self._loss()
        return Oracle("ordered_pairs") if isinstance(loss, AUC) else Oracle(str(loss.shorthand), cutoff_of(loss))

    def _levels(self, grades: Floats) -> Levels:
        """Return which of the rising grades count as relevant: from a threshold on, all but the smallest, or each."""
        loss = self._loss()
        dtype = "int64" if isinstance(loss, AUC) else "int8"
        if loss.threshold is not None:
            return Levels(None, float(loss.threshold), dtype)
        if isinstance(loss, AUC):
            return Levels(grades, -np.inf, dtype)
        return Levels(None, float(grades[1]) if len(grades) > 1 else np.inf, dtype)

    def _scores(self, X: Features) -> Floats:
        return X.astype(np.float64) @ self.coef_


@dataclass(frozen=True, eq=False)
class Levels:
    """Relevance as whole numbers from 0: whether a row counts as relevant, or every grade apart."""

    grades: Floats | None
    """Rising; None: two levels."""
    least: float
    """The smallest relevance that counts."""
    dtype: str
    """As the oracle reads them."""

    def shape(self, n_features: int) -> tuple[int, ...]:
        """One number per row."""
        del n_features
        return ()

    def of(self, rows: RowFormat, group: RowGroup) -> NDArray[Any]:
        """Read the relevances of a piece, and return their levels."""
        return self.of_numbers(rows.numbers(group))

    def of_numbers(self, y: Floats) -> NDArray[Any]:
        """Return the level of each relevance."""
        return (y >= self.least if self.grades is None else np.searchsorted(self.grades, y)).astype(self.dtype)


def fit_margin(
    hinge: MarginHinge | BlockObjective,
    C: float,
    tol: float,
    max_iter: int,
    callback: Callable[[Round], None] | None = None,
) -> Fit:
    """Minimize ``1/2 |w|^2 + C R(w)`` to a certified relative gap of ``tol``."""
    with one_blas_thread():
        return one_slack(hinge, ActiveCuts(np.ones(hinge.n_params)), C, tol=tol, max_iter=max_iter, callback=callback)


def choose_strength(hinge: MarginHinge, random_state: int) -> float:
    """Return the C with the smallest mean loss on folds of the lists; of equals the smallest."""
    if hinge.n_lists < 2:
        raise ValueError(
            f"C: expected a number where there is one list to learn from, found 'auto' and {hinge.n_lists}"
        )
    strengths, totals = [strength / hinge.spread for strength in STRENGTHS], np.zeros(len(STRENGTHS))
    for inner, held_out in random_folds(hinge.n_lists, FOLDS, random_state):
        totals += [step.loss for step in held_out_path(hinge.part(inner), hinge.part(held_out), strengths)]
    return strengths[int(np.argmin(totals))]


def held_out_path(hinge: MarginHinge, held_out: MarginHinge, strengths: Sequence[float]) -> list[Step[Floats]]:
    """Return a fit for each C of a growing path, with the sum of the losses of held-out lists."""
    cuts, n_held_out = ActiveCuts(np.ones(hinge.n_params)), float(held_out.weights.sum())
    with one_blas_thread():
        return search_path(
            strengths,
            1,
            lambda _, C, start: one_slack(hinge, cuts, C, tol=_TOLERANCE, max_iter=_ROUNDS).params,
            lambda _, w: n_held_out * held_out.ranking_loss(w),
        )
