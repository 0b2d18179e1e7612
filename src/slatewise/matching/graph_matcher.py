"""Match the points of two images, or any two sets, from features of pairs (Petterson, Caetano, McAuley, Yu 2009)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.executor import Executor
from slatewise.core.results import Fit, Round
from slatewise.core.rules import Rule
from slatewise.core.seeds import RandomState
from slatewise.data.row_source import RowSource
from slatewise.estimators.base import SavedEstimator
from slatewise.estimators.sklearn import check_is_fitted
from slatewise.matching.best_matching import best_matchings
from slatewise.matching.graph_edges import EdgeScores, gather_blocks
from slatewise.matching.graph_fit import FEW_ROWS, AmongFewRows, GraphLearner, Likelihood, MaxMargin
from slatewise.matching.graph_likelihood import MatchingSum, matching_weights
from slatewise.matching.graph_sampled import MOST_STEPS, SampledLikelihood
from slatewise.matching.graph_selection import choose_l2
from slatewise.matching.graph_settings import (
    check_graphs,
    check_matches,
    edge_weights,
    require_known,
    require_possible,
)
from slatewise.matching.graph_sums import MOST_EXACT_ROWS, BetheSum, ExactSum, SampledSum, draw_matchings
from slatewise.persistence.checkpoint import resumed
from slatewise.persistence.saving import card_for

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

MOST_WEIGHT = 1e12
"""Of a feature: sums over matchings add differences of weights to 1."""
MOST_SAMPLES = 100_000
"""Each is an indicator of the whole graph."""


class GraphMatcher(SavedEstimator):
    """Learn from matched graphs what makes two points match.

    ``p(y) = exp(sum_i w_{i, y(i)}) / Z``, ``w_ij = <x_ij, theta>``, over all matchings y of M rows to N columns; Z and
    the probability of every edge are summed exactly. A row stays unmatched with weight ``exp(u)``.

    Parameters
    ----------
    l2 : float or "auto"
        Weight of ``|theta|^2 / 2`` against the mean risk of a graph. "auto": by the share of wrong matches on three
        folds of graphs. Features of about unit variance make numbers near 0.01 a good start.
    surrogate : {"likelihood", "max-margin"}
        Maximum a posteriori, or the hinge of the share of wrong matches.
    expectation : {"exact", "bethe", "sample"}
        How the likelihood sums over matchings: exactly (time and memory grow as 2^M: up to about 24 points), by the
        Bethe approximation (a lower bound of log Z), or by ``n_samples`` drawn matchings per graph. Bethe's bound has
        kinks where two points are as good as alike: with a small l2 it is slow there, and may end short of ``tol``.
    points : int, None or "auto"
        Learn from parts of at most this many rows, each given the true matches of the others: convex, has the same
        parameters in the long run, and makes exact sums possible for graphs of any size. Rows that a rough fit takes
        for each other come together. None: all rows at once. "auto": all at once, and parts of 10 where exact sums
        would have more than 24 rows. Max-margin has no sums and no parts.
    unmatched : "auto" or float
        The score u of leaving a row unmatched. "auto": learnt where a target is -1; otherwise every row is matched.
    n_samples : int
        Matchings per graph that ``expectation="sample"`` draws for a gradient or for marginals.
    tol : float
        Relative certified gap at which training ends.
    max_iter : int
        Most rounds of the learner.
    callbacks : sequence of callables, optional
        Each is called with a :class:`slatewise.core.results.Round` after every round.
    checkpoint : path, optional
        Where what was computed so far is kept; fit goes on from there if the file is of the same data and settings,
        with the same bits as if it had never stopped, and removes it at the end.
    n_jobs : int, optional
        Threads over graphs; the result has the same bits with any number. -1: all cores.
    random_state : int, RandomState or Generator, optional
        Of samples and of the parts of ``points``. None is 0: every fit draws the same numbers.
        From a RandomState or Generator each fit draws one seed, ``seed_``.

    Attributes
    ----------
    coef_, unmatched_
        theta, and u (None: every row is matched).
    objective_, lower_bound_, certified_, n_iter_
        What was minimised, a bound it cannot go below, and whether both are of the objective itself (exact sums over
        the rows asked for, or max-margin) instead of an estimate. With ``points`` the objective is that of the parts. A
        certificate is about the minimum, not about the share of wrong matches: :meth:`score` tells that.
    l2_
        What was given or chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from slatewise import GraphMatcher
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(8, 5, 2))
    >>> graphs = [(one[:, None] - one[None] - 0.1 * rng.normal(size=(5, 5, 2))) ** 2 for one in points]
    >>> matcher = GraphMatcher(l2=0.01).fit(graphs, [np.arange(5)] * 8)
    >>> matcher.predict(graphs)[0]
    array([0, 1, 2, 3, 4])
    >>> bool((matcher.coef_ < 0).all()), matcher.certified_
    (True, True)
    """

    _learned: ClassVar[Mapping[str, Rule]] = {
        "coef_": rules.learned_array(1, most=MOST_WEIGHT),
        "unmatched_": rules.number(f"a number up to {MOST_WEIGHT:g}", -MOST_WEIGHT, MOST_WEIGHT) | rules.NONE,
        "objective_": rules.SEEN,
        "lower_bound_": rules.SEEN,
        "certified_": rules.BOOLEAN,
        "n_iter_": rules.count(0),
        "l2_": rules.POSITIVE,
    }
    coef_: Floats
    unmatched_: float | None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "l2": rules.POSITIVE | rules.one_of("auto"),
        "surrogate": rules.one_of("likelihood", "max-margin"),
        "expectation": rules.one_of("exact", "bethe", "sample"),
        "points": rules.count(2) | rules.one_of("auto") | rules.NONE,
        "unmatched": rules.FINITE | rules.one_of("auto"),
        "n_samples": rules.count(1, MOST_SAMPLES),
        "tol": rules.NOT_NEGATIVE,
        "max_iter": rules.count(),
        "callbacks": rules.CALLBACKS,
        "checkpoint": rules.CHECKPOINT,
        "n_jobs": rules.JOBS,
        "random_state": rules.SEED,
    }

    def __init__(
        self,
        l2: float | Literal["auto"] = 0.01,
        surrogate: Literal["likelihood", "max-margin"] = "likelihood",
        expectation: Literal["exact", "bethe", "sample"] = "exact",
        points: int | Literal["auto"] | None = "auto",
        unmatched: float | Literal["auto"] = "auto",
        n_samples: int = 100,
        tol: float = 1e-3,
        max_iter: int = 500,
        callbacks: Sequence[Callable[[Round], None]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.l2 = l2
        self.surrogate = surrogate
        self.expectation = expectation
        self.points = points
        self.unmatched = unmatched
        self.n_samples = n_samples
        self.tol = tol
        self.max_iter = max_iter
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, edge_features: Iterable[ArrayLike], matches: Iterable[ArrayLike]) -> Self:
        """Learn from graphs with known matchings.

        Parameters
        ----------
        edge_features
            One (M, N, d) array per graph; M and N may differ between graphs.
        matches
            One vector of length M per graph: the column of each row, -1 where it has none.

        Returns
        -------
        self
        """
        rules.check(self)
        if isinstance(edge_features, RowSource):
            raise ValueError(
                "edge_features: expected arrays, one per graph, found a source: rows of a table are no graphs"
            )
        graphs = check_graphs(edge_features)
        if not graphs:
            raise ValueError("edge_features: expected at least one graph, found none")
        targets = check_matches(matches, graphs)
        self._settle_seed()
        self.n_features_in_ = graphs[0].shape[2]
        learnt = self.unmatched == "auto" and any(int(target.min()) < 0 for target in targets)
        given = None if self.unmatched == "auto" else float(self.unmatched)
        scores = EdgeScores(self.n_features_in_, given, learnt)
        card = card_for(len(graphs), np.concatenate(targets), *graphs)
        with resumed(self, card.data_sha256) as tell:
            points = self._rows_at_once(graphs)
            executor = Executor.of(self.n_jobs)
            quiet, learn = self._learner(points, executor, None), self._learner(points, executor, tell)
            self.l2_ = choose_l2(graphs, targets, scores, quiet) if self.l2 == "auto" else float(self.l2)
            fit = learn(gather_blocks(graphs, targets), scores, self.l2_, None)
        self._keep(fit, scores)
        self.model_card_ = replace(
            card, objective=self.objective_, lower_bound=self.lower_bound_, converged=fit.converged
        )
        return self

    def predict(self, edge_features: Iterable[ArrayLike]) -> list[Ints]:
        """Return the best matching of each graph: the column of each row, -1 where it has none."""
        return [best_matchings(weights[None], self.unmatched_)[0] for weights in self._weights(edge_features)]

    def marginals(self, edge_features: Iterable[ArrayLike]) -> list[Floats]:
        """Return the probability of every edge, one (M, N) array per graph; what a row lacks to 1 is left unmatched."""
        sums, executor = self._sums(), Executor.of(self.n_jobs)
        return [sums(weights[None], self.unmatched_, executor)[1][0] for weights in self._weights(edge_features)]

    def log_likelihood(self, edge_features: Iterable[ArrayLike], matches: Iterable[ArrayLike]) -> Floats:
        """Return log p of one matching per graph, (n,); -inf where a row is unmatched that cannot be."""
        sums, executor = self._sums(), Executor.of(self.n_jobs)
        every = self._weights(edge_features)
        targets = check_matches(matches, [weights[:, :, None] for weights in every])
        unmatched = -np.inf if self.unmatched_ is None else self.unmatched_
        log_z = require_known([float(sums(weights[None], self.unmatched_, executor)[0][0]) for weights in every])
        pairs = zip(every, targets, strict=True)
        return np.array([matching_weights(w[None], target[None], unmatched)[0] for w, target in pairs]) - log_z

    def sample(self, edge_features: Iterable[ArrayLike], n: int = 1, random_state: int | None = None) -> list[Ints]:
        """Draw n matchings of each graph, one (n, M) array per graph; with ``random_state`` None others each time."""
        if n < 1:
            raise ValueError(f"n: expected a whole number >= 1, found {n!r}")
        rng = np.random.default_rng(random_state)
        return [draw_matchings(weights, self.unmatched_, n, rng)[1] for weights in self._weights(edge_features)]

    def score(self, edge_features: Iterable[ArrayLike], matches: Iterable[ArrayLike]) -> float:
        """Return the mean over graphs of the share of rows matched right."""
        check_is_fitted(self)
        graphs = check_graphs(edge_features, self.n_features_in_)
        targets = check_matches(matches, graphs)
        if not graphs:
            raise ValueError("edge_features: expected at least one graph, found none")
        found = self.predict(graphs)
        return float(np.mean([(one == other).mean() for one, other in zip(found, targets, strict=True)]))

    def _check_learned(self) -> None:
        """Raise ValueError unless there is one number per feature."""
        super()._check_learned()
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError(f"coef_: expected {self.n_features_in_} numbers, found shape {self.coef_.shape}")

    # --- parts -------------------------------------------------------------------------------------------------------

    def _weights(self, edge_features: Iterable[ArrayLike]) -> list[Floats]:
        check_is_fitted(self)
        graphs = check_graphs(edge_features, self.n_features_in_)
        if self.unmatched_ is None:
            require_possible(graphs)
        return [edge_weights(place, graph, self.coef_) for place, graph in enumerate(graphs)]

    def _rows_at_once(self, graphs: list[Floats]) -> int | None:
        """Return the most rows of a part; None: graphs are not cut."""
        if not isinstance(self.points, str):
            return self.points
        most = max(min(graph.shape[:2]) for graph in graphs)
        return FEW_ROWS if self.expectation == "exact" and most > MOST_EXACT_ROWS else None

    def _learner(
        self, points: int | None, executor: Executor, callback: Callable[[Round], None] | None
    ) -> GraphLearner:
        if self.surrogate == "max-margin":
            return MaxMargin(self.tol, self.max_iter, callback, executor)
        learn: GraphLearner
        if self.expectation == "sample":
            steps = min(self.max_iter, MOST_STEPS)
            learn = SampledLikelihood(self.n_samples, self.seed_, steps, executor, callback)
        else:
            learn = Likelihood(self._sums(), self.tol, self.max_iter, callback, executor)
        return learn if points is None else AmongFewRows(learn, points, self.seed_, executor)

    def _sums(self) -> MatchingSum:
        if self.expectation == "sample":
            return SampledSum(self.n_samples, np.random.default_rng(self.seed_))
        return ExactSum() if self.expectation == "exact" else BetheSum()

    def _keep(self, fit: Fit, scores: EdgeScores) -> None:
        self.coef_, self.unmatched_ = fit.params[: scores.n_features], scores.unmatched_score(fit.params)
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.certified_ = self.surrogate == "max-margin" or self.expectation == "exact"
        self.n_iter_ = fit.history[-1].round
