"""Learn to match graphs:  P(theta) = l2/2 |theta|^2 + risk(theta) , the risk a likelihood or a hinge.

*Likelihood*: L-BFGS, with ``P(theta) - |grad P(theta)|^2 / (2 l2)`` as the bound no parameters go below. An evaluation
of large graphs is expensive, so it stops as soon as the bound is close enough, and starts where the same likelihood
among few rows ends: a thousand times cheaper, and nearly there. Among few rows, a rough fit of random parts shows which
rows are taken for each other, and these come together in the final parts.

*Max-margin*: cutting planes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Floats
from slatewise.core.declarations import Settings, param
from slatewise.core.numerics.bundle import ActiveCuts, with_ridge
from slatewise.core.numerics.lbfgs import minimise
from slatewise.core.numerics.result import Fit, Round
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.bethe import BetheWarning
from slatewise.matching.graph_edges import EdgeScores, GraphBlock
from slatewise.matching.graph_hinge import GraphHinge
from slatewise.matching.graph_likelihood import GraphLikelihood, MatchingSum, among_few_rows, confusion
from slatewise.matching.graph_sums import INFERENCE, BetheSum, ExactSum, Inference

FEW_ROWS = 10
"""Graphs with more rows start from their likelihood among this many."""
START_TOL = 1e-2
PARTITIONS = 4
"""How often ``part_size`` cuts a graph into parts."""
ROUGH_FITS = 2
"""The first of random parts, the second of parts whose rows the first takes for each other."""


class Likelihood(Settings, shorthand="likelihood"):
    """Learn by maximum a posteriori: the likelihood of the true matching among all matchings."""

    inference: Inference = param(
        INFERENCE,
        """How to sum over matchings. "exact": time and memory grow as 2^M, up to about 24 points. "bethe": by the Bethe
        approximation, a lower bound of log Z. It has kinks where two points could as well be exchanged: there a small
        l2 makes it slow, and it may end short of ``tol``. "sample", or :class:`slatewise.matching.Sample`: by drawn
        matchings, in at most 60 Newton steps that know no ``tol`` and give no certificate.""",
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


class GraphLearner(Protocol):
    """A way to learn from graphs."""

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Floats | None) -> Fit:
        """Return parameters with what is known about their objective."""
        ...


@dataclass(frozen=True)
class LikelihoodLearner:
    """Maximum a posteriori, with sums over matchings as given."""

    sum_matchings: MatchingSum
    tol: float = 1e-3
    max_iter: int = 500
    callback: Callable[[Round], None] | None = None
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Floats | None) -> Fit:
        """Minimise P to a relative certified gap of ``tol``."""
        start = few_rows_start(blocks, scores, l2, self.executor) if start is None else start
        objective = GraphLikelihood(blocks, scores, self.sum_matchings, self.executor)
        return minimise(objective, l2, start, tol=self.tol, max_iter=self.max_iter, callback=self.callback)


def few_rows_start(
    blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, executor: Executor = ONE_THREAD
) -> Floats:
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
    part_size: int
    """Most rows of a part."""
    seed: int = 0
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Floats | None) -> Fit:
        """Cut the graphs, by ``seed`` alone, and learn from the parts."""
        rng = np.random.default_rng(self.seed)
        if max(block.X.shape[1] for block in blocks) <= self.part_size:
            return self.learn(blocks, scores, l2, start)
        start = np.zeros(scores.n_params) if start is None else start
        confused: list[Floats] | None = None
        for _ in range(ROUGH_FITS):
            rough = among_few_rows(blocks, min(self.part_size, FEW_ROWS), PARTITIONS, rng, confused)
            likelihood = GraphLikelihood(rough, scores, ExactSum(), self.executor)
            start = minimise(likelihood, l2, start, tol=START_TOL).params
            confused = _doubts(blocks, scores, start, self.executor)
        parts = among_few_rows(blocks, self.part_size, PARTITIONS, rng, confused)
        return self.learn(parts, scores, l2, start)


def _doubts(blocks: tuple[GraphBlock, ...], scores: EdgeScores, params: Floats, executor: Executor) -> list[Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetheWarning)  # a rough idea of what is confused is enough
        return confusion(blocks, scores, params, BetheSum(), executor)


@dataclass(frozen=True)
class MarginLearner:
    """The hinge of the share of wrong matches."""

    tol: float = 1e-3
    max_iter: int = 500
    callback: Callable[[Round], None] | None = None
    executor: Executor = ONE_THREAD

    def __call__(self, blocks: tuple[GraphBlock, ...], scores: EdgeScores, l2: float, start: Floats | None) -> Fit:
        """Minimise P to a relative certified gap of ``tol``; a cutting plane has no use for a start."""
        del start
        hinge, cuts = GraphHinge(blocks, scores, self.executor), ActiveCuts(np.ones(scores.n_params))
        return with_ridge(hinge, cuts, l2, tol=self.tol, max_iter=self.max_iter, callback=self.callback)
