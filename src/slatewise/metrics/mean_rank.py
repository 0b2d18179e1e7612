"""Mean rank of the relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import Hits
from slatewise.metrics.conventions import Empty, check_threshold
from slatewise.metrics.measure import Measure, need_retrieved, ratio


@dataclass(frozen=True, kw_only=True)
class MeanRank(Measure):
    """Average rank, from 1, of a list's relevant items. Smaller is better.

    ``mean rank = (1 / R) sum over relevant items of their rank``

    Parameters
    ----------
    threshold : float
        The smallest relevance that counts as relevant.

    Examples
    --------
    >>> MeanRank()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    2.0
    """

    threshold: float = 1.0
    empty: Empty = "skip"

    smaller_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)

    @property
    def name(self) -> str:
        """``"mean_rank"``."""
        return "mean_rank"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        hits = hits.relevant(self.threshold)
        need_retrieved("mean rank", hits)
        relevant = hits.count()
        return self.with_empty(ratio(hits.sum(hits.first + (hits.size + 1) / 2), relevant), relevant == 0)
