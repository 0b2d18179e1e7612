"""How much a violated pair weighs: L(r) / L(D), with L(r) = sum over i <= r of alpha_i and alpha_i = i ** -power.

Power 1 is WARP (harmonic: the top of the list matters most), power 0 counts all ranks alike, the AUC loss.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Singles


def rank_weights(n_items: int, power: float = 1.0) -> Singles:
    """Return the weight of every number of violators, 0 to ``n_items - 1``.

    Examples
    --------
    >>> [round(float(weight), 2) for weight in rank_weights(4)]
    [0.0, 0.48, 0.72, 0.88]
    """
    alpha = np.arange(1, n_items + 1, dtype=np.float64) ** -power
    total = np.cumsum(alpha)
    return np.concatenate(([0.0], total[:-1] / total[-1])).astype(np.float32)
