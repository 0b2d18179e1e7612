"""AdaRank (Xu and Li 2007): boosting single features for any measure E of a ranking, with E in [-1, 1].

    f_t = the feature, up or down, with the largest sum_q P_t(q) E(q, f)
    alpha_t = 1/2 log( sum_q P_t(q) (1 + E(q, f_t)) / sum_q P_t(q) (1 - E(q, f_t)) )
    P_{t+1}(q) ~ exp(-E(q, alpha_1 f_1 + .. + alpha_t f_t))

A list that is ranked badly counts more in the next round. The round that ranks the held-out lists best is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slatewise.core.arrays import Floats


def fit_adarank(
    X: Floats,
    per_list: Callable[[Floats], Floats],
    quality: Callable[[Floats], float],
    max_rounds: int = 100,
    patience: int = 20,
) -> Floats:
    """Return one weight a feature.

    Parameters
    ----------
    X
        Training rows.
    per_list
        The measure of every training list, from one score per row.
    quality
        The same measure on held-out lists, from the weights: chooses the round, and ends training after ``patience``
        rounds that did not raise it.
    """
    n_features = X.shape[1]
    weak = np.array([per_list(sign * X[:, feature]) for feature in range(n_features) for sign in (1.0, -1.0)])
    params, best, highest, waited = np.zeros(n_features), np.zeros(n_features), -np.inf, 0
    share = np.full(weak.shape[1], 1.0 / weak.shape[1])
    for _ in range(max_rounds):
        chosen = int(np.argmax(weak @ share))
        right, wrong = float(share @ (1.0 + weak[chosen])), float(share @ (1.0 - weak[chosen]))
        params[chosen // 2] += (1 - 2 * (chosen % 2)) * 0.5 * np.log(right / max(wrong, 1e-12))
        found, waited = quality(params), waited + 1
        if found > highest:
            best, highest, waited = params.copy(), found, 0
        if waited >= patience:
            break
        share = np.exp(-per_list(X @ params))
        share /= share.sum()
    return best
