"""Precision, recall, and the break-even point where they are equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.metrics.conventions import Short
from slatewise.metrics.hits import Hits
from slatewise.metrics.measure import Choices, Measure, ratio


@dataclass(frozen=True, kw_only=True)
class Precision(Measure):
    """Share of relevant items among the first k.

    ``P@k = #{relevant items on ranks 1..k} / k``

    Parameters
    ----------
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

    title: ClassVar[str] = "p"
    choices: ClassVar[Choices] = {"short": ("k", "n")}

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        ranks = hits.lengths if self.k is None else np.full(len(hits.lengths), self.k)
        if self.short == "n":
            ranks = np.minimum(ranks, hits.lengths)
        return self.with_empty(ratio(hits.sum(hits.within(self.k)), ranks), hits.count() == 0)


@dataclass(frozen=True, kw_only=True)
class Recall(Measure):
    """Share of the relevant items that stand among the first k.

    ``R@k = #{relevant items on ranks 1..k} / #{relevant items}``

    Examples
    --------
    >>> Recall(2)([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    k: int | None = field(default=None, kw_only=False)
    threshold: float = 1.0

    title: ClassVar[str] = "recall"

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        relevant = hits.count()
        return self.share(hits.sum(hits.within(self.k)), relevant)


@dataclass(frozen=True, kw_only=True)
class BreakEven(Measure):
    """Precision at R, the list's own number of relevant items (trec_eval calls it Rprec).

    ``BEP = #{relevant items on ranks 1..R} / R``

    Examples
    --------
    >>> BreakEven()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.5
    """

    threshold: float = 1.0

    title: ClassVar[str] = "bep"

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        relevant = hits.count()
        return self.share(hits.sum(hits.within(relevant[hits.lists])), relevant)
