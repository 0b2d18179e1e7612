"""Learn to match graphs:  P(theta) = l2/2 |theta|^2 + risk(theta) , the risk a likelihood or a hinge.

*Likelihood*: L-BFGS, with ``P(theta) - |grad P(theta)|^2 / (2 l2)`` as the bound no parameters go below. An evaluation
of large graphs is dear, so it stops as soon as the bound is close enough, and starts where the same likelihood among
few rows ends: a thousand times cheaper, and nearly there. Among few rows, a rough fit of random parts says which rows
are taken for each other, and these come together in the parts that count.

*Max-margin*: cutting planes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slatewise.core.active_cuts import ActiveCuts
from slatewise.core.bundle import with_ridge
from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.core.lbfgs import minimise
from slatewise.core.results import Fit, Params, Round
from slatewise.matching.bethe import BetheWarning
from slatewise.matching.graph_edges import EdgeScores, Floats, GraphBlock
from slatewise.matching.graph_hinge import GraphHinge
from slatewise.matching.graph_likelihood import GraphLikelihood, MatchingSum, among_few_rows, confusion
from slatewise.matching.graph_sums import BetheSum, ExactSum

FEW_ROWS = 10
"""Graphs with more rows start from their likelihood among this many."""
START_TOL = 1e-2
PARTITIONS = 4
"""How often ``points`` cuts a graph into parts."""
ROUGH_FITS = 2
"""The first of random parts, the second of those that the first says are confused."""


class GraphLearner(Protocol):
    """A way to learn from graphs."""

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Params | None) -> Fit:
        """Return parameters with what is known about their objective."""
        ...


@dataclass(frozen=True)
class Likelihood:
    """Maximum a posteriori, with sums over matchings as given."""

    sum_matchings: MatchingSum
    tol: float = 1e-3
    max_iter: int = 500
    callback: Callable[[Round], None] | None = None
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Params | None) -> Fit:
        """Minimise P to a relative certified gap of ``tol``."""
        start = few_rows_start(blocks, scores, l2, self.executor) if start is None else start
        objective = GraphLikelihood(blocks, scores, self.sum_matchings, self.executor)
        return minimise(objective, l2, start, tol=self.tol, max_iter=self.max_iter, callback=self.callback)


def few_rows_start(
    blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, executor: Executor = ONE_THREAD
) -> Params:
    """Return where the exact likelihood among few rows ends; 0 where graphs have no more rows than that."""
    start = np.zeros(scores.n_params)
    if max(block.X.shape[1] for block in blocks) <= FEW_ROWS:
        return start
    fewer = among_few_rows(blocks, FEW_ROWS, 1, np.random.default_rng(0))
    return minimise(GraphLikelihood(fewer, scores, ExactSum(), executor), l2, start, tol=START_TOL).params


@dataclass(frozen=True)
class AmongFewRows:
    """Another learner, on parts of the graphs whose rows are taken for each other."""

    learn: GraphLearner
    points: int
    """Most rows of a part."""
    seed: int = 0
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Params | None) -> Fit:
        """Cut the graphs, always alike, and learn from the parts."""
        rng = np.random.default_rng(self.seed)
        if max(block.X.shape[1] for block in blocks) <= self.points:
            return self.learn(blocks, scores, l2, start)
        start = np.zeros(scores.n_params) if start is None else start
        confused: list[Floats] | None = None
        for _ in range(ROUGH_FITS):
            rough = among_few_rows(blocks, min(self.points, FEW_ROWS), PARTITIONS, rng, confused)
            likelihood = GraphLikelihood(rough, scores, ExactSum(), self.executor)
            start = minimise(likelihood, l2, start, tol=START_TOL).params
            confused = _doubts(blocks, scores, start, self.executor)
        parts = among_few_rows(blocks, self.points, PARTITIONS, rng, confused)
        return self.learn(parts, scores, l2, start)


def _doubts(blocks: tuple[GraphBlock, ...], scores: EdgeScores, params: Params, executor: Executor) -> list[Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetheWarning)  # any idea of what is confused will do
        return confusion(blocks, scores, params, BetheSum(), executor)


@dataclass(frozen=True)
class MaxMargin:
    """The hinge of the share of wrong matches."""

    tol: float = 1e-3
    max_iter: int = 500
    callback: Callable[[Round], None] | None = None
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Params | None) -> Fit:
        """Minimise P to a relative certified gap of ``tol``; a cutting plane has no use for a start."""
        del start
        hinge, cuts = GraphHinge(blocks, scores, self.executor), ActiveCuts(np.ones(scores.n_params))
        return with_ridge(hinge, cuts, l2, tol=self.tol, max_iter=self.max_iter, callback=self.callback)
