"""Exact sums over matchings: the logarithm of the permanent, and the probability of every edge.

    Z = sum over one-to-one y of prod_i exp(w[i, y(i)]),      P_ij = Pr(y(i) = j) = d log Z / d w_ij

Rows are all matched; with more columns than rows some columns stay free. Four ways, all exact up to rounding:

- *subsets* (``kernels/permanent_subsets.py``): square, many small matrices at a time; only positive terms.
- *glynn* (``kernels/permanent_glynn.py``): square, O(M^2) memory, faster from M = 9. Terms of both signs
  cancel, so the sum of their sizes is kept: it says what rounding may do.
- *rows* (``kernels/permanent_rows.py``): more columns than rows;
- *candidates*: any matrix whose rows have few candidates, at any M. A walk over the subsets of columns that the first
  rows can take,

      alpha_i[S] = sum_{j in S} B_ij alpha_{i-1}[S - j]

  A column that no later row wants leaves the set: whether it was used is settled, and sets that differ in it alone
  become one. With candidates near the diagonal few sets are left. Rows are first ordered to bring those that share
  candidates together (reverse Cuthill-McKee).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.core.groups import blocks
from slatewise.core.running.executor import ONE_THREAD, Executor

FEW = 8
"""Up to this many rows square matrices go through the subsets, beyond through Glynn's formula."""
MOST_ROUNDING = 1e-10
"""Where Glynn's rounding may exceed this, the subsets are walked instead."""
MOST_BYTES = 1 << 31
"""Tables larger than this are refused."""
MOST_SIGNS = 32
"""So are sums over 2^32 signs: minutes become hours."""
MOST_STEPS = 1 << 25
"""Walks over candidates with more steps from set to set than this are refused (some 50 bytes each)."""
WORD = 64
_EPSILON = float(np.finfo(np.float64).eps)
_SMALL, _LARGE = 1e-40, 600.0  # a Z below may have lost terms to underflow; a product of exp(600) is in range
_FINE = 1e12  # up to here neighboring floats differ by far less than 1
_SWEEPS = 10
_SIX_AT_ONCE = 4096  # matrices of three, whose parts then stay in the cache
_BLOCK_COLUMNS, _THREADED_SIGNS = 4, 17  # from 17 rows on threads share one matrix, in 16 blocks of signs


class Sums(NamedTuple):
    """What an exact method returns for B matrices."""

    log_z: Floats
    """(B,)"""
    marginals: Floats
    """(B, M, N)"""
    error: Floats
    """(B,) rounding: how far log_z and each marginal can be off."""


class Scaled(NamedTuple):
    """``exp(w - u - v)``: no entry above 1, and the best matching weighs 1."""

    weights: Floats
    u: Floats
    v: Floats
    best: Ints
    """(B, M) each row's column in the best matching."""
    offset: Floats
    """(B,) the best matching's log weight, to be added to the logarithm of a sum of the scaled weights."""

    @property
    def rounding(self) -> Floats:
        """(B,) how many digits a sum of positive terms may lose."""
        return _rounding(self.u.shape[1], np.abs(self.u).sum(axis=1) + np.abs(self.v).sum(axis=1))


def log_permanents(log_weights: Floats, executor: Executor = ONE_THREAD) -> tuple[Floats, Floats]:
    """Return log Z (B,) and marginals (B, M, N) of checked weights, by the fastest exact method.

    ``log_weights`` (B, M, N), M <= N, has finite numbers and -inf; see :func:`slatewise.inference.permanent`.

    Examples
    --------
    >>> log_z, marginals = log_permanents(np.log([[[1.0, 3.0], [1.0, 1.0]]]))
    >>> np.exp(log_z), marginals
    (array([4.]), array([[[0.25, 0.75], [0.75, 0.25]]]))
    """
    sums = METHODS[chosen(log_weights.shape)](log_weights, executor)
    return sums.log_z, sums.marginals


def chosen(shape: tuple[int, ...]) -> str:
    """Return the name of the fastest exact method for matrices of this shape."""
    _, n_rows, n_columns = shape
    if n_rows < n_columns:
        return "rows"
    return "subsets" if n_rows <= FEW else "glynn"


def table_bytes(method: str, shape: tuple[int, ...]) -> int:
    """Return how much memory one matrix needs."""
    _, n_rows, n_columns = shape
    return {"subsets": 2 * 8 << n_rows, "rows": (n_columns + 3) * 8 << n_rows}.get(method, 0)


def scale(log_weights: Floats, numbers: Ints | None = None) -> Scaled:
    """Subtract the duals of the best assignment; an error, which names the matrix, if there is no matching at all."""
    from slatewise.matching.kernels.assignment_duals import assign_all

    count, n_rows, n_columns = log_weights.shape
    u, v, best = np.empty((count, n_rows)), np.empty((count, n_columns)), np.empty((count, n_rows), dtype=np.int64)
    at = assign_all(np.ascontiguousarray(log_weights), u, v, best)
    if at >= 0:
        raise no_matching(at if numbers is None else int(numbers[at]))
    np.maximum(v, 0.0, out=v)
    # Weights of 1e20 round by thousands: held to what the duals promise, no sum of them is 0 or too large.
    weights = np.exp(np.minimum(log_weights - u[:, :, None] - v[:, None, :], 0.0))
    np.put_along_axis(weights, best[:, :, None], 1.0, axis=2)
    offset = np.take_along_axis(log_weights, best[:, :, None], axis=2)[:, :, 0].sum(axis=1)
    return Scaled(weights, u, v, best, offset)


def no_matching(number: int) -> ValueError:
    """Return the error for a matrix with Z = 0: it has no marginals."""
    return ValueError(f"log_weights: expected a matching with finite weight, found none in matrix {number}")


def by_subsets(log_weights: Floats, executor: Executor = ONE_THREAD) -> Sums:
    """Walk the subsets of columns; weights are scaled by the duals only where their products leave the range."""
    count, size, _ = log_weights.shape
    if size == 3:
        return _by_six(log_weights, executor)
    _check_memory("subsets", log_weights.shape)
    (z, offset, lost), marginals = np.zeros((3, count)), np.empty(log_weights.shape)

    def as_they_are(block: slice) -> None:
        top = float(log_weights[block].max())
        # Near 1e15 a number less some hundreds is rounded by hundreds: then nothing is left above 1.
        above = max(0.0, top - _LARGE / size if top < _FINE else top)
        np.exp(log_weights[block] - above if above else log_weights[block], out=marginals[block])
        offset[block] = size * above
        _sum_subsets(marginals[block], z[block])

    def by_duals(block: slice) -> None:
        numbers = underflown[block]
        scaled, sums = scale(log_weights[numbers], numbers), np.empty(len(numbers))
        _sum_subsets(scaled.weights, sums)
        z[numbers], marginals[numbers] = sums, scaled.weights
        offset[numbers], lost[numbers] = scaled.offset, scaled.rounding

    width = max(64, 1 << 15 >> size)
    executor.fill_blocks(as_they_are, blocks(count, width))
    underflown = np.flatnonzero(z < _SMALL)
    executor.fill_blocks(by_duals, blocks(len(underflown), width))
    log_z = np.log(z) + offset
    return Sums(log_z, marginals, np.maximum(lost, _rounding(size, np.abs(log_z))))


def _by_six(log_weights: Floats, executor: Executor) -> Sums:
    """Write out the six permutations of three."""
    from slatewise.matching.kernels.permanent_threes import sum_threes, weigh_threes

    count = len(log_weights)
    (log_z, z, sizes), marginals = np.empty((3, count)), np.empty(log_weights.shape)

    def fill(block: slice) -> None:
        parts = np.empty((len(z[block]), 6))
        at = weigh_threes(log_weights[block], parts, log_z[block], sizes[block])
        if at >= 0:
            raise no_matching(block.start + at)
        sum_threes(np.exp(parts, out=parts), z[block], marginals[block])

    executor.fill_blocks(fill, blocks(count, _SIX_AT_ONCE))
    log_z += np.log(z, out=z)
    return Sums(log_z, marginals, _rounding(3, sizes))


def by_glynn(log_weights: Floats, executor: Executor = ONE_THREAD) -> Sums:
    """Sum over signs; matrices whose terms cancel too much go through the subsets."""
    from slatewise.matching.kernels.permanent_glynn import LANE_COLUMNS, sum_signs_of_all
    from slatewise.matching.kernels.sinkhorn import balance

    count, size, _ = log_weights.shape
    if size <= LANE_COLUMNS:
        raise ValueError(f"log_weights: expected more than {LANE_COLUMNS} rows for method 'glynn', found {size}")
    if size > MOST_SIGNS:
        raise ValueError(f"log_weights: expected at most {MOST_SIGNS} rows for method 'glynn', found {size}")
    sums = Sums(np.empty(count), np.empty(log_weights.shape), np.empty(count))
    one_by_one = size >= _THREADED_SIGNS

    def fill(block: slice) -> None:
        scaled = scale(log_weights[block], np.arange(count, dtype=np.int64)[block])
        weights, log_scale = scaled.weights, np.full(len(scaled.weights), (1 - size) * np.log(2.0))
        balance(weights, _SWEEPS, log_scale)
        columns = np.ascontiguousarray(weights.transpose(0, 2, 1))
        (values, sizes), gradients = np.empty((2, len(columns))), np.empty(columns.shape)
        if one_by_one:
            signs = range(1 << _BLOCK_COLUMNS)
            total = executor.sum_blocks(_signs_of, columns[0], signs, add)
            values[0], sizes[0], gradients[0] = total[0], total[1], total[2:].reshape(size, size)
        else:
            sum_signs_of_all(columns, gradients, values, sizes)
        values[values <= 0.0] = np.nan  # nothing but rounding is left: a case for the subsets
        sums.log_z[block] = np.log(values) + log_scale + scaled.offset
        found = weights * gradients.transpose(0, 2, 1) / values[:, None, None]
        sums.marginals[block] = found
        # Rows and columns must add up to 1: what they miss shows the rounding in the gradient.
        missed = np.maximum(_off_one(found.sum(axis=1)), _off_one(found.sum(axis=2)))
        sums.error[block] = scaled.rounding + _EPSILON * size * sizes / values + missed

    if one_by_one:
        ONE_THREAD.fill_blocks(fill, blocks(count, 1))
    else:
        executor.fill_blocks(fill, blocks(count, max(1, 1 << 17 >> size)))
    poor = np.flatnonzero(~(sums.error <= MOST_ROUNDING))
    if len(poor) and table_bytes("subsets", log_weights.shape) <= MOST_BYTES:
        for whole, part in zip(sums, by_subsets(log_weights[poor], executor), strict=True):
            whole[poor] = part
    lost = np.flatnonzero(np.isnan(sums.log_z))
    if len(lost):
        raise ValueError(
            f"method: expected 'candidates' or 'bethe', found that Glynn's terms cancel in matrix {lost[0]}"
        )
    return sums


def _signs_of(columns: Floats, block: int) -> Floats:
    """Sum over one block of the signs of a large matrix: value, sum of sizes, and gradient."""
    from slatewise.matching.kernels.permanent_glynn import sum_signs

    gradient = np.empty(columns.shape)
    value, size = sum_signs(columns, block, _BLOCK_COLUMNS, gradient)
    return np.concatenate(([value, size], gradient.ravel()))


def by_rows(log_weights: Floats, executor: Executor = ONE_THREAD) -> Sums:
    """Go column by column over subsets of rows."""
    from slatewise.matching.kernels.permanent_rows import sum_matchings

    count, n_rows, n_columns = log_weights.shape
    _check_memory("rows", log_weights.shape)
    sums = Sums(np.empty(count), np.empty(log_weights.shape), np.empty(count))

    def fill(block: slice) -> None:
        scaled = scale(log_weights[block], np.arange(count, dtype=np.int64)[block])
        columns, free = np.ascontiguousarray(scaled.weights.transpose(0, 2, 1)), np.exp(-scaled.v)
        z, out = np.empty(len(columns)), np.empty(columns.shape)
        sum_matchings(columns, free, np.empty((n_columns + 1, 1 << n_rows)), np.empty((2, 1 << n_rows)), z, out)
        sums.log_z[block], sums.error[block] = np.log(z) + scaled.offset, scaled.rounding
        sums.marginals[block] = out.transpose(0, 2, 1)

    executor.fill_blocks(fill, blocks(count, max(1, 1 << 16 >> n_rows)))
    return sums


# --- few candidates ---------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """The order of the rows, and when each column is wanted first and last, in steps of that order."""

    rows: Ints
    first: Ints
    last: Ints
    """-1 for columns that are never wanted, in both."""


class _Step(NamedTuple):
    """From set ``source`` by candidate ``column`` to set ``target`` of the next level, with a weight."""

    source: Ints
    column: Ints
    target: Ints
    weight: Floats
    sums: Floats
    """alpha before the step."""


def plan(candidates: Bools) -> Plan:
    """Order the rows of one matrix."""
    shared = csr_array(candidates.astype(np.int64))
    graph = csr_array(shared @ shared.T)
    rows = reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
    wanted = candidates[rows]
    never = ~wanted.any(axis=0)
    first, last = wanted.argmax(axis=0), len(rows) - 1 - wanted[::-1].argmax(axis=0)
    return Plan(rows, np.where(never, -1, first), np.where(never, -1, last))


def most_sets(order: Plan) -> float:
    """Return a bound on how many sets a step can meet; inf where more than 64 columns are open at once."""
    n_rows, n_columns = len(order.rows), len(order.first)
    most = 1.0
    for step in range(n_rows):
        open_ = int(np.sum((order.first <= step) & (order.last >= step)))
        if open_ > WORD:
            return math.inf
        closed = int(np.sum((order.last < step) & (order.first >= 0)))
        # In a square matrix every closed column was used, which says how many of the open ones are.
        sets = math.comb(open_, min(max(step - closed, 0), open_)) if n_rows == n_columns else 2**open_
        most = max(most, float(sets))
    return most


def by_candidates(log_weights: Floats, executor: Executor = ONE_THREAD) -> Sums:
    """Walk the reachable sets of every matrix."""
    count, n_rows, n_columns = log_weights.shape
    sums = Sums(np.empty(count), np.empty(log_weights.shape), np.empty(count))

    def fill(block: slice) -> None:
        scaled = scale(log_weights[block], np.arange(count, dtype=np.int64)[block])
        free = np.exp(-scaled.v) if n_rows < n_columns else np.zeros(scaled.v.shape)
        log_z, sums.marginals[block.start] = _walk(scaled.weights[0], free[0])
        sums.log_z[block], sums.error[block] = log_z + scaled.offset, scaled.rounding

    executor.fill_blocks(fill, blocks(count, 1))
    return sums


def _walk(weights: Floats, free: Floats) -> tuple[float, Floats]:
    order = plan(weights > 0.0)
    levels, log_z = _forward(weights, free, order)
    marginals = np.zeros(weights.shape)
    backward = np.ones(1)
    for row, level in zip(order.rows[::-1], levels[::-1], strict=True):
        reached = level.weight * backward[level.target]
        edges = np.bincount(level.column, level.sums[level.source] * reached, minlength=weights.shape[1])
        marginals[row] = edges / edges.sum()
        backward = np.bincount(level.source, reached, minlength=len(level.sums))
        backward /= backward.max()  # the scale does not matter: each row's probabilities add up to 1
    return log_z, marginals


def _forward(weights: Floats, free: Floats, order: Plan) -> tuple[list[_Step], float]:
    sets, sums, log_z, n_steps = np.zeros(1, dtype=np.uint64), np.ones(1), 0.0, 0
    bits, unused = np.zeros(weights.shape[1], dtype=np.uint64), [np.uint64(1) << np.uint64(b) for b in range(WORD)]
    levels: list[_Step] = []
    for step, row in enumerate(order.rows):
        for column in np.flatnonzero(order.first == step):
            if not unused:
                raise ValueError(f"log_weights: expected at most {WORD} open columns, found more at row {row}")
            bits[column] = unused.pop()
        candidates = np.flatnonzero(weights[row] > 0.0)
        source, place = np.nonzero((sets[:, None] & bits[candidates]) == 0)
        column = candidates[place]
        target, weight = sets[source] | bits[column], weights[row, column]
        for closed in np.flatnonzero(order.last == step):
            used = (target & bits[closed]) != 0
            weight = np.where(used, weight, weight * free[closed])
            target &= ~bits[closed]
            unused.append(bits[closed])
        possible = weight > 0.0
        source, column, weight = source[possible], column[possible], weight[possible]
        n_steps += len(source)
        if n_steps > MOST_STEPS:
            raise ValueError(f"log_weights: expected few candidates per row, found more than {MOST_STEPS} steps in all")
        sets, index = np.unique(target[possible], return_inverse=True)
        levels.append(_Step(source, column, index, weight, sums))
        sums = np.bincount(index, sums[source] * weight, minlength=len(sets))
        largest = float(sums.max())
        log_z += math.log(largest)
        sums /= largest
    return levels, log_z + math.log(float(sums.sum()))


# --- shared -----------------------------------------------------------------------------------------------------------


def _sum_subsets(matrices: Floats, z: Floats) -> None:
    """Fill Z (G,), and put marginals in the place of the weights (G, M, M)."""
    from slatewise.matching.kernels.permanent_subsets import FEW as FEW_MATRICES
    from slatewise.matching.kernels.permanent_subsets import LANES, sum_few, sum_many

    few = len(matrices) < FEW_MATRICES or matrices.shape[1] > FEW
    alpha, beta = np.empty((2, 1 << matrices.shape[1], 1 if few else LANES))
    (sum_few if few else sum_many)(matrices, alpha, beta, z)


def _check_memory(method: str, shape: tuple[int, ...]) -> None:
    needed = table_bytes(method, shape)
    if needed > MOST_BYTES:
        raise ValueError(
            f"log_weights: expected tables of at most {MOST_BYTES >> 20} MiB for method {method!r}, "
            f"found {shape[1]} x {shape[2]}, which needs {needed >> 20} MiB"
        )


def _rounding(size: int, taken_off: Floats) -> Floats:
    """Return what a sum of positive terms may lose: some units per factor, and the digits that scaling took off."""
    return 4.0 * _EPSILON * (4.0 * size + taken_off)


def _off_one(sums: Floats) -> Floats:
    return np.abs(sums - 1.0).max(axis=1)


Solver: TypeAlias = Callable[[Floats, Executor], Sums]
METHODS: dict[str, Solver] = {"subsets": by_subsets, "glynn": by_glynn, "rows": by_rows, "candidates": by_candidates}
