"""Log-odds adjusted by a scale and a shift per label and by pair terms, and how likely they make the known labels.

    f(t) = sum_i t_i [ (1 + a_i) s_i + v_i ] + sum over unordered pairs G_ij t_i t_j

At a = v = G = 0 the scores are as given. Parameters are one flat vector: a, v, then G (C, N) in which a pair of core
labels stands once, in the row of the one that comes first. Two likelihoods, both smooth and exact:

    any size      L(w) = sum_m omega_m [ log Z_m(w) - log Z_m(w; known) ]
    fixed size    L(w) = sum_m omega_m [ log Z_m(w) - f_m(z_m; w) ] ,      Z_m = sum over the sets of k_m labels

For any size Z sums over all sets, Z(known) over those that agree with what is known of the row: of a complete row that
is one set, ``log Z(known) = f``, and L is convex. An unknown label is summed out, as if it were missing at random; then
L is a difference of convex functions, and no longer convex. The likelihood of fixed size is convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.core.groups import blocks
from slatewise.core.running.block_sums import BlockSum, PlacedBlocks, ValueAndSlope, add_value_and_slope
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.cstar.inference.any_size import SubsetRows, SubsetSums, log_partition, subset_scores, subset_sums
from slatewise.cstar.inference.fixed_size import all_settings, star_sums
from slatewise.cstar.inference.model import StarLists, StarPair, symmetric_pair
from slatewise.cstar.kernels.layout import CoreSettings

_TERMS, _ROWS, _ENTRIES = 1 << 20, 256, 1 << 22
"""Of a block of rows: about this many core settings times labels, but at least these rows and at most these numbers."""


@dataclass(frozen=True, eq=False)
class AdjustedScores:
    """Rows of given scores, and what is learned of them."""

    given: Floats
    """(n, N), best as log-odds."""
    core: Ints

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return self.given.shape[1]

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.n_labels * (2 + len(self.core))

    def unpack(self, params: Floats) -> tuple[Floats, Floats, Floats]:
        """Return views a (N,), v (N,) and G (C, N)."""
        n = self.n_labels
        return params[:n], params[n : 2 * n], params[2 * n :].reshape(len(self.core), n)

    def rows(self, numbers: slice | Ints) -> AdjustedScores:
        """Return some of the rows."""
        return AdjustedScores(self.given[numbers], self.core)

    def cuts(self) -> list[slice]:
        """Cut the rows by the number of rows, labels and core labels alone; one empty block if there are none."""
        n_labels = max(self.n_labels, 1)
        size = max(min(max(_TERMS // (n_labels << len(self.core)), _ROWS), _ENTRIES // n_labels), 1)
        return blocks(len(self.given), size) or [slice(0, 0)]

    def scores(self, params: Floats) -> Floats:
        """Return the score of each label by itself, (n, N)."""
        a, v, _ = self.unpack(params)
        return (1.0 + a) * self.given + v

    def star_pair(self, params: Floats) -> StarPair:
        """Lay G out for inference."""
        return StarPair.from_symmetric(symmetric_pair(self.unpack(params)[2], self.core), self.core)

    def pull_back(self, item: Floats, joint: Floats) -> Floats:
        """Return the gradient in the parameters of ``sum (item * scores) + sum (joint * G)``."""
        return np.concatenate([(item * self.given).sum(axis=0), item.sum(axis=0), joint.ravel()])

    def pairs_of(self, Y: Floats, weight: Floats) -> Floats:
        """Return how often labels Y (n, N) stand together with core labels, (C, N) by weight, laid out as G."""
        together = (weight[:, None] * Y[:, self.core]).T @ Y
        together[:, self.core] = np.triu(together[:, self.core], 1)  # no core label stands with itself
        return together


class _Shared(NamedTuple):
    """What all blocks share."""

    model: AdjustedScores
    """Without rows."""
    executor: Executor


class _Point(NamedTuple):
    """Where a likelihood is evaluated."""

    params: Floats
    pair: StarPair
    executor: Executor
    settings: CoreSettings | None = None
    """Those of the core, for sums over sets of a fixed size."""


def _at(shared: _Shared, params: Floats) -> _Point:
    return _Point(params, shared.model.star_pair(params), shared.executor)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Rows with given scores."""

    model: AdjustedScores

    @property
    def n_params(self) -> int:
        """Length of the flat parameter vector."""
        return self.model.n_params

    def _shared(self, executor: Executor, n_blocks: int) -> _Shared:
        return _Shared(self.model.rows(slice(0, 0)), executor.inside(n_blocks))


# --- any size ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AnySizeLikelihood(_Likelihood):
    """Rows with given scores, and what is known of their labels."""

    known: Bytes
    """(n, N) 1, 0, or -1 for an unknown label."""
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    @cached_property
    def is_complete(self) -> NDArray[np.bool_]:
        """(n,) whether all labels of a row are known."""
        return np.asarray((self.known >= 0).all(axis=1))

    def rows(self, numbers: Ints) -> AnySizeLikelihood:
        """Return the likelihood of some rows."""
        return AnySizeLikelihood(self.model.rows(numbers), self.known[numbers], self.weight[numbers], self.executor)

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
        return self._held.sum(_ANY_SIZE, params)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _KnownRows]:
        parts: list[_KnownRows] = []
        for cut in self.model.cuts():
            model, known, weight, complete = (
                self.model.rows(cut),
                self.known[cut],
                self.weight[cut],
                self.is_complete[cut],
            )
            together = model.pairs_of(known[complete].astype(np.float64), weight[complete])
            parts.append(_KnownRows(model, known, weight, complete, together))
        return self.executor.place_blocks(parts, self._shared(self.executor, len(parts)))


class _KnownRows(NamedTuple):
    """A block of rows."""

    model: AdjustedScores
    known: Bytes
    weight: Floats
    complete: NDArray[np.bool_]
    together: Floats
    """(C, N) by weight, pairs of labels of the complete rows."""


def _of_known_rows(at: _Point, rows: _KnownRows) -> ValueAndSlope:
    scores = rows.model.scores(at.params)
    sums = subset_sums(SubsetRows(scores, at.pair), rows.weight, at.executor)
    agreeing = _agreeing(at, rows, scores)
    slopes = rows.weight[:, None] * (sums.item - agreeing.item)
    gradient = rows.model.pull_back(slopes, sums.joint - agreeing.joint)
    return float(rows.weight @ (sums.log_z - agreeing.log_z)), gradient


def _agreeing(at: _Point, rows: _KnownRows, scores: Floats) -> SubsetSums:
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


_ANY_SIZE: BlockSum[_Shared, Floats, _Point, _KnownRows, ValueAndSlope]
_ANY_SIZE = BlockSum(_at, _of_known_rows, add_value_and_slope)


# --- fixed size -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FixedSizeLikelihood(_Likelihood):
    """Rows with given scores and labels, each with at least one."""

    Y: Floats | Bytes
    """(n, N) 0/1."""
    k: Ints
    weight: Floats
    """(n,) weights omega."""
    executor: Executor = ONE_THREAD

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        return self._held.sum(_FIXED_SIZE, params)

    @cached_property
    def _held(self) -> PlacedBlocks[_Shared, _CountedRows]:
        cuts = self.model.cuts()
        parts = [_CountedRows(self.model.rows(cut), self.Y[cut], self.k[cut], self.weight[cut]) for cut in cuts]
        return self.executor.place_blocks(parts, self._shared(self.executor, len(parts)))


class _CountedRows(NamedTuple):
    """A block of rows."""

    model: AdjustedScores
    Y: Floats | Bytes
    k: Ints
    weight: Floats


def _at_fixed(shared: _Shared, params: Floats) -> _Point:
    at = _at(shared, params)
    return at._replace(settings=all_settings(at.pair))


def _of_counted_rows(at: _Point, rows: _CountedRows) -> ValueAndSlope:
    model, Y = rows.model, rows.Y.astype(np.float64, copy=False)
    scores = model.scores(at.params)
    sums = star_sums(StarLists(scores, at.pair, rows.k), rows.weight, at.executor, at.settings)
    together = model.pairs_of(Y, rows.weight)
    of_labels = float(rows.weight @ (Y * scores).sum(axis=1) + (together * model.unpack(at.params)[2]).sum())
    slopes = rows.weight[:, None] * (sums.item - Y)
    return float(rows.weight @ sums.log_z) - of_labels, model.pull_back(slopes, sums.joint - together)


_FIXED_SIZE: BlockSum[_Shared, Floats, _Point, _CountedRows, ValueAndSlope]
_FIXED_SIZE = BlockSum(_at_fixed, _of_counted_rows, add_value_and_slope)
