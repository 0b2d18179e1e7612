"""The learned distance of two points, the same bits in both directions.

    d(u, v)^2 = |L phi(u) - L phi(v)|^2 ,    phi(x) = x, or the kernel values with the basis rows

Summed from differences: products of points would round differently in (u, v) and (v, u), and leave something between
equal points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from slatewise.core.row_kernels import RowKernel

Floats: TypeAlias = NDArray[np.float64]


def squared_distances(points: Floats, others: Floats) -> Floats:
    """Return |p - o|^2 of all pairs of mapped rows, (points, others).

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[25.,  0.]])
    """
    if not points.shape[1]:
        return np.zeros((len(points), len(others)))
    return cdist(points, others, "sqeuclidean")


@dataclass(frozen=True, eq=False)
class LearnedDistance:
    """A function of two rows; what ``get_metric`` returns."""

    components: Floats
    """L."""
    kernel: RowKernel | None
    basis: NDArray[Any]

    def __call__(self, u: ArrayLike, v: ArrayLike) -> float:
        """Return the distance, not squared, of two rows of features."""
        rows = np.array([u, v], dtype=np.float64)
        values = rows if self.kernel is None else self.kernel.compare(rows, self.basis)
        return float(np.linalg.norm(self.components @ (values[0] - values[1])))
