"""The likelihood of a c-star problem, given how many labels are relevant.

    L(w) = sum_m omega_m [ log Z_m(w) - f_m(z_m; w) ] ,      Z_m = sum over the sets t of k_m labels of exp f_m(t; w)

Smooth and convex, and exact (:mod:`slatewise.cstar.sums`). It asks what the hinge does not: how likely a set
is, also in rows where nothing is at stake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.adjusted import AdjustedScores
from slatewise.cstar.kernels.layout import CoreSettings
from slatewise.cstar.lists import StarLists
from slatewise.cstar.pair import StarPair
from slatewise.cstar.problem import StarProblem, indicator
from slatewise.cstar.sums import all_settings, star_sums


@dataclass(frozen=True, eq=False)
class StarLikelihood:
    """Rows with given scores and labels, each with at least one."""

    model: AdjustedScores
    Y: Floats | Bytes
    """(n, N) 0/1."""
    k: Ints
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    @classmethod
    def of(cls, problem: StarProblem, executor: Executor = ONE_THREAD) -> StarLikelihood:
        """Adjust the fixed part of a problem's scores to its targets, every row by the weight it was given."""
        if problem.offset is None:
            raise ValueError("problem: expected given scores, found none")
        Y = indicator(problem.target, problem.n_items)
        model, weight = AdjustedScores(problem.offset, problem.core), problem.weight * problem.total_weight
        return cls(model, Y, problem.k, weight, executor)

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        return self._held.sum(_SUM, params)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _Rows]:
        cuts = self.model.cuts()
        blocks = [_Rows(self.model.rows(cut), self.Y[cut], self.k[cut], self.weight[cut]) for cut in cuts]
        return self.executor.place_blocks(
            blocks, _Shared(self.model.rows(slice(0, 0)), self.executor.inside(len(cuts)))
        )


class _Rows(NamedTuple):
    """A block of rows."""

    model: AdjustedScores
    Y: Floats | Bytes
    k: Ints
    weight: Floats


class _Shared(NamedTuple):
    model: AdjustedScores
    """Without rows."""
    executor: Executor


class _Point(NamedTuple):
    """Where the likelihood is asked for."""

    params: Floats
    pair: StarPair
    settings: CoreSettings
    executor: Executor


def _at(shared: _Shared, params: Floats) -> _Point:
    pair = shared.model.star_pair(params)
    return _Point(params, pair, all_settings(pair), shared.executor)


def _of_rows(at: _Point, rows: _Rows) -> ValueAndSlope:
    (model, known, k, weight), core = rows, rows.model.core
    Y = known.astype(np.float64, copy=False)
    scores = model.scores(at.params)
    sums = star_sums(StarLists(scores, at.pair, k), weight, at.executor, at.settings)
    # A pair of core labels stands once, in the row of the one that comes first; none stands with itself.
    together = (weight[:, None] * Y[:, core]).T @ Y
    together[:, core] = np.triu(together[:, core], 1)
    own = float(weight @ (Y * scores).sum(axis=1) + (together * model.unpack(at.params)[2]).sum())
    slopes = weight[:, None] * (sums.item - Y)
    return float(weight @ sums.log_z) - own, model.pull_back(slopes, sums.joint - together)


_SUM: BlockSum[_Shared, Floats, _Point, _Rows, ValueAndSlope] = BlockSum(_at, _of_rows, add_value_and_slope)
