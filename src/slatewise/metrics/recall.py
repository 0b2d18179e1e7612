"""Recall at k."""

from __future__ import annotations

from dataclasses import dataclass, field

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import Hits
from slatewise.metrics.conventions import check_cutoff, check_threshold
from slatewise.metrics.measure import Measure, ratio


@dataclass(frozen=True, kw_only=True)
class Recall(Measure):
    """Share of the relevant items that stand among the first k.

    ``R@k = #{relevant items on ranks 1..k} / #{relevant items}``

    Parameters
    ----------
    k : int, optional
        Ranks that count; None: the whole list.
    threshold : float
        The smallest relevance that counts as relevant.

    Examples
    --------
    >>> Recall(2)([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    k: int | None = field(default=None, kw_only=False)
    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cutoff(self.k)
        check_threshold(self.threshold)

    @property
    def name(self) -> str:
        """``"recall@k"``."""
        return "recall" if self.k is None else f"recall@{self.k}"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        hits = hits.relevant(self.threshold)
        relevant = hits.count()
        return self.with_empty(ratio(hits.sum(hits.within(self.k)), relevant), relevant == 0)
