"""NDCG averaged over all cut-offs, LETOR 4.0's MeanNDCG."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slatewise.core.arrays import Floats
from slatewise.metrics._hits import NEVER, Hits
from slatewise.metrics.conventions import DISCOUNTS, GAINS, Discount, Gain, LabelName, Labels, check_choice
from slatewise.metrics.measure import Measure


@dataclass(frozen=True, kw_only=True)
class MeanNDCG(Measure):
    """Mean of NDCG@1, NDCG@2, ..., NDCG@n of a list of n items.

    ``MeanNDCG = (NDCG@1 + ... + NDCG@n) / n``, with NDCG@k as in :class:`slatewise.metrics.NDCG`

    Items that a run left out count in n, and stand on no rank.

    Parameters
    ----------
    gain : {"exp2", "linear", "positive"}
        ``2**r - 1``, ``r``, or ``max(r, 0)``.
    discount : {"log2", "letor"}
        ``1 / log2(rank + 1)``, or LETOR's 1 on ranks 1 and 2, then ``1 / log2(rank)``.

    Examples
    --------
    >>> MeanNDCG(discount="letor")([[0, 1, 0]], [[0.9, 0.5, 0.1]])    # NDCG@1 = 0, NDCG@2 = NDCG@3 = 1
    0.666...
    """

    gain: Gain = "exp2"
    discount: Discount = "log2"
    labels: LabelName | Labels = "non-negative"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gain", self.gain, GAINS)
        check_choice("discount", self.discount, DISCOUNTS)

    @property
    def name(self) -> str:
        """``"mean_ndcg"``."""
        return "mean_ndcg"

    def of_hits(self, hits: Hits) -> Floats:
        """One value per list."""
        n_ranks = hits.judged()
        discount = DISCOUNTS[self.discount](int(n_ranks.max(initial=0)))
        with np.errstate(over="ignore"):
            gain = GAINS[self.gain](hits.relevance)
        values, empty = np.zeros(len(n_ranks)), np.ones(len(n_ranks), dtype=np.bool_)
        bounds = np.concatenate(([0], np.cumsum(hits.count())))
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            weight = discount[: n_ranks[number]]
            others = np.zeros(len(weight) - (end - begin))
            with np.errstate(over="ignore", invalid="ignore"):
                best = np.cumsum(np.sort(np.concatenate((gain[begin:end], others)))[::-1] * weight)
            if not np.isfinite(best).all():
                largest = hits.relevance[begin:end].max()
                raise ValueError(f"relevance: expected gains that add up within float64, found relevance {largest:g}")
            if not len(best) or best[0] <= 0:
                continue
            empty[number] = False
            found = np.zeros(len(weight))
            for first, size, worth in zip(
                hits.first[begin:end].tolist(), hits.size[begin:end].tolist(), gain[begin:end].tolist(), strict=True
            ):
                if first != NEVER:
                    found[first : first + size] += worth / size
            found = np.cumsum(found * weight)
            values[number] = np.mean(np.divide(found, best, out=np.zeros_like(found), where=best > 0))
        return self.with_empty(values, empty)
