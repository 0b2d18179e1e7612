"""Linear ListNet (Cao et al. 2007): the cross entropy of two distributions over which document comes first.

    L(theta) = - mean_q sum_i softmax(y)_i log softmax(X theta)_i

Convex and smooth. As in the original, iterations stop early: the iterate that ranks the held-out lists best is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.blas import one_blas_thread


@dataclass(frozen=True, eq=False)
class TopOneEntropy:
    """L on rows in list order; list l owns ``offsets[l]:offsets[l + 1]``."""

    X: Floats
    y: Floats
    offsets: Ints

    @property
    def n_params(self) -> int:
        """Length of theta."""
        return self.X.shape[1]

    def value_and_grad(self, params: Floats) -> tuple[float, Floats]:
        """Return L and its gradient."""
        scores = self.X @ params
        log_p = scores - _log_sums(scores, self.offsets)
        n_lists = len(self.offsets) - 1
        slopes = (np.exp(log_p) - self._wanted) / n_lists
        return -float(self._wanted @ log_p) / n_lists, slopes @ self.X

    @cached_property
    def _wanted(self) -> Floats:
        return np.exp(self.y - _log_sums(self.y, self.offsets))


def fit_listnet(loss: TopOneEntropy, quality: Callable[[Floats], float], max_iter: int = 200) -> Floats:
    """Minimize from zero and return the iterate of the highest ``quality``, a measure on held-out lists."""
    best, highest = np.zeros(loss.n_params), -np.inf

    def keep(params: Floats) -> None:
        nonlocal best, highest
        found = quality(params)
        if found > highest:
            best, highest = params.copy(), found

    with one_blas_thread():
        fmin_l_bfgs_b(loss.value_and_grad, np.zeros(loss.n_params), maxiter=max_iter, callback=keep)
    return best


def _log_sums(values: Floats, offsets: Ints) -> Floats:
    """Return log sum exp of each list, once a row."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    largest = np.repeat(np.maximum.reduceat(values, starts), sizes)
    return largest + np.log(np.repeat(np.add.reduceat(np.exp(values - largest), starts), sizes))
