"""Rank the documents of a query by matchings with positions: RankMatch (Petterson et al. 2009), and DORM beside it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.checks import Features
from slatewise.core.executor import Executor
from slatewise.core.graded import GradedLists
from slatewise.core.groups import group_rows
from slatewise.core.results import Round
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.data.row_source import ListTable, RowSource
from slatewise.estimators.query_ranker import QueryRanker
from slatewise.estimators.sklearn import check_targets
from slatewise.matching.problems import slate_hinge, slate_likelihood, whole_hinge, whole_likelihood
from slatewise.matching.settings import (
    MOST_DOCUMENTS,
    check_grades,
    check_ratings,
    check_settings,
    left_out,
    position_weights,
)
from slatewise.matching.slates import RatedLists, all_slates, fraction_of_slates
from slatewise.matching.training import MakeProblem, averaged_fit, choose_l2

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

Floats: TypeAlias = NDArray[np.float64]

MOST_BY_DEFAULT = 6
"""Documents of a slate where no M is given, however many ratings there are."""


class MatchingRanker(QueryRanker):
    """Rank documents by ``s_i = theta . x_i``, with theta the most likely under a distribution over rankings.

    ``p(pi) ~ exp(sum_i s_i c[pi_i])`` with a weight c that falls from position to position. Training maximises the
    exact likelihood of many small slates of each query (RankMatch), or of whole queries; ``surrogate="max-margin"``
    instead bounds 1 - NDCG of the same slates (DORM). Both are convex and certified.

    Parameters
    ----------
    M : int, optional
        Documents of a slate, 2 to 20. Default: one of each rating, at most 6. Every slate shows all ratings of its
        query where they fit into M, otherwise M different ones.
    c : {"linear", "rating"} or array
        What positions weigh: ``M - 1, .., 1, 0``; the ratings of the slate; or M given numbers, never growing. With
        ``subsets="whole"`` a weight belongs to a rating instead of a position: its number, itself, or given, for the
        best rating first.
    ties : {"random", "marginal"}
        Documents of equal rating come in random order, or all their orders are summed. The sum is convex only where c
        is constant inside a rating; otherwise fit warns, and ``lower_bound_`` is 0.
    subsets : float, "all" or "whole"
        How many slates a query of D documents gives: a fraction of ``D * M``, all there are, or none: the whole query
        is summed at once, with c constant inside a rating.
    repeats : int
        How many times slates are drawn; theta is the mean over these fits. "all" and "whole" need one.
    l2 : float or "auto"
        Weight of the regularizer ``1/2 |theta|^2``; "auto": the one with the smallest loss on inner folds over lists.
    surrogate : {"likelihood", "max-margin"}
        RankMatch, or DORM.
    tol : float, optional
        Relative certified gap at which training ends. Default: 1e-5 for the likelihood, which is flat near its minimum
        where l2 is small, 1e-3 for max-margin.
    max_iter : int
        Most iterations, or rounds.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` every round, of one repeat after the other.
    checkpoint : path, optional
        Where what was computed so far is kept; fit goes on from there if the file is of the same data and settings,
        with the same bits as if it had never stopped, and removes it at the end.
    n_jobs : int, optional
        The result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Of the slates and the inner folds. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.
    absent : {"use", "skip"}
        What becomes of a query that lacks one of the ratings there are (M of them, where there are more): its slates
        show the ratings it has, filled up with further documents; or it is left out, as in the paper.

    Attributes
    ----------
    coef_
        theta, one number per feature.
    l2_, M_
        What was given or chosen; ``M_`` is 0 with ``subsets="whole"``.
    ratings_
        The different ratings, rising.
    objective_, lower_bound_, n_iter_
        The certificate. The objective of ``coef_`` and the bound, both means over the repeats: no theta has a mean
        objective below the bound. Each repeat is solved to ``tol``; the mean theta is the minimum of none of them, and
        its gap is ``objective_ - lower_bound_``.
    n_skipped_
        Lists that are left out, which fit warns of: of a single rating, of fewer than M rows (but not with
        ``subsets="whole"``), and with ``absent="skip"`` those that lack a rating.

    Notes
    -----
    Only differences inside a list count. Where features have another scale in every list, as in LETOR's raw
    collections, scale them first with :func:`slatewise.data.minmax_per_query`.

    Examples
    --------
    >>> from slatewise import MatchingRanker, datasets
    >>> queries = datasets.make_queries(n_queries=40, random_state=1)
    >>> ranker = MatchingRanker(M=3, repeats=2).fit(queries.X, queries.y, qid=queries.qid)
    >>> ranker.predict(queries.X).shape == queries.y.shape
    True
    >>> ranker.model_card_.converged, bool(ranker.lower_bound_ <= ranker.objective_)
    (True, True)
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "coef_": rules.learned_array(1),
        "l2_": rules.POSITIVE,
        "M_": rules.count(0, MOST_DOCUMENTS),
        "ratings_": rules.learned_array(1),
        "objective_": rules.SEEN,
        "lower_bound_": rules.SEEN,
        "n_iter_": rules.count(0),
        "n_skipped_": rules.count(0),
        "has_qid_": rules.BOOLEAN,
    }
    coef_: Floats
    ratings_: Floats
    M_: int

    _rules: ClassVar[Mapping[str, Rule]] = {
        "M": rules.count(2, MOST_DOCUMENTS) | rules.NONE,
        "c": rules.one_of("linear", "rating") | rules.vector("finite numbers"),
        "ties": rules.one_of("random", "marginal"),
        "subsets": rules.number("a number > 0 and at most 1000", math.ulp(0.0), 1000.0) | rules.one_of("all", "whole"),
        "repeats": rules.count(1, rules.MOST_LISTED),
        "l2": rules.POSITIVE | rules.one_of("auto"),
        "surrogate": rules.one_of("likelihood", "max-margin"),
        "tol": rules.POSITIVE | rules.NONE,
        "max_iter": rules.count(),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_jobs": rules.JOBS,
        "random_state": rules.SEED,
        "absent": rules.one_of("use", "skip"),
    }

    def __init__(
        self,
        M: int | None = None,
        c: Literal["linear", "rating"] | ArrayLike = "linear",
        ties: Literal["random", "marginal"] = "random",
        subsets: float | Literal["all", "whole"] = 0.4,
        repeats: int = 5,
        l2: float | Literal["auto"] = 0.01,
        surrogate: Literal["likelihood", "max-margin"] = "likelihood",
        tol: float | None = None,
        max_iter: int = 1000,
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        absent: Literal["use", "skip"] = "use",
    ) -> None:
        self.M = M
        self.c = c
        self.ties = ties
        self.subsets = subsets
        self.repeats = repeats
        self.l2 = l2
        self.surrogate = surrogate
        self.tol = tol
        self.max_iter = max_iter
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.absent = absent

    def _check_learned(self) -> None:
        """Raise ValueError unless there is one number per feature, and M and the ratings are of the parameters."""
        super()._check_learned()
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError(f"coef_: expected {self.n_features_in_} numbers, found shape {self.coef_.shape}")
        if len(self.ratings_) < 2 or not (np.diff(self.ratings_) > 0).all():
            raise ValueError("ratings_: expected two or more rising numbers, found others")
        if self._slate_size() != self.M_:
            raise ValueError(f"M_: expected {self._slate_size()}, which M and subsets give, found {self.M_}")
        check_settings(self, self.ratings_)
        position_weights(self.c, self.M_ or len(self.ratings_))

    def loss(
        self, X: ArrayLike | Sparse, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> float:
        """Return the mean loss of the slates, or whole lists, of given rows: what ``l2`` is chosen by.

        Parameters
        ----------
        X, y, qid, group
            As for :meth:`fit`.
        """
        scores = self.predict(X)
        ratings = check_targets(scores, y)
        check_ratings(self, np.append(ratings, self.ratings_[0]))  # gains count from the least rating of fit
        groups = group_rows(qid, len(scores), group)
        lists = self._useful(RatedLists.of(groups.gather(scores)[:, None], groups.gather(ratings), groups.offsets))
        check_grades(self, lists)
        rng = np.random.default_rng([self.seed_, 1])
        return self._problem_maker()(lists, rng).loss(np.ones(1))

    def _certificate(self) -> dict[str, Any]:
        return {"objective": self.objective_, "lower_bound": self.lower_bound_, "converged": self._converged}

    def _fit_lists(self, lists: GradedLists, tell: Callable[[Round], None]) -> None:
        check_settings(self, lists.y)
        self.ratings_ = np.unique(lists.y)
        self.M_ = self._slate_size()
        rated = self._useful(RatedLists.of(lists.X, lists.y, lists.offsets, lists.weight))
        check_grades(self, rated)
        self.n_skipped_ = len(lists) - len(rated)
        make_problem, seed = self._problem_maker(), self.seed_
        tol = self._tolerance()
        self.l2_ = choose_l2(make_problem, rated, seed, tol, self.max_iter) if self.l2 == "auto" else float(self.l2)
        repeats = 1 if isinstance(self.subsets, str) else self.repeats
        fit = averaged_fit(make_problem, rated, self.l2_, repeats, seed, tol, self.max_iter, tell)
        self.coef_, self.objective_, self.lower_bound_ = lists.all_features(fit.params), fit.objective, fit.lower_bound
        self._converged = fit.converged
        self.n_iter_ = len(fit.history)

    def _fit_source(self, source: RowSource, lists: ListTable, tell: Callable[[Round], None]) -> None:
        if isinstance(self.l2, str):
            raise ValueError("l2: expected a number with a source, of which nobody holds folds, found 'auto'")
        ratings = source.relevances(Executor.of(self.n_jobs))
        self._fit_lists(GradedLists.alike(cast("Features", source.features), ratings, lists.offsets), tell)

    def _slate_size(self) -> int:
        by_default = int(np.clip(len(self.ratings_), 2, MOST_BY_DEFAULT))
        return 0 if self.subsets == "whole" else by_default if self.M is None else int(self.M)

    def _scores(self, X: Features) -> Floats:
        return X.astype(np.float64) @ self.coef_

    def _useful(self, lists: RatedLists) -> RatedLists:
        """Leave out the lists without a slate, and say how many there were."""
        shown = 2 if self.absent == "use" else min(self.M_, len(self.ratings_))
        useful = lists.useful(self.M_, shown)
        if len(useful) < len(lists):
            warnings.warn(left_out(lists, self.M_, shown), UserWarning, stacklevel=4)
        return useful

    def _tolerance(self) -> float:
        by_default = 1e-3 if self.surrogate == "max-margin" else 1e-5
        return by_default if self.tol is None else float(self.tol)

    def _problem_maker(self) -> MakeProblem:
        """Choose the problem."""
        executor = Executor.of(self.n_jobs)
        hinge = self.surrogate == "max-margin"
        c = position_weights(self.c, self.M_ or len(self.ratings_))
        if isinstance(self.subsets, str) and self.subsets == "whole":
            weights = self.ratings_ if c is None else c[::-1]
            return (whole_hinge if hinge else whole_likelihood)(self.ratings_, weights, executor)
        draw = all_slates if isinstance(self.subsets, str) else fraction_of_slates(float(self.subsets))
        if hinge:
            return slate_hinge(self.M_, c, draw, float(self.ratings_[0]), executor)
        return slate_likelihood(self.M_, c, draw, self.ties == "marginal", executor)
