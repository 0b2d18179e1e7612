"""Area under the ROC curve of a list."""

from __future__ import annotations

from dataclasses import dataclass

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import Hits
from slatewise.metrics.conventions import Empty, check_threshold
from slatewise.metrics.measure import Measure, need_retrieved, ratio


@dataclass(frozen=True, kw_only=True)
class AUC(Measure):
    """Share of (relevant, other) pairs with the relevant item first; a tie counts one half under ``ties="average"``.

    ``AUC = 1 - (sum of the R relevant items' ranks, from 0, - R (R - 1) / 2) / (R (n - R))``

    A list with relevant items only, or without any, has no such pair and is ``empty``.

    Parameters
    ----------
    threshold : float
        The smallest relevance that counts as relevant.

    Examples
    --------
    >>> AUC()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    threshold: float = 1.0
    empty: Empty = "skip"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)

    @property
    def name(self) -> str:
        """``"auc"``."""
        return "auc"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        hits = hits.relevant(self.threshold)
        need_retrieved("AUC", hits)
        relevant = hits.count()
        pairs = relevant * (hits.lengths - relevant)
        wrong = hits.sum(hits.first + (hits.size - 1) / 2) - relevant * (relevant - 1) / 2
        return self.with_empty(1.0 - ratio(wrong, pairs), pairs == 0)
