"""The matching with the largest sum of weights: a linear assignment, with dummy columns if rows may stay unmatched.

max over matchings y of  sum over matched rows i of w_{i, y(i)}  +  u * (number of unmatched rows)
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from slatewise.core.arrays import Floats, Ints


def best_matchings(weights: Floats, unmatched: float | None = None) -> Ints:
    """Return the column of every row, -1 where it has none.

    Parameters
    ----------
    weights : array of shape (B, M, N)
        Finite; as many graphs as B. Without ``unmatched``, M <= N.
    unmatched : float, optional
        The weight of leaving a row unmatched. None: every row is matched.

    Examples
    --------
    >>> best_matchings(np.array([[[3.0, 2.0], [2.0, -5.0]]])).tolist()
    [[1, 0]]
    >>> best_matchings(np.array([[[3.0, 2.0], [2.0, -5.0]]]), unmatched=1.5).tolist()
    [[0, -1]]
    """
    n_graphs, n_rows, n_columns = weights.shape
    found = np.empty((n_graphs, n_rows), dtype=np.int64)
    if unmatched is None:
        for graph, columns in zip(weights, found, strict=True):
            columns[:] = linear_sum_assignment(graph, maximize=True)[1]
        return found
    # One shared weight for leaving a row out: n_rows equal columns hold no more matchings than private ones would.
    rows_and_dummies = np.full((n_rows, n_columns + n_rows), unmatched)
    for graph, columns in zip(weights, found, strict=True):
        rows_and_dummies[:, :n_columns] = graph
        columns[:] = linear_sum_assignment(rows_and_dummies, maximize=True)[1]
    found[found >= n_columns] = -1
    return found
