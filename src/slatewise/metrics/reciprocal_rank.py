"""Reciprocal rank of the first relevant item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.metrics.hits import Hits
from slatewise.metrics.measure import Measure


@dataclass(frozen=True, kw_only=True)
class RR(Measure):
    """One over the rank of the first relevant item; its mean over lists is MRR.

    ``RR@k = 1 / rank of the first relevant item``, 0 where that rank is past k

    Examples
    --------
    >>> RR()([[0, 1, 1]], [[0.9, 0.5, 0.1]])
    0.5
    >>> RR()([[0, 1, 0]], [[1, 1, 1]])    # on rank 1, 2 or 3 with equal chance: (1 + 1/2 + 1/3) / 3
    0.611...
    """

    k: int | None = field(default=None, kw_only=False)
    threshold: float = 1.0

    title: ClassVar[str] = "mrr"

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        count = hits.count()
        lists = np.flatnonzero(count)
        leader = (np.cumsum(count) - count)[lists]
        first, size = hits.first[leader], hits.size[leader]
        cut = int(hits.lengths.max(initial=0)) if self.k is None else self.k
        values = np.zeros(len(count))
        values[lists] = np.where(first < cut, 1.0 / (first + 1), 0.0)
        tied = size > 1
        if tied.any():
            lead = np.repeat(first, count[lists])
            relevant = np.bincount(hits.lists[hits.first == lead], minlength=len(count))[lists]
            # The expectation depends on the group alone, and few different groups occur.
            groups, which = np.unique(np.stack((first, size, relevant))[:, tied], axis=1, return_inverse=True)
            expected = [_expected(above, ranks, inside, cut) for above, ranks, inside in groups.T.tolist()]
            values[lists[tied]] = np.array(expected)[which.ravel()]
        return self.with_empty(values, count == 0)


def _expected(above: int, size: int, relevant: int, k: int) -> float:
    """E[1 / rank] of the first of ``relevant`` items shuffled among ``size`` ranks after ``above`` others.

    P(first at j) = C(size - j, relevant - 1) / C(size, relevant), as a running product.
    """
    rank = np.arange(above, above + size - relevant + 1)
    left = np.arange(size, relevant - 1, -1)
    none_before = np.cumprod(np.concatenate(([1.0], (left[:-1] - relevant) / left[:-1])))
    here = none_before * relevant / left
    return float(np.sum((here / (rank + 1))[rank < k]))
