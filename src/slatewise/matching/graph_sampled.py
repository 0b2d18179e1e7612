"""Likelihood training by drawn matchings, for graphs whose sums nothing else can do: Newton steps on estimates.

With phi(y) = dw(y)/dtheta, and mean and covariance over matchings drawn at theta,

    g = l2 theta + sum_b omega_b (mean phi - phi(y_b)) ,   H = l2 I + sum_b omega_b cov phi ,   theta -= rate H^-1 g

H is averaged over the last ten steps or so, the rate falls as 1/t in the second half, and no step is long. The start is
the exact likelihood among few rows. There is no certificate: what is returned as the objective counts log Z by its
Bethe bound, and 0 is the only bound it cannot go below.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.replay import replayed
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.running.blas import one_blas_thread
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.bethe import BetheWarning
from slatewise.matching.graph_edges import EdgeScores, GraphBlock, feature_variance
from slatewise.matching.graph_fit import few_rows_start
from slatewise.matching.graph_likelihood import GraphLikelihood
from slatewise.matching.graph_sums import BetheSum, draw_matchings

_MEMORY = 0.9
"""Share of the old H in the new one."""
MOST_STEPS = 60
_MOST_CHANGE = 3.0
"""Of the weights of edges in a step, about."""


@dataclass(frozen=True)
class SampledLearner:
    """Maximum a posteriori by drawn matchings."""

    n_samples: int
    seed: int = 0
    n_steps: int = MOST_STEPS
    executor: Executor = ONE_THREAD
    callback: Callable[[Round], None] | None = None

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Floats | None) -> Fit:
        """Walk ``n_steps`` steps."""
        longest = _MOST_CHANGE / np.sqrt(feature_variance(blocks))
        w = few_rows_start(blocks, scores, l2, self.executor) if start is None else start
        curvature: Floats | None = None
        every = (one for block in blocks for one in zip(block.X, block.target, block.weight, strict=True))
        graphs = [_Graph(number, *one) for number, one in enumerate(every)]
        held = self.executor.place_blocks(graphs, _Shared(scores, self.n_samples, self.seed, len(graphs)))
        with one_blas_thread():
            for number in range(self.n_steps):
                _, estimate = replayed(partial(_estimate, held, number))(w)
                gradient, found = estimate[: len(w)], estimate[len(w) :].reshape(len(w), -1)
                curvature = found if curvature is None else _MEMORY * curvature + (1.0 - _MEMORY) * found
                step = np.linalg.solve(curvature + l2 * np.eye(len(w)), gradient + l2 * w)
                rate = 1.0 / max(1, number + 1 - self.n_steps // 2)
                w = w - step * min(rate, longest / max(float(np.linalg.norm(step)), 1e-300))
            objective = _bethe_value(blocks, scores, w, self.executor) + 0.5 * l2 * float(w @ w)
        last = Round(self.n_steps, objective, 0.0)
        if self.callback is not None:
            self.callback(last)
        return Fit(w, last.objective, last.lower_bound, False, (last,))


class _Graph(NamedTuple):
    number: int
    X: Floats
    target: Ints
    weight: float


class _Shared(NamedTuple):
    scores: EdgeScores
    n_samples: int
    seed: int
    n_graphs: int


class _Point(NamedTuple):
    """Parameters, and the step they were reached at."""

    shared: _Shared
    at: tuple[int, Floats]


def _estimate(held: PlacedBlocks[_Shared, _Graph], step: int, w: Floats) -> tuple[float, Floats]:
    """Return the likelihood's gradient and then its curvature, as drawn; there is no value."""
    return 0.0, held.sum(_SUM, (step, w))


def _drawn(point: _Point, graph: _Graph) -> Floats:
    """Return what one graph adds to the gradient and the curvature; it draws its own numbers at every step."""
    (scores, n_samples, seed, n_graphs), (step, w) = point
    own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(step * n_graphs + graph.number,)))
    weights = graph.X @ w[: scores.n_features]
    drawn = draw_matchings(weights, scores.unmatched_score(w), n_samples, own)[1]
    phi = scores.matching_features(graph.X, np.vstack([graph.target, drawn]))
    mean = phi[1:].mean(axis=0)
    spread = phi[1:] - mean
    return np.append(graph.weight * (mean - phi[0]), graph.weight / n_samples * (spread.T @ spread))


_SUM: BlockSum[_Shared, tuple[int, Floats], _Point, _Graph, Floats] = BlockSum(_Point, _drawn, add)


def _bethe_value(blocks: tuple[GraphBlock, ...], scores: EdgeScores, w: Floats, executor: Executor) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetheWarning)  # it is an estimate, and said to be one
        return GraphLikelihood(blocks, scores, BetheSum(), executor).value_and_grad(w)[0]
