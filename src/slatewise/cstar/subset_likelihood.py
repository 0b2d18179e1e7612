"""The likelihood of sets of any size, of rows whose labels are known or partly known.

    L(w) = sum_m omega_m [ log Z_m(w) - log Z_m(w; known) ]

Z sums over all sets, Z(known) over those that agree with what is known of the row: of a complete row that is one set,
``log Z(known) = f``, and L is convex. A label that is not known is summed out, as if it were missing at random; then L
is a difference of convex functions, and no longer convex. Smooth and exact both ways (:mod:`slatewise.cstar.subsets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.pair import StarPair
from slatewise.cstar.subsets import SubsetRows, SubsetSums, log_partition, subset_scores, subset_sums


@dataclass(frozen=True, eq=False)
class SubsetLikelihood:
    """Rows with given scores, and what is known of their labels."""

    model: AdjustedScores
    known: Bytes
    """(n, N) 1, 0, or -1 where nobody knows."""
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    @cached_property
    def complete(self) -> Ints:
        """The rows of which all labels are known."""
        return np.flatnonzero((self.known >= 0).all(axis=1))

    @cached_property
    def partial(self) -> Ints:
        """The others."""
        return np.flatnonzero((self.known < 0).any(axis=1))

    def rows(self, places: Ints) -> SubsetLikelihood:
        """Return the likelihood of some rows."""
        return SubsetLikelihood(self.model.rows(places), self.known[places], self.weight[places], self.executor)

    def value(self, params: Floats) -> float:
        """Return L alone, for validation."""
        pair, free, held = self.model.star_pair(params), np.empty(len(self.weight)), np.empty(len(self.weight))

        def fill(cut: slice) -> None:
            scores = self.model.rows(cut).scores(params)
            free[cut] = log_partition(SubsetRows(scores, pair))
            held[cut] = log_partition(SubsetRows(scores, pair, self.known[cut]))

        self.executor.fill_blocks(fill, self.model.cuts())
        return float(self.weight @ (free - held))

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        return self._held.sum(_SUM, params)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _Rows]:
        cuts = self.model.cuts()
        blocks = [_rows(self.model.rows(cut), self.known[cut], self.weight[cut]) for cut in cuts]
        return self.executor.place_blocks(
            blocks, _Shared(self.model.rows(slice(0, 0)), self.executor.inside(len(cuts)))
        )


class _Rows(NamedTuple):
    """A block of rows."""

    model: AdjustedScores
    known: Bytes
    weight: Floats
    complete: NDArray[np.bool_]
    """(n,) whether all labels of a row are known."""
    together: Floats
    """(C, N) by weight, pairs of labels of the complete rows."""


def _rows(model: AdjustedScores, known: Bytes, weight: Floats) -> _Rows:
    complete = np.asarray((known >= 0).all(axis=1))
    Y = known[complete].astype(np.float64)
    together = (weight[complete, None] * Y[:, model.core]).T @ Y
    # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
    together[:, model.core] = np.triu(together[:, model.core], 1)
    return _Rows(model, known, weight, complete, together)


class _Shared(NamedTuple):
    model: AdjustedScores
    """Without rows."""
    executor: Executor


class _Point(NamedTuple):
    """Where the likelihood is asked for."""

    params: Floats
    pair: StarPair
    executor: Executor


def _at(shared: _Shared, params: Floats) -> _Point:
    return _Point(params, shared.model.star_pair(params), shared.executor)


def _of_rows(at: _Point, rows: _Rows) -> ValueAndSlope:
    scores = rows.model.scores(at.params)
    sums = subset_sums(SubsetRows(scores, at.pair), rows.weight, at.executor)
    agreeing = _agreeing(at, rows, scores)
    slopes = rows.weight[:, None] * (sums.item - agreeing.item)
    gradient = rows.model.pull_back(slopes, sums.joint - agreeing.joint)
    return float(rows.weight @ (sums.log_z - agreeing.log_z)), gradient


def _agreeing(at: _Point, rows: _Rows, scores: Floats) -> SubsetSums:
    """Sum over the sets that agree with what is known of some rows."""
    known, complete = rows.known, rows.complete
    if complete.all():
        chosen = known.astype(np.float64)
        return SubsetSums(subset_scores(scores, at.pair, chosen), chosen, rows.together)
    log_z, item, chosen = np.empty(len(scores)), np.empty(scores.shape), known[complete].astype(np.float64)
    log_z[complete], item[complete] = subset_scores(scores[complete], at.pair, chosen), chosen
    part = subset_sums(SubsetRows(scores[~complete], at.pair, known[~complete]), rows.weight[~complete], at.executor)
    log_z[~complete], item[~complete] = part.log_z, part.item
    return SubsetSums(log_z, item, rows.together + part.joint)


_SUM: BlockSum[_Shared, Floats, _Point, _Rows, ValueAndSlope] = BlockSum(_at, _of_rows, add_value_and_slope)
