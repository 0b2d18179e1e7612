"""The score of quadratic ranking, as every solver wants it.

    f = sum_i L[i, pos_i] + sum_{i != j} F_ij D[pos_i, pos_j]

The diagonal terms F_ii D[p, p] belong to one item and one position each, so they are part of L here, and the diagonals
of F and D are zero.

*An upper bound* by one assignment (Gilmore 1962, Lawler 1963). Item i on position p meets the other items, each on
another position, so it can add at most

    U[i, p] = L[i, p] + max over matchings of sum_{j != i} F_ij D[p, pos_j]

and that inner maximum pairs the largest of F's row i with the largest of D's row p. No ranking scores more than the
best assignment of U. Reading columns instead of rows bounds the same sum, so the smaller of the two counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.numerics.assignment import best_assignment


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """L, F and D, each (N, N), contiguous, with zero diagonals of F and D."""

    linear: Floats
    item_pairs: Floats
    position_pairs: Floats

    @classmethod
    def of(cls, linear: Floats, item_pairs: Floats, position_pairs: Floats) -> QuadraticForm:
        """Move the diagonals of F and D into L."""
        diagonal = np.outer(np.diagonal(item_pairs), np.diagonal(position_pairs))
        return cls(linear + diagonal, _without_diagonal(item_pairs), _without_diagonal(position_pairs))

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.linear)

    def score(self, order: Ints) -> float:
        """Return f of a ranking."""
        pairs = np.vdot(self.item_pairs[np.ix_(order, order)], self.position_pairs)
        return float(self.linear[order, np.arange(self.n)].sum() + pairs)

    def gradient(self, matrix: Floats) -> Floats:
        """Return df / dP at a doubly stochastic matrix P of items by positions:  L + F P D' + F' P D."""
        items, positions = self.item_pairs, self.position_pairs
        return self.linear + items @ matrix @ positions.T + items.T @ matrix @ positions

    def gradient_at(self, place: Ints) -> Floats:
        """Return df / dP at the ranking that puts item i on position ``place[i]``."""
        items, positions = self.item_pairs, self.position_pairs
        return self.linear + items @ positions.T[place] + items.T @ positions[place]

    def curvature(self, step: Floats) -> float:
        """Return <F, X D X'>, the second-order part of f(P + X)."""
        return float(np.vdot(self.item_pairs, step @ self.position_pairs @ step.T))

    def rounding(self) -> float:
        """Return a difference of scores that rounding alone may explain."""
        largest = [float(np.abs(part).max()) for part in (self.linear, self.item_pairs, self.position_pairs)]
        return 1e-13 * self.n * (largest[0] + self.n * largest[1] * largest[2])

    def upper_bound(self) -> float:
        """Return a number that no ranking's score exceeds (up to rounding)."""
        by_rows = _largest_sum(self.linear, self.item_pairs, self.position_pairs)
        return min(by_rows, _largest_sum(self.linear, self.item_pairs.T, self.position_pairs.T))


def _largest_sum(linear: Floats, item_pairs: Floats, position_pairs: Floats) -> float:
    """Return the sum of the best assignment of U."""
    most = linear + _sorted_rows(item_pairs) @ _sorted_rows(position_pairs).T
    order = best_assignment(most)
    return float(most[order, np.arange(len(order))].sum())


def _sorted_rows(matrix: Floats) -> Floats:
    """Leave the diagonal out of each row and sort the rest."""
    n = len(matrix)
    rest = matrix[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1)
    return np.sort(rest, axis=1)


def _without_diagonal(matrix: Floats) -> Floats:
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)
    return matrix
