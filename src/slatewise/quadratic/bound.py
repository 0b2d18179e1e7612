"""An upper bound on the best quadratic score, by one assignment (Gilmore 1962, Lawler 1963).

Item i on position p meets the other items, each on another position, so it can add at most

    U[i, p] = L[i, p] + max over matchings of sum_{j != i} F_ij D[p, pos_j]

and that inner maximum pairs the largest of F's row i with the largest of D's row p. No ranking scores more than the
best assignment of U. Reading columns instead of rows bounds the same sum, so the smaller of the two counts.
"""

from __future__ import annotations

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.core.numerics.assignment import best_assignment
from slatewise.quadratic.form import QuadraticForm


def upper_bound(form: QuadraticForm) -> float:
    """Return a number that no ranking's score exceeds (up to rounding)."""
    by_rows = _best(form.linear, form.item_pairs, form.position_pairs)
    by_columns = _best(form.linear, form.item_pairs.T, form.position_pairs.T)
    return min(by_rows, by_columns)


def _best(linear: Floats, item_pairs: Floats, position_pairs: Floats) -> float:
    most = linear + _sorted_rows(item_pairs) @ _sorted_rows(position_pairs).T
    order = best_assignment(most)
    return float(most[order, np.arange(len(order))].sum())


def _sorted_rows(matrix: Floats) -> Floats:
    """Leave the diagonal out of each row and sort the rest."""
    n = len(matrix)
    rest = matrix[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1)
    return np.sort(rest, axis=1)
