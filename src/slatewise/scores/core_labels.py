"""Which labels to put into the core: greedily, those that say most about all others together.

    next = argmax over c of   sum over the other labels i of  I( z_i ; z_core, z_c )

The joint of the core is a table of its 2^C settings, counted over the training rows by weight, with half a count added
to every cell, so that a setting seen once does not look like knowledge.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_SMOOTHING = 0.5


def greedy_core(Y: Floats, size: int, weight: Floats | None = None) -> Ints:
    """Return ``size`` labels of Y (n, N) 0/1, in the order in which they were chosen.

    Examples
    --------
    Label 0 decides labels 1 and 2; label 3 is noise.

    >>> Y = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]] * 5, dtype=float)
    >>> int(greedy_core(Y, 1)[0]) in (0, 1, 2)
    True
    """
    n, n_labels = len(Y), int(Y.shape[1])
    weight = np.ones(n) if weight is None else weight
    core: list[int] = []
    setting = np.zeros(n, dtype=np.int64)
    while len(core) < size:
        rest = np.setdiff1d(np.arange(n_labels), np.array(core, dtype=np.int64))
        gains = [_information(Y, 2 * setting + Y[:, c].astype(np.int64), rest[rest != c], weight) for c in rest]
        chosen = int(rest[int(np.argmax(gains))])
        # Settings that never occur need no row in the table: number those that do.
        setting = np.unique(2 * setting + Y[:, chosen].astype(np.int64), return_inverse=True)[1]
        core.append(chosen)
    return np.array(core, dtype=np.int64)


def _information(Y: Floats, setting: Ints, others: Ints, weight: Floats) -> float:
    """Sum over ``others`` of the mutual information with the setting, in nats."""
    seen, row = np.unique(setting, return_inverse=True)
    count = np.bincount(row, weights=weight, minlength=len(seen))
    ones = np.zeros((len(seen), len(others)))
    np.add.at(ones, row, weight[:, None] * Y[:, others])
    table = np.stack([count[:, None] - ones, ones]) + _SMOOTHING
    table /= table.sum(axis=(0, 1))
    outer = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    return float((table * np.log(table / outer)).sum())
