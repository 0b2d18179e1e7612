"""Precision at k."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import Hits
from slatewise.metrics.conventions import Short, check_choice, check_cutoff, check_threshold
from slatewise.metrics.measure import Measure, ratio


@dataclass(frozen=True, kw_only=True)
class Precision(Measure):
    """Share of relevant items among the first k.

    ``P@k = #{relevant items on ranks 1..k} / k``

    Parameters
    ----------
    k : int, optional
        Ranks that count; None: the whole list.
    threshold : float
        The smallest relevance that counts as relevant.
    short : {"k", "n"}
        What to divide by where the list has n < k items.

    Examples
    --------
    >>> Precision(2)([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    k: int | None = field(default=None, kw_only=False)
    threshold: float = 1.0
    short: Short = "k"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cutoff(self.k)
        check_threshold(self.threshold)
        check_choice("short", self.short, ("k", "n"))

    @property
    def name(self) -> str:
        """``"p@k"``."""
        return "p" if self.k is None else f"p@{self.k}"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        hits = hits.relevant(self.threshold)
        ranks = hits.lengths if self.k is None else np.full(len(hits.lengths), self.k)
        if self.short == "n":
            ranks = np.minimum(ranks, hits.lengths)
        return self.with_empty(ratio(hits.sum(hits.within(self.k)), ranks), hits.count() == 0)
