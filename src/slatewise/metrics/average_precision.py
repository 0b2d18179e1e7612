"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.metrics.conventions import Norm
from slatewise.metrics.hits import Hits
from slatewise.metrics.measure import Choices, Measure, ratio


@dataclass(frozen=True, kw_only=True)
class AP(Measure):
    """Mean of the precisions at the ranks of the relevant items; its mean over lists is MAP.

    ``AP@k = (1 / R) sum over relevant items on ranks r <= k of P@r``

    Tied group of m items after a others, with h relevant items before and r inside (``ties="average"``): rank a + j,
    j = 1..m, holds a relevant item with chance r / m, and then ``h + 1 + (j - 1)(r - 1) / (m - 1)`` relevant items are
    expected up to there.

    Parameters
    ----------
    norm : {"relevant", "reachable"}
        Divide by the R relevant items, or by the min(R, k) that can stand on the first k ranks.

    Examples
    --------
    >>> AP()([[1, 0, 1]], [[0.9, 0.5, 0.1]])
    0.833...
    """

    k: int | None = field(default=None, kw_only=False)
    threshold: float = 1.0
    norm: Norm = "relevant"

    tie_rules: ClassVar[tuple[str, ...]] = ("average", "input", "id", "worst", "best", "together")

    title: ClassVar[str] = "map"
    choices: ClassVar[Choices] = {"norm": ("relevant", "reachable")}

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        hits = hits.relevant(self.threshold)
        relevant = hits.count()
        cut = int(hits.lengths.max(initial=0)) if self.k is None else self.k
        reach = np.minimum(relevant, cut) if self.norm == "reachable" else relevant
        number = hits.number()
        new_group = np.ones(len(hits.lists), dtype=np.bool_)
        new_group[1:] = (hits.lists[1:] != hits.lists[:-1]) | (hits.first[1:] != hits.first[:-1])
        if new_group.all() and np.all(hits.size == 1):
            seen = hits.first < cut
            total = hits.sum(np.where(seen, (number + 1) / (hits.first + 1), 0.0))
        else:
            total = _expected(hits, number, np.flatnonzero(new_group), cut)
        return self.with_empty(ratio(total, reach), relevant == 0)


def _expected(hits: Hits, number: Ints, leaders: Ints, cut: int) -> Floats:
    """Sum of precisions, group by group: the formula above, one term a rank."""
    inside = np.diff(leaders, append=len(hits.lists))
    lists, above, size, before = hits.lists[leaders], hits.first[leaders], hits.size[leaders], number[leaders]
    group = np.repeat(np.arange(len(leaders)), size)
    step = np.arange(len(group)) - (np.cumsum(size) - size)[group]
    rank = above[group] + step
    # A group of one rank holds all its items there: that is what ties="together" asks for.
    share = np.where(size[group] > 1, step / np.maximum(size[group] - 1, 1), 1.0)
    up_to_here = before[group] + 1 + (inside[group] - 1) * share
    term = inside[group] / size[group] * up_to_here / (rank + 1)
    weights = np.where(rank < cut, term, 0.0)
    return np.bincount(lists[group], weights=weights, minlength=len(hits.lengths)).astype(np.float64, copy=False)
