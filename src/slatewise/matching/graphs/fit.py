"""Learn to match graphs:  P(theta) = l2/2 |theta|^2 + risk(theta) , the risk a likelihood or a hinge.

*Likelihood*: L-BFGS, with ``P(theta) - |grad P(theta)|^2 / (2 l2)`` as the bound no parameters go below. An evaluation
of large graphs is expensive, so it stops as soon as the bound is close enough, and starts where the same likelihood
among few rows ends: a thousand times cheaper, and nearly there. Among few rows, a rough fit of random parts shows which
rows are taken for each other, and these come together in the final parts.

*Likelihood by samples*, for graphs whose sums nothing else can do: Newton steps on estimates. With phi(y) =
dw(y)/dtheta, and mean and covariance over matchings sampled at theta,

    g = l2 theta + sum_b omega_b (mean phi - phi(y_b)) ,   H = l2 I + sum_b omega_b cov phi ,   theta -= rate H^-1 g

H is averaged over the last ten steps or so, the rate falls as 1/t in the second half, and no step is long. There is no
certificate: what is returned as the objective counts log Z by its Bethe bound, and 0 is the only bound it cannot go
below.

*Max-margin*: cutting planes.

The strength l2 is chosen by validation: the one whose parameters match held-out graphs best.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Literal, NamedTuple

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats, Ints
from slatewise.core.declarations import Settings, param
from slatewise.core.numerics.bundle import ActiveCuts, with_ridge
from slatewise.core.numerics.lbfgs import minimize
from slatewise.core.numerics.replay import replayed
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.numerics.strengths import search_path
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.graphs.edges import EdgeScores, GraphBlock, feature_variance, gather_blocks
from slatewise.matching.graphs.inference import (
    INFERENCE,
    Inference,
    MatchingSum,
    SampledSum,
    best_matchings,
    bethe_sum,
    draw_matchings,
    exact_sum,
)
from slatewise.matching.graphs.risks import among_few_rows, confusion, graph_hinge, graph_likelihood
from slatewise.matching.sums.bethe import BetheWarning

FEW_ROWS = 10
"""Graphs with more rows start from their likelihood among this many."""
START_TOL = 1e-2
PARTITIONS = 4
"""How often ``part_size`` cuts a graph into parts."""
ROUGH_FITS = 2
"""The first of random parts, the second of parts whose rows the first takes for each other."""
MOST_STEPS = 60
"""Newton steps on samples."""
_MEMORY = 0.9
"""Share of the old H in the new one."""
_MOST_CHANGE = 3.0
"""Of the weights of edges in a step, about."""
STRENGTHS = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""Tried in this order, times the variance of the features: each starts where the one before ended."""
_FOLDS = 3


class Likelihood(Settings, shorthand="likelihood"):
    """Learn by maximum a posteriori: the likelihood of the true matching among all matchings."""

    inference: Inference = param(
        INFERENCE,
        """How to sum over matchings. "exact": time and memory grow as 2^M, up to about 24 points. "bethe": by the Bethe
        approximation, a lower bound of log Z. It has kinks where two points could as well be exchanged: there a small
        l2 makes it slow, and it may end short of ``tol``. "sample", or :class:`slatewise.matching.Sample`: by random
        matchings, in at most 60 Newton steps that ignore ``tol`` and give no certificate.""",
        default="exact",
    )
    part_size: int | Literal["auto"] | None = param(
        rules.count(2) | rules.one_of("auto") | rules.NONE,
        """Learn from parts of at most this many rows, each given the true matches of the others: convex, has the same
        parameters in the long run, and makes exact sums possible for graphs of any size. Rows that a rough fit takes
        for each other come together. None: all rows at once. "auto": all rows at once, but parts of 10 if exact sums
        would have more than 24 rows.""",
        default="auto",
    )


@dataclass(frozen=True, eq=False)
class GraphLearner:
    """Learn from graphs, by the likelihood or max-margin."""

    sum_matchings: MatchingSum | None
    """Of the likelihood; None: max-margin."""
    part_size: int | None = None
    """The likelihood learns from parts of at most this many rows; None: from all rows at once."""
    tol: float = 1e-3
    max_iter: int = 500
    seed: int = 0
    executor: Executor = ONE_THREAD

    def fit(
        self,
        blocks: tuple[GraphBlock, ...],
        scores: EdgeScores,
        l2: float,
        start: Floats | None = None,
        callback: Callable[[Round], None] | None = None,
    ) -> Fit:
        """Minimize P to a relative certified gap of ``tol``; by samples there is none. Max-margin needs no start."""
        if self.sum_matchings is None:
            hinge, cuts = graph_hinge(blocks, scores, self.executor), ActiveCuts(np.ones(scores.n_params))
            return with_ridge(hinge, cuts, l2, tol=self.tol, max_iter=self.max_iter, callback=callback)
        if self.part_size is not None and max(block.X.shape[1] for block in blocks) > self.part_size:
            blocks, start = self._parts(blocks, scores, l2, self.part_size, start)
        start = few_rows_start(blocks, scores, l2, self.executor) if start is None else start
        if isinstance(self.sum_matchings, SampledSum):
            return self._fit_by_samples(blocks, scores, l2, start, self.sum_matchings.n_samples, callback)
        objective = graph_likelihood(blocks, scores, self.sum_matchings, self.executor)
        return minimize(objective, l2, start, tol=self.tol, max_iter=self.max_iter, callback=callback)

    def _parts(
        self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, part_size: int, start: Floats | None
    ) -> tuple[tuple[GraphBlock, ...], Floats]:
        """Cut graphs into parts whose rows are taken for each other, and return where rough fits of them ended."""
        rng = np.random.default_rng(self.seed)
        start = np.zeros(scores.n_params) if start is None else start
        confused: list[Floats] | None = None
        for _ in range(ROUGH_FITS):
            rough = among_few_rows(blocks, min(part_size, FEW_ROWS), PARTITIONS, rng, confused)
            start = minimize(graph_likelihood(rough, scores, exact_sum, self.executor), l2, start, tol=START_TOL).params
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BetheWarning)  # a rough idea of what is confused is enough
                confused = confusion(blocks, scores, start, bethe_sum, self.executor)
        return among_few_rows(blocks, part_size, PARTITIONS, rng, confused), start

    def _fit_by_samples(
        self,
        blocks: tuple[GraphBlock, ...],
        scores: EdgeScores,
        l2: float,
        w: Floats,
        n_samples: int,
        callback: Callable[[Round], None] | None,
    ) -> Fit:
        """Take Newton steps on estimates; the objective is a Bethe estimate at their end."""
        n_steps, longest = min(self.max_iter, MOST_STEPS), _MOST_CHANGE / np.sqrt(feature_variance(blocks))
        every = (graph for block in blocks for graph in zip(block.X, block.target, block.weight, strict=True))
        graphs = [_Graph(number, *graph) for number, graph in enumerate(every)]
        held = self.executor.place_blocks(graphs, _Samples(scores, n_samples, self.seed, len(graphs)))
        curvature: Floats | None = None
        with one_blas_thread():
            for number in range(n_steps):
                _, estimate = replayed(partial(_estimate, held, number))(w)
                gradient, found = estimate[: len(w)], estimate[len(w) :].reshape(len(w), -1)
                curvature = found if curvature is None else _MEMORY * curvature + (1.0 - _MEMORY) * found
                step = np.linalg.solve(curvature + l2 * np.eye(len(w)), gradient + l2 * w)
                rate = 1.0 / max(1, number + 1 - n_steps // 2)
                w = w - step * min(rate, longest / max(float(np.linalg.norm(step)), 1e-300))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BetheWarning)  # the objective is an estimate anyway
                value, _ = graph_likelihood(blocks, scores, bethe_sum, self.executor).value_and_grad(w)
        last = Round(n_steps, value + 0.5 * l2 * float(w @ w), 0.0)
        if callback is not None:
            callback(last)
        return Fit(w, last.objective, last.lower_bound, False, (last,))


def few_rows_start(
    blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, executor: Executor = ONE_THREAD
) -> Floats:
    """Return where the exact likelihood among few rows ends; 0 where graphs have no more rows than that."""
    start = np.zeros(scores.n_params)
    if max(block.X.shape[1] for block in blocks) <= FEW_ROWS:
        return start
    fewer = among_few_rows(blocks, FEW_ROWS, 1, np.random.default_rng(0))
    return minimize(graph_likelihood(fewer, scores, exact_sum, executor), l2, start, tol=START_TOL).params


# --- estimates by samples ---------------------------------------------------------------------------------------------


class _Graph(NamedTuple):
    number: int
    X: Floats
    target: Ints
    weight: float


class _Samples(NamedTuple):
    scores: EdgeScores
    n_samples: int
    seed: int
    n_graphs: int


class _At(NamedTuple):
    """The number of a step, and the parameters it starts from."""

    samples: _Samples
    step: tuple[int, Floats]


def _estimate(held: PlacedBlocks[_Samples, _Graph], number: int, w: Floats) -> tuple[float, Floats]:
    """Return the likelihood's gradient and then its curvature, as sampled; there is no value."""
    return 0.0, held.sum(_ESTIMATE, (number, w))


def _estimate_of(at: _At, graph: _Graph) -> Floats:
    """Return what one graph adds to the gradient and the curvature; every step and graph has its own random numbers."""
    (scores, n_samples, seed, n_graphs), (step, w) = at
    own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(step * n_graphs + graph.number,)))
    weights = graph.X @ w[: scores.n_features]
    drawn = draw_matchings(weights, scores.unmatched_score(w), n_samples, own)[1]
    phi = scores.matching_features(graph.X, np.vstack([graph.target, drawn]))
    mean = phi[1:].mean(axis=0)
    spread = phi[1:] - mean
    return np.append(graph.weight * (mean - phi[0]), graph.weight / n_samples * (spread.T @ spread))


_ESTIMATE: BlockSum[_Samples, tuple[int, Floats], _At, _Graph, Floats] = BlockSum(_At, _estimate_of, add)


# --- the strength -----------------------------------------------------------------------------------------------------


def choose_l2(
    edge_features: Sequence[Floats], matches: Sequence[Ints], scores: EdgeScores, learner: GraphLearner
) -> float:
    """Return the strength with the fewest wrong matches over three folds of graphs; the larger one among equals."""
    unit = feature_variance(gather_blocks(edge_features, matches))
    n_graphs = len(edge_features)
    if n_graphs < 2:
        raise ValueError(f"l2: expected a number where there is one graph to learn from, found 'auto' and {n_graphs}")

    def some(chosen: Iterable[int]) -> tuple[GraphBlock, ...]:
        graphs = list(chosen)
        return gather_blocks([edge_features[number] for number in graphs], [matches[number] for number in graphs])

    folds = [range(fold, n_graphs, _FOLDS) for fold in range(min(_FOLDS, n_graphs))]
    inner = [some(number for number in range(n_graphs) if number not in fold) for fold in folds]
    held_out = [some(fold) for fold in folds]
    path = search_path(
        [strength * unit for strength in STRENGTHS],
        len(folds),
        lambda fold, l2, start: learner.fit(inner[fold], scores, l2, start).params,
        lambda fold, params: len(folds[fold]) * mean_error(held_out[fold], scores, params),
    )
    return min(path, key=lambda step: step.loss).strength


def mean_error(blocks: Sequence[GraphBlock], scores: EdgeScores, params: Floats) -> float:
    """Return the weighted mean over graphs of the share of rows matched wrongly.

    Columns are put in random order first: where weights are equal an assignment takes the diagonal, which in many data
    sets is the true matching.
    """
    unmatched = scores.unmatched_score(params)
    rng = np.random.default_rng(0)
    total = 0.0
    for block in blocks:
        order = rng.permutation(block.X.shape[2])
        found = best_matchings(scores.edges(params, block)[:, :, order], unmatched)
        columns = np.where(found >= 0, order[found], found)
        total += float(block.weight @ (columns != block.target).mean(axis=1))
    return total
