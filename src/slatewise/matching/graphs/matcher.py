"""Match the points of two images, or any two sets, from features of pairs (Petterson, Caetano, McAuley, Yu 2009)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import LARGEST, numbers, require_in_range
from slatewise.core.declarations import JOBS_TEXT, expanded, learned, param, resolved, seed_text, settings
from slatewise.core.numerics.result import Fit
from slatewise.core.running.executor import Executor
from slatewise.core.seeds import RandomState
from slatewise.data.row_source import RowSource
from slatewise.estimators.base import Estimator
from slatewise.estimators.sklearn import check_is_fitted
from slatewise.matching.graphs.edges import EdgeScores, gather_blocks
from slatewise.matching.graphs.fit import FEW_ROWS, GraphLearner, Likelihood, choose_l2
from slatewise.matching.graphs.inference import (
    INFERENCE,
    MOST_EXACT_ROWS,
    Inference,
    MatchingSum,
    Sample,
    SampledSum,
    best_matchings,
    bethe_sum,
    draw_matchings,
    exact_sum,
)
from slatewise.matching.graphs.risks import matching_weights
from slatewise.persistence.checkpoint import Callbacks, Path, resumed
from slatewise.persistence.saving import card_for

MOST_WEIGHT = 1e12
"""Of a feature: sums over matchings add differences of weights to 1."""


class GraphMatcher(Estimator):
    """Learn from matched graphs what makes two points match.

    ``p(y) = exp(sum_i w_{i, y(i)}) / Z``, ``w_ij = <x_ij, theta>``, over all matchings y of M rows to N columns; Z and
    the probability of every edge are summed exactly. A row stays unmatched with weight ``exp(u)``.

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

    surrogate: str | Likelihood = param(
        settings(Likelihood) | rules.one_of("max-margin"),
        """Maximum a posteriori (:class:`slatewise.matching.Likelihood`), or the hinge of the share of wrong matches,
        which needs no sums over matchings.""",
        default="likelihood",
        kw_only=False,
    )
    l2: float | Literal["auto"] = param(
        rules.POSITIVE | rules.one_of("auto"),
        """Weight of ``|theta|^2 / 2`` against the mean risk of a graph. "auto": by the share of wrong matches on three
        folds of graphs. Features of about unit variance make numbers near 0.01 a good start.""",
        default=0.01,
    )
    unmatched: float | Literal["auto"] = param(
        rules.FINITE | rules.one_of("auto"),
        """The score u of leaving a row unmatched. "auto": learned if a target is -1; otherwise every row is
        matched.""",
        default="auto",
    )
    tol: float = param(rules.NOT_NEGATIVE, "Relative certified gap at which training ends.", default=1e-3)
    max_iter: int = param(rules.count(), "The maximum number of rounds of the learner.", default=500)
    n_jobs: int | None = param(rules.JOBS, JOBS_TEXT, default=None, saved=False)
    random_state: RandomState = param(
        rules.SEED, seed_text("Of drawn matchings and of the parts of ``part_size``."), default=None
    )

    coef_: Floats = learned(
        rules.learned_array(1, most=MOST_WEIGHT), "theta, one number per feature.", shape=("n_features_in_",)
    )
    unmatched_: float = learned(
        rules.number(f"a number up to {MOST_WEIGHT:g}", -MOST_WEIGHT, MOST_WEIGHT),
        "u; a model that matches every row has no such attribute.",
        optional=True,
    )
    objective_: float = learned(rules.ANY_NUMBER, "The objective of ``coef_``; with parts, that of the parts.")
    lower_bound_: float = learned(rules.ANY_NUMBER, "A bound that the objective cannot go below.")
    certified_: bool = learned(
        rules.BOOLEAN,
        """Whether both are of the objective itself (exact sums, or max-margin) instead of an estimate. A certificate is
        about the minimum, not about the share of wrong matches, which :meth:`score` measures.""",
    )
    n_iter_: int = learned(rules.count(0), "The number of rounds.")
    l2_: float = learned(rules.POSITIVE, "The given or chosen l2.")

    def fit(
        self,
        edge_features: Iterable[ArrayLike],
        matches: Iterable[ArrayLike],
        *,
        callbacks: Callbacks = None,
        checkpoint: Path = None,
    ) -> Self:
        """Learn from graphs with known matchings.

        Parameters
        ----------
        edge_features
            One (M, N, d) array per graph; M and N may differ between graphs.
        matches
            One vector of length M per graph: the column of each row, -1 where it has none.
        callbacks
            Functions to call with a :class:`slatewise.core.numerics.result.Round` after every round.
        checkpoint
            A file that keeps what was computed so far. If it is there, and of the same data and settings, fit goes on
            from it and ends with the same bits as if it had never stopped. At the end the file is removed.

        Returns
        -------
        self
        """
        rules.check(self)
        if isinstance(edge_features, RowSource):
            raise ValueError(
                "edge_features: expected arrays, one per graph, found a source: rows of a table are no graphs"
            )
        graphs = _check_graphs(edge_features)
        if not graphs:
            raise ValueError("edge_features: expected at least one graph, found none")
        targets = _check_matches(matches, graphs)
        self._settle_seed()
        self.n_features_in_ = graphs[0].shape[2]
        learns_unmatched = self.unmatched == "auto" and any(int(target.min()) < 0 for target in targets)
        given = None if self.unmatched == "auto" else float(self.unmatched)
        scores = EdgeScores(self.n_features_in_, given, learns_unmatched)
        card = card_for(len(graphs), np.concatenate(targets), *graphs)
        with resumed(self, card.data_sha256, callbacks, checkpoint) as tell:
            learner = self._learner(most_rows=max(min(graph.shape[:2]) for graph in graphs))
            self.l2_ = choose_l2(graphs, targets, scores, learner) if self.l2 == "auto" else float(self.l2)
            fit = learner.fit(gather_blocks(graphs, targets), scores, self.l2_, callback=tell)
        self._keep(fit, scores)
        self.model_card_ = replace(
            card, objective=self.objective_, lower_bound=self.lower_bound_, converged=fit.converged
        )
        return self

    def predict(self, edge_features: Iterable[ArrayLike]) -> list[Ints]:
        """Return the best matching of each graph: the column of each row, -1 where it has none."""
        return [best_matchings(weights[None], self._unmatched_score())[0] for weights in self._weights(edge_features)]

    def marginals(self, edge_features: Iterable[ArrayLike], *, inference: Inference | None = None) -> list[Floats]:
        """Return the probability of every edge, one (M, N) array per graph; what a row lacks to 1 is left unmatched.

        Parameters
        ----------
        edge_features
            As for :meth:`fit`.
        inference
            How to sum over matchings, as for :class:`slatewise.matching.Likelihood`. None: as in training; exactly
            after max-margin.
        """
        every, sum_matchings, executor = self._weights(edge_features), self._sum(inference), Executor.of(self.n_jobs)
        return [sum_matchings(weights[None], self._unmatched_score(), executor)[1][0] for weights in every]

    def log_likelihood(
        self, edge_features: Iterable[ArrayLike], matches: Iterable[ArrayLike], *, inference: Inference | None = None
    ) -> Floats:
        """Return log p of one matching per graph, (n,); -inf where a row is unmatched that cannot be.

        Parameters
        ----------
        edge_features, matches
            As for :meth:`fit`.
        inference
            As for :meth:`marginals`.
        """
        every, sum_matchings, executor = self._weights(edge_features), self._sum(inference), Executor.of(self.n_jobs)
        targets = _check_matches(matches, [weights[:, :, None] for weights in every])
        score = self._unmatched_score()
        log_z = np.array([float(sum_matchings(weights[None], score, executor)[0][0]) for weights in every])
        if np.isnan(log_z).any():  # a chain of swaps gives no log Z
            raise ValueError("inference: expected 'exact' or 'bethe' for a likelihood of large graphs, found 'sample'")
        alone = -np.inf if score is None else score
        pairs = zip(every, targets, strict=True)
        return np.array([matching_weights(w[None], target[None], alone)[0] for w, target in pairs]) - log_z

    def sample(self, edge_features: Iterable[ArrayLike], n: int = 1, random_state: int | None = None) -> list[Ints]:
        """Draw n matchings of each graph, one (n, M) array per graph; ``random_state=None`` draws others each time."""
        if n < 1:
            raise ValueError(f"n: expected a whole number >= 1, found {n!r}")
        rng, every = np.random.default_rng(random_state), self._weights(edge_features)
        return [draw_matchings(weights, self._unmatched_score(), n, rng)[1] for weights in every]

    def score(self, edge_features: Iterable[ArrayLike], matches: Iterable[ArrayLike]) -> float:
        """Return the mean over graphs of the share of rows that are matched right."""
        check_is_fitted(self)
        graphs = _check_graphs(edge_features, self.n_features_in_)
        targets = _check_matches(matches, graphs)
        if not graphs:
            raise ValueError("edge_features: expected at least one graph, found none")
        found = self.predict(graphs)
        return float(np.mean([(one == other).mean() for one, other in zip(found, targets, strict=True)]))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _weights(self, edge_features: Iterable[ArrayLike]) -> list[Floats]:
        """Return ``w = <x, theta>`` of each graph whose rows can all be matched, and whose sums stay in range."""
        check_is_fitted(self)
        every: list[Floats] = []
        for number, graph in enumerate(_check_graphs(edge_features, self.n_features_in_)):
            name, (n_rows, n_columns, _) = f"edge_features[{number}]", graph.shape
            if self._unmatched_score() is None and n_rows > n_columns:
                raise ValueError(
                    f"{name}: expected no more rows than columns, because every row has to be matched, "
                    f"found {n_rows} and {n_columns}; with unmatched= a number rows may stay unmatched"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                weights = graph @ self.coef_
            largest = float(np.abs(weights).max())
            if not largest <= LARGEST:
                raise ValueError(f"{name}: expected weights <x, theta> of at most {LARGEST:g}, found {largest}")
            every.append(weights)
        return every

    def _unmatched_score(self) -> float | None:
        return getattr(self, "unmatched_", None)

    def _likelihood(self) -> Likelihood | None:
        """Return how the likelihood is trained; None for max-margin."""
        surrogate = resolved(self, "surrogate")
        return surrogate if isinstance(surrogate, Likelihood) else None

    def _sum(self, inference: Inference | None) -> MatchingSum:
        """Return the sum over matchings that ``inference`` stands for; None: that of training."""
        if inference is None:
            likelihood = self._likelihood()
            inference = "exact" if likelihood is None else likelihood.inference
        INFERENCE.check("inference", inference)
        sample = expanded((Sample,), inference)
        if isinstance(sample, Sample):
            return SampledSum(sample.n_samples, np.random.default_rng(self.seed_))
        return exact_sum if inference == "exact" else bethe_sum

    def _learner(self, most_rows: int) -> GraphLearner:
        """Return the learner for graphs of at most ``most_rows`` on their smaller side."""
        likelihood, executor = self._likelihood(), Executor.of(self.n_jobs)
        if likelihood is None:
            return GraphLearner(None, None, self.tol, self.max_iter, self.seed_, executor)
        part_size = likelihood.part_size
        if part_size == "auto":
            part_size = FEW_ROWS if likelihood.inference == "exact" and most_rows > MOST_EXACT_ROWS else None
        return GraphLearner(self._sum(None), part_size, self.tol, self.max_iter, self.seed_, executor)

    def _keep(self, fit: Fit, scores: EdgeScores) -> None:
        likelihood, unmatched = self._likelihood(), scores.unmatched_score(fit.params)
        vars(self).pop("unmatched_", None)  # of an earlier fit
        if unmatched is not None:
            self.unmatched_ = unmatched
        self.coef_ = fit.params[: scores.n_features]
        self.objective_, self.lower_bound_ = float(fit.objective), float(fit.lower_bound)
        self.certified_ = likelihood is None or likelihood.inference == "exact"
        self.n_iter_ = fit.history[-1].round


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_graphs(edge_features: Iterable[ArrayLike], n_features: int | None = None) -> list[Floats]:
    """Return contiguous (M, N, d) arrays of finite numbers, with the same d in all."""
    graphs: list[Floats] = []
    for number, given in enumerate(edge_features):
        name = f"edge_features[{number}]"
        graph = numbers(name, given, 3).astype(np.float64)
        if 0 in graph.shape:
            raise ValueError(f"{name}: expected at least one row, one column and one feature, found {graph.shape}")
        n_features = graph.shape[2] if n_features is None else n_features
        if graph.shape[2] != n_features:
            raise ValueError(f"{name}: expected {n_features} features per edge, found {graph.shape[2]}")
        if not np.isfinite(graph).all():
            row, column, feature = np.argwhere(~np.isfinite(graph))[0].tolist()
            found = graph[row, column, feature]
            raise ValueError(f"{name}: expected finite numbers, found {found} at edge ({row}, {column})")
        require_in_range(name, graph)
        graphs.append(graph)
    return graphs


def _check_matches(matches: Iterable[ArrayLike], graphs: list[Floats]) -> list[Ints]:
    """Return one column per row, -1 where it has none; no column twice."""
    given = list(matches)
    if len(given) != len(graphs):
        raise ValueError(f"matches: expected one matching per graph, {len(graphs)}, found {len(given)}")
    targets: list[Ints] = []
    for number, (graph, match) in enumerate(zip(graphs, given, strict=True)):
        name, (n_rows, n_columns, _) = f"matches[{number}]", graph.shape
        columns: NDArray[Any] = np.asarray(match)
        if columns.shape != (n_rows,):
            raise ValueError(f"{name}: expected one column per row, shape ({n_rows},), found shape {columns.shape}")
        if columns.dtype.kind not in "iu":
            raise ValueError(f"{name}: expected whole numbers, found dtype {columns.dtype}")
        wrong = columns[(columns < -1) | (columns >= n_columns)]
        if len(wrong):
            raise ValueError(f"{name}: expected columns from 0 to {n_columns - 1}, or -1 for none, found {wrong[0]}")
        taken = np.bincount(columns[columns >= 0].astype(np.int64), minlength=n_columns)
        if taken.max() > 1:
            column, n_times = taken.argmax(), taken.max()
            raise ValueError(f"{name}: expected each column at most once, found {column} for {n_times} rows")
        targets.append(columns.astype(np.int64))
    return targets
