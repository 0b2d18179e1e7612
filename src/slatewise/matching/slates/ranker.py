"""Rank the documents of a query by matchings with positions: RankMatch (Petterson et al. 2009), and DORM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core import rules
from slatewise.core.arrays import Floats
from slatewise.core.checks import Features, require_in_range
from slatewise.core.declarations import JOBS_TEXT, learned, param, resolved, seed_text, settings
from slatewise.core.groups import group_rows
from slatewise.core.numerics.result import Round
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.core.seeds import RandomState
from slatewise.data.row_source import ListTable, RowSource
from slatewise.estimators.lists import GradedLists
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.estimators.sklearn import check_targets
from slatewise.matching.slates.hinge import check_gains
from slatewise.matching.slates.slates import (
    MOST_DOCUMENTS,
    AllSlates,
    RatedLists,
    Slates,
    WholeQueries,
    all_slates,
    drawn_slates,
    falling_weights,
)
from slatewise.matching.slates.training import Task, averaged_fit, choose_l2

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse


MOST_BY_DEFAULT = 6
"""The maximum number of documents of a slate whose size is not given."""


class MatchingRanker(QueryRanker):
    """Rank documents by ``s_i = theta . x_i``, with theta the most likely under a distribution over rankings.

    ``p(pi) ~ exp(sum_i s_i c[pi_i])`` with a weight c that falls from position to position. Training maximizes the
    exact likelihood of many small slates of each query (RankMatch), or of whole queries; ``surrogate="max-margin"``
    instead bounds 1 - NDCG of the same slates (DORM). Both are convex and certified.

    Notes
    -----
    Only differences inside a list count. Where features have another scale in every list, as in LETOR's raw
    collections, scale them first with :func:`slatewise.data.minmax_per_query`.

    Examples
    --------
    >>> from slatewise import MatchingRanker, datasets
    >>> from slatewise.matching import Slates
    >>> queries = datasets.make_queries(n_queries=40, random_state=1)
    >>> ranker = MatchingRanker(Slates(size=3, repeats=2)).fit(queries.X, queries.y, qid=queries.qid)
    >>> ranker.predict(queries.X).shape == queries.y.shape
    True
    >>> ranker.model_card_.converged, bool(ranker.lower_bound_ <= ranker.objective_)
    (True, True)
    """

    slates: str | Slates | AllSlates | WholeQueries = param(
        settings(Slates, AllSlates, WholeQueries),
        """What training looks at: slates drawn at random (:class:`slatewise.matching.Slates`), all slates
        (:class:`slatewise.matching.AllSlates`), or whole queries (:class:`slatewise.matching.WholeQueries`).""",
        default="sampled",
        kw_only=False,
    )
    surrogate: Literal["likelihood", "max-margin"] = param(
        rules.one_of("likelihood", "max-margin"), "RankMatch, or DORM.", default="likelihood"
    )
    l2: float | Literal["auto"] = param(
        rules.POSITIVE | rules.one_of("auto"),
        """Weight of the regularizer ``1/2 |theta|^2``; "auto": the one with the smallest loss on inner folds over
        lists; this needs at least two lists.""",
        default=0.01,
    )
    tol: float | None = param(
        rules.POSITIVE | rules.NONE,
        """Relative certified gap at which training ends. None: 1e-5 for the likelihood, which is flat near its minimum
        if l2 is small, 1e-3 for max-margin.""",
        default=None,
    )
    max_iter: int = param(rules.count(), "The maximum number of iterations, or rounds.", default=1000)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(rules.SEED, seed_text("Of the slates and the inner folds."), default=None)

    coef_: Floats = learned(rules.learned_array(1), "theta, one number per feature.", shape=("n_features_in_",))
    l2_: float = learned(rules.POSITIVE, "The given or chosen l2.")
    slate_size_: int = learned(
        rules.count(2, MOST_DOCUMENTS), "Documents of a slate; whole queries have no such attribute.", optional=True
    )
    ratings_: Floats = learned(rules.learned_array(1), "The different ratings, rising.")
    objective_: float = learned(rules.ANY_NUMBER, "The objective of ``coef_``, a mean over the repeats.")
    lower_bound_: float = learned(
        rules.ANY_NUMBER,
        """The certificate, a mean over the repeats: no theta has a mean objective below it. Each repeat is solved to
        ``tol``; the mean theta is the minimum of none of them, and its gap is ``objective_ - lower_bound_``.""",
    )
    n_iter_: int = learned(rules.count(0), "The number of rounds of the longest repeat.")
    n_skipped_: int = learned(
        rules.count(0),
        """The number of lists left out, with a warning: lists of a single rating and, for slates, lists of fewer rows
        than a slate or, with ``missing="skip"``, without one of the ratings.""",
    )

    def _check_learned(self) -> None:
        """Raise ValueError unless the ratings rise and the size of slates is that of the parameters."""
        super()._check_learned()
        if len(self.ratings_) < 2 or not (np.diff(self.ratings_) > 0).all():
            raise ValueError("ratings_: expected two or more rising numbers, found others")
        self._check_ratings(self.ratings_)
        task, found = self._task(ONE_THREAD), getattr(self, "slate_size_", None)
        if found != task.size:
            raise ValueError(f"slate_size_: expected {task.size} with slates={self.slates!r}, found {found}")

    def loss(
        self, X: ArrayLike | Sparse, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> float:
        """Return the mean loss of slates, or whole lists, of given rows; ``l2="auto"`` minimizes it on held-out lists.

        Parameters
        ----------
        X, y, qid, group
            As for :meth:`fit`.
        """
        scores = self.predict(X)
        ratings = check_targets(scores, y)
        self._check_ratings(np.append(ratings, self.ratings_[0]))  # gains count from the least rating of fit
        groups, task = group_rows(qid, len(scores), group), self._task(Executor.of(self.n_jobs))
        lists = RatedLists.of(groups.gather(scores)[:, None], groups.gather(ratings), groups.offsets)
        useful, rng = lists.useful(task.size or 2, task.n_ratings), np.random.default_rng([self.seed_, 1])
        return task.problem(useful, rng).loss(np.ones(1))

    def _certificate(self) -> dict[str, Any]:
        return {"objective": self.objective_, "lower_bound": self.lower_bound_, "converged": self._converged}

    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None:
        self._check_ratings(lists.y)
        self.ratings_ = np.unique(lists.y)
        task, seed = self._task(Executor.of(self.n_jobs)), self.seed_
        vars(self).pop("slate_size_", None)  # of an earlier fit
        if task.size is not None:
            self.slate_size_ = task.size
        rated = RatedLists.of(lists.X, lists.y, lists.offsets, lists.weight).useful(task.size or 2, task.n_ratings)
        self.n_skipped_ = len(lists.offsets) - len(rated.offsets)
        tol = (1e-3 if task.is_hinge else 1e-5) if self.tol is None else float(self.tol)
        self.l2_ = choose_l2(task.problem, rated, seed, tol, self.max_iter) if self.l2 == "auto" else float(self.l2)
        fit = averaged_fit(task.problem, rated, self.l2_, task.repeats, seed, tol, self.max_iter, tell)
        self.coef_, self.objective_, self.lower_bound_ = lists.all_features(fit.params), fit.objective, fit.lower_bound
        self._converged = fit.converged
        self.n_iter_ = len(fit.history)

    def _fit_source(self, source: RowSource, lists: ListTable, tell: Callable[[Round], None]) -> None:
        if isinstance(self.l2, str):
            raise ValueError("l2: expected a number with a source, which has no folds, found 'auto'")
        ratings = source.relevances(Executor.of(self.n_jobs))
        self._fit_lists(GradedLists.with_unit_weights(cast("Features", source.features), ratings, lists.offsets), tell)

    def _scores(self, X: Features) -> Floats:
        return X.astype(np.float64) @ self.coef_

    def _check_ratings(self, ratings: Floats) -> None:
        """Raise ValueError unless the losses of these ratings, of ``fit`` or of ``loss``, are numbers."""
        require_in_range("y", ratings)
        if self.surrogate == "max-margin":
            check_gains(ratings)

    def _task(self, executor: Executor) -> Task:
        """Put the settings together; raise ValueError unless they fit each other and the ratings."""
        slates: Slates | AllSlates | WholeQueries = resolved(self, "slates")
        ratings, is_hinge = self.ratings_, self.surrogate == "max-margin"
        if isinstance(slates, WholeQueries):
            falling = falling_weights("WholeQueries.rating_weights", slates.rating_weights, len(ratings))
            return Task(is_hinge, ratings, None if falling is None else falling[::-1], executor=executor)
        name = type(slates).__name__
        if is_hinge and slates.ties == "marginal":
            raise ValueError(f"{name}.ties: expected 'random' with surrogate='max-margin', found 'marginal'")
        size = int(np.clip(len(ratings), 2, MOST_BY_DEFAULT)) if slates.size is None else int(slates.size)
        weights = falling_weights(f"{name}.position_weights", slates.position_weights, size)
        draw, repeats = all_slates, 1
        if isinstance(slates, Slates):
            draw, repeats = partial(drawn_slates, float(slates.share)), int(slates.repeats)
        n_ratings = 2 if slates.missing == "use" else min(size, len(ratings))
        return Task(is_hinge, ratings, weights, size, draw, slates.ties == "marginal", n_ratings, repeats, executor)
