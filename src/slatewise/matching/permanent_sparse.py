"""Exact sums over matchings when each row has few candidates: a walk over the subsets of columns that can be reached.

    alpha_i[S] = sum_{j in S} B_ij alpha_{i-1}[S - j],     S only over sets that the first rows can take

A column that no later row wants leaves the set: whether it was used is settled, and sets that differ in it alone become
one. With candidates near the diagonal few sets are left, at any M. Rows are first ordered to bring those that share
candidates together (reverse Cuthill-McKee).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from slatewise.core.arrays import Bools, Floats, Ints
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.permanent_exact import Sums, scale, slices

MOST_STEPS = 1 << 25
"""Walks with more steps from set to set than this are refused (some 50 bytes each)."""
WORD = 64


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

    executor.fill_blocks(fill, slices(count, 1))
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
