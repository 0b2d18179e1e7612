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

from slatewise.core.executor import ONE_THREAD, Executor, one_blas_thread
from slatewise.core.oracle_log import answered
from slatewise.core.results import Fit, Params, Round
from slatewise.matching.bethe import BetheWarning
from slatewise.matching.graph_edges import EdgeScores, Floats, GraphBlock, Ints, feature_variance
from slatewise.matching.graph_fit import few_rows_start
from slatewise.matching.graph_likelihood import GraphLikelihood
from slatewise.matching.graph_sums import BetheSum, draw_matchings

_MEMORY = 0.9
"""Share of the old H in the new one."""
MOST_STEPS = 60
_MOST_CHANGE = 3.0
"""Of the weights of edges in a step, about."""


@dataclass(frozen=True)
class SampledLikelihood:
    """Maximum a posteriori by drawn matchings."""

    n_samples: int
    seed: int = 0
    n_steps: int = MOST_STEPS
    executor: Executor = ONE_THREAD
    callback: Callable[[Round], None] | None = None

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Params | None) -> Fit:
        """Walk ``n_steps`` steps."""
        rng = np.random.default_rng(self.seed)
        longest = _MOST_CHANGE / np.sqrt(feature_variance(blocks))
        w = few_rows_start(blocks, scores, l2, self.executor) if start is None else start
        curvature: Floats | None = None
        graphs = [_Graph(*one) for block in blocks for one in zip(block.X, block.target, block.weight, strict=True)]
        with one_blas_thread():
            for number in range(self.n_steps):
                streams = rng.spawn(len(graphs))  # also where the answer is known, so that the next step draws its own
                _, estimate = answered(partial(self._estimate, graphs, streams, scores))(w)
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

    def _estimate(
        self, graphs: list[_Graph], streams: list[np.random.Generator], scores: EdgeScores, w: Params
    ) -> tuple[float, Params]:
        """Return the likelihood's gradient and then its curvature, as drawn; there is no value."""
        drawing = _Drawing(scores, w, self.n_samples)
        return 0.0, self.executor.sum_blocks(_drawn, drawing, list(zip(graphs, streams, strict=True)), add)


class _Graph(NamedTuple):
    X: Floats
    target: Ints
    weight: float


class _Drawing(NamedTuple):
    scores: EdgeScores
    w: Params
    n_samples: int


def _drawn(drawing: _Drawing, block: tuple[_Graph, np.random.Generator]) -> Params:
    """Return what one graph adds to the gradient and the curvature."""
    (X, target, weight), own = block
    scores, w, n_samples = drawing
    drawn = draw_matchings(X @ w[: scores.n_features], scores.unmatched_score(w), n_samples, own)[1]
    phi = scores.matching_features(X, np.vstack([target, drawn]))
    mean = phi[1:].mean(axis=0)
    spread = phi[1:] - mean
    return np.append(weight * (mean - phi[0]), weight / n_samples * (spread.T @ spread))


def _bethe_value(blocks: tuple[GraphBlock, ...], scores: EdgeScores, w: Params, executor: Executor) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetheWarning)  # it is an estimate, and said to be one
        return GraphLikelihood(blocks, scores, BetheSum(executor)).value_and_grad(w)[0]
