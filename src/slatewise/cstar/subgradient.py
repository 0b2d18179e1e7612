"""Averaged adaptive subgradient steps: a few passes, no inner problem, no lower bound.

    w <- w - step / sqrt(sum of squared gradients so far) * (r w + C g_batch) ,      result: the mean of the last half

The objective at the mean is reported with the trivial bound 0, so a fit by this solver never claims to be converged;
use it for a first look, or where inference is too slow for the others.
"""

from __future__ import annotations

import warnings

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.numerics.result import ConvergenceWarning, Fit, Round
from slatewise.core.running.blas import one_blas_thread
from slatewise.cstar.hinge import StarHinge

BATCH = 32


def subgradient(
    hinge: StarHinge, weights: Floats, C: float, *, max_iter: int = 50, step: float = 0.1, random_state: int = 0
) -> Fit:
    """Take ``max_iter`` passes over the lists."""
    w, mean, squares = np.zeros(len(weights)), np.zeros(len(weights)), np.full(len(weights), 1e-12)
    averaged = 0
    with one_blas_thread():
        for epoch in range(max_iter):
            order = np.random.default_rng((random_state, epoch)).permutation(hinge.problem.n_lists)
            for start in range(0, len(order), BATCH):
                lists = np.sort(order[start : start + BATCH])
                gradient = weights * w + C * hinge.part(lists).cut(w)[1]
                squares += gradient**2
                w -= step * gradient / np.sqrt(squares)
                if 2 * epoch >= max_iter:
                    averaged += 1
                    mean += (w - mean) / averaged
        objective = 0.5 * float(mean @ (weights * mean)) + C * hinge.risk(mean)
    last = Round(max_iter, objective, 0.0)
    warnings.warn(
        f"subgradient steps prove no bound: after {max_iter} passes the objective is {objective:.6g}, at an unknown "
        "distance from the minimum; solver='bcfw' and 'bundle' certify theirs",
        ConvergenceWarning,
        stacklevel=2,
    )
    return Fit(mean, objective, 0.0, False, (last,))
