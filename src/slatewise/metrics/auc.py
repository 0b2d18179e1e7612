"""Measures of all ranks: the area under the ROC curve of a list, and the mean rank of its relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slatewise.core.arrays import Floats
from slatewise.metrics.conventions import Empty
from slatewise.metrics.hits import Hits
from slatewise.metrics.measure import Measure, need_retrieved, ratio


@dataclass(frozen=True, kw_only=True)
class AUC(Measure):
    """Share of (relevant, other) pairs with the relevant item first; a tie counts one half under ``ties="average"``.

    ``AUC = 1 - (sum of the R relevant items' ranks, from 0, - R (R - 1) / 2) / (R (n - R))``

    A list with relevant items only, or without any, has no such pair and is ``empty``.

    Examples
    --------
    >>> AUC()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    threshold: float = 1.0
    empty: Empty = "skip"

    title: ClassVar[str] = "auc"

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        need_retrieved("AUC", hits)
        relevant = hits.count()
        pairs = relevant * (hits.lengths - relevant)
        wrong = hits.sum(hits.first + (hits.size - 1) / 2) - relevant * (relevant - 1) / 2
        return self.with_empty(1.0 - ratio(wrong, pairs), pairs == 0)


@dataclass(frozen=True, kw_only=True)
class MeanRank(Measure):
    """Average rank, from 1, of a list's relevant items. Smaller is better.

    ``mean rank = (1 / R) sum over relevant items of their rank``

    Examples
    --------
    >>> MeanRank()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    2.0
    """

    threshold: float = 1.0
    empty: Empty = "skip"

    smaller_is_better: ClassVar[bool] = True

    title: ClassVar[str] = "mean_rank"

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        need_retrieved("mean rank", hits)
        relevant = hits.count()
        return self.share(hits.sum(hits.first + (hits.size + 1) / 2), relevant)
