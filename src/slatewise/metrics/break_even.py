"""Break-even precision: the point where precision equals recall."""

from __future__ import annotations

from dataclasses import dataclass

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import Hits
from slatewise.metrics.conventions import check_threshold
from slatewise.metrics.measure import Measure, ratio


@dataclass(frozen=True, kw_only=True)
class BreakEven(Measure):
    """Precision at R, the list's own number of relevant items (trec_eval calls it Rprec).

    ``BEP = #{relevant items on ranks 1..R} / R``

    Parameters
    ----------
    threshold : float
        The smallest relevance that counts as relevant.

    Examples
    --------
    >>> BreakEven()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)

    @property
    def name(self) -> str:
        """``"bep"``."""
        return "bep"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        hits = hits.relevant(self.threshold)
        relevant = hits.count()
        return self.with_empty(ratio(hits.sum(hits.within(relevant[hits.lists])), relevant), relevant == 0)
