"""The score of quadratic ranking, as every solver wants it.

    f = sum_i L[i, pos_i] + sum_{i != j} F_ij D[pos_i, pos_j]

The diagonal terms F_ii D[p, p] belong to one item and one position each, so they are part of L here, and the diagonals
of F and D are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints


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


def _without_diagonal(matrix: Floats) -> Floats:
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)
    return matrix
