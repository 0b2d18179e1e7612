"""The likelihood of rankings as matchings of documents and positions (Petterson et al. 2009, eq. 3, 8, 11 and 16).

    -log p(y | s) = log sum over rankings pi of exp(sum_i s_i c[pi_i])  -  sum_i s_i c[y_i] ,      s = X theta

Convex in theta, with gradient ``X' (E[c[pi]] - c[y])``: the expected minus the observed placement. Slates of few
documents are summed exactly by :func:`slatewise.matching.permanent_exact.log_permanents`, whole queries by
:func:`slatewise.matching.tied.tied_log_sum` with c constant inside a rating.

Ties need a choice. A slate's order inside a rating is either taken as observed (it was drawn at random) or summed over:
then y stands for all orders that keep ratings apart, and a sum over the tied documents and positions alone takes the
place of the last term. That is a difference of convex functions, and convex only where c is constant inside a rating.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from slatewise.core.checks import Features
from slatewise.core.executor import ONE_THREAD, Executor
from slatewise.matching.permanent_exact import log_permanents
from slatewise.matching.slates import Floats, Ints, RatedLists, Slates
from slatewise.matching.tied import tied_log_sum

_BLOCK_NUMBERS = 1 << 17  # of the matrices made at a time


@dataclass(frozen=True, eq=False)
class SlateLikelihood:
    """Mean over slates of -log p."""

    X: Features
    slates: Slates
    ties: tuple[Ties, ...] = ()
    """Tied documents to be summed over; none: the order of a slate is the observed one."""
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return int(self.X.shape[1])

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return the mean and its gradient."""
        slates = self.slates
        scores = (self.X @ params)[slates.rows]
        log_z, expected = _sums(scores, slates.weights, self.executor)
        losses, excess = log_z - (scores * slates.weights).sum(axis=1), expected - slates.weights
        for tied in self.ties:
            at = np.ix_(tied.slates, np.arange(tied.first, tied.last))
            log_tied, expected_tied = _sums(scores[at], slates.weights[at], self.executor)
            losses[tied.slates] -= log_tied - (scores[at] * slates.weights[at]).sum(axis=1)
            excess[at] -= expected_tied - slates.weights[at]
        slopes = np.bincount(slates.rows.ravel(), (excess * slates.share[:, None]).ravel(), self.X.shape[0])
        return float(slates.share @ losses), slopes @ self.X


@dataclass(frozen=True, eq=False)
class Ties:
    """Slates whose documents at positions ``first`` to ``last - 1`` have the same rating."""

    slates: Ints
    first: int
    last: int


def find_ties(slates: Slates) -> tuple[Ties, ...]:
    """Return all runs of two or more equal ratings, slates with the same run together."""
    size = slates.ratings.shape[1]
    edge = np.ones((len(slates.ratings), size + 1), dtype=np.bool_)
    edge[:, 1:-1] = slates.ratings[:, 1:] != slates.ratings[:, :-1]
    runs = ((first, last) for first in range(size) for last in range(first + 2, size + 1))
    found = (
        Ties(np.flatnonzero(edge[:, first] & edge[:, last] & ~edge[:, first + 1 : last].any(axis=1)), first, last)
        for first, last in runs
    )
    return tuple(ties for ties in found if len(ties.slates))


@dataclass(frozen=True, eq=False)
class WholeLikelihood:
    """Mean over whole lists of -log p(which documents have which rating), given how many have each."""

    lists: RatedLists
    weights: Floats
    """c of each row, the same for all rows of a rating and growing with it."""
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return int(self.lists.X.shape[1])

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return the mean and its gradient."""
        scores = self.lists.X @ params
        found = list(self.executor.map_blocks(_whole_list, _Scored(scores, self.weights), self._lists))
        losses, slopes = zip(*found, strict=True)
        counted = float(self.lists.weights.sum())
        gradient = (self.lists.row_weights * np.concatenate(slopes)) @ self.lists.X
        return math.fsum(losses) / counted, gradient / counted

    @cached_property
    def _lists(self) -> tuple[_List, ...]:
        return tuple(self._runs())

    def _runs(self) -> Iterator[_List]:
        for start, end, weight in zip(self.lists.offsets[:-1], self.lists.offsets[1:], self.lists.weights, strict=True):
            values, sizes = np.unique(self.weights[start:end], return_counts=True)
            yield _List(slice(int(start), int(end)), sizes.astype(np.int64), values, float(weight))


class _List(NamedTuple):
    """Rows of one list, sizes and weights of its classes, and how much it counts."""

    rows: slice
    sizes: Ints
    values: Floats
    weight: float


class _Scored(NamedTuple):
    """Of all rows."""

    scores: Floats
    weights: Floats


def _whole_list(scored: _Scored, part: _List) -> tuple[float, Floats]:
    """Return -log p of one list, and its slopes."""
    scores, weights = scored.scores[part.rows], scored.weights[part.rows]
    found = tied_log_sum(scores, part.sizes, part.values)
    same = math.fsum(math.lgamma(size + 1) for size in part.sizes.tolist())  # rankings that show the same ratings
    loss = part.weight * (found.log_z - same - float(scores @ weights))
    return loss, found.marginals @ part.values - weights


def _sums(scores: Floats, weights: Floats, executor: Executor) -> tuple[Floats, Floats]:
    """Return log Z (B,) and the expected weight of each item's position (B, M)."""
    n, size = scores.shape
    log_z, expected = np.empty(n), np.empty(scores.shape)
    step = max(1, _BLOCK_NUMBERS // size**2)
    for first in range(0, n, step):
        block = slice(first, first + step)
        # Only differences count: small numbers lose fewer digits.
        centred = scores[block] - scores[block].mean(axis=1, keepdims=True)
        found, marginals = log_permanents(centred[:, :, None] * weights[block][:, None, :], executor)
        log_z[block] = found + scores[block].mean(axis=1) * weights[block].sum(axis=1)
        expected[block] = np.einsum("bij,bj->bi", marginals, weights[block])
    return log_z, expected
