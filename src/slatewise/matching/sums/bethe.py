"""The Bethe permanent: a lower bound on Z and approximate marginals, in milliseconds at any size.

    log Z_B = max over P of  sum_ij P_ij w_ij - P_ij log P_ij + (1 - P_ij) log(1 - P_ij)  -  sum_j s_j log s_j
    rows of P sum to 1,  columns to 1 - s_j,  s_j = 0 for square matrices

Z_B <= Z (Gurvits 2011), and Z <= 2^{M/2} Z_B for square matrices (Anari and Rezaei 2019). The function is concave, and
d log Z_B / d w_ij = P_ij: a smooth stand-in for log Z in training.
"""

from __future__ import annotations

import warnings

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.groups import blocks
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.matching.sums.exact import Sums, scale

ROUNDS, TOLERANCE = 5000, 1e-10


class BetheWarning(UserWarning):
    """Belief propagation did not come to rest; the bound still holds up to the accuracy that was reached."""


def by_bethe(log_weights: Floats, executor: Executor = ONE_THREAD) -> Sums:
    """Return log Z_B, its P, and how far above it log Z can be: inf where there are more columns than rows."""
    from slatewise.matching.kernels.bethe import propagate

    count, n_rows, n_columns = log_weights.shape
    gap = n_rows * np.log(2.0) / 2.0 if n_rows == n_columns else np.inf
    sums = Sums(np.empty(count), np.empty(log_weights.shape), np.full(count, gap))
    at_work = np.zeros(count, dtype=np.int64)

    def fill(block: slice) -> None:
        scaled = scale(log_weights[block], np.arange(count, dtype=np.int64)[block])
        free = np.exp(-scaled.v) if n_rows < n_columns else np.zeros(scaled.v.shape)
        beliefs = np.empty(scaled.weights.shape)
        at_work[block.start] = propagate(scaled.weights, free, ROUNDS, TOLERANCE, beliefs)
        sums.marginals[block] = beliefs
        sums.log_z[block] = _value(scaled.weights, free, beliefs) + scaled.offset

    executor.fill_blocks(fill, blocks(count, max(1, 16_384 // (n_rows * n_columns))))
    restless = int(at_work.sum())
    if restless:
        warnings.warn(f"Bethe: {restless} of {count} matrices not at rest after {ROUNDS} rounds", BetheWarning, 3)
    return sums


def _value(weights: Floats, free: Floats, beliefs: Floats) -> Floats:
    """Return the Bethe function; an unused column weighs ``free``, and 0 log 0 = 0."""
    energy = beliefs * np.log(np.where(beliefs > 0.0, weights, 1.0))
    entropy = -_times_log(beliefs, beliefs) + _times_log(1.0 - beliefs, 1.0 - beliefs)
    unused = np.maximum(1.0 - beliefs.sum(axis=1), 0.0) * (free > 0.0)
    spare = unused * np.log(np.where(free > 0.0, free, 1.0)) - _times_log(unused, unused)
    return (energy + entropy).sum(axis=(1, 2)) + spare.sum(axis=1)


def _times_log(factor: Floats, x: Floats) -> Floats:
    return factor * np.log(np.where(x > 0.0, x, 1.0))
