"""Normalized discounted cumulative gain at one cut-off, and its mean over all cut-offs (LETOR 4.0's MeanNDCG)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.metrics.conventions import (
    DISCOUNTS,
    GAINS,
    Discount,
    Gain,
    LabelName,
    Labels,
    ShortNDCG,
)
from slatewise.metrics.hits import NEVER, Hits
from slatewise.metrics.measure import Choices, Measure, ratio


@dataclass(frozen=True, kw_only=True)
class NDCG(Measure):
    """Discounted gain of the first k items over that of the best possible order.

    ``DCG@k = sum over ranks r <= k of gain(relevance at r) * discount(r),  NDCG@k = DCG@k / max over orders of DCG@k``

    A list whose best order gains nothing is ``empty``.

    Parameters
    ----------
    gain : {"exp2", "linear", "positive"}
        ``2**r - 1``, ``r``, or ``max(r, 0)``.
    discount : {"log2", "letor"}
        ``1 / log2(rank + 1)``, or LETOR's 1 on ranks 1 and 2, then ``1 / log2(rank)``.
    short : {"whole", "zero"}
        What a list of n < k items counts: NDCG of the whole list, or 0, as LETOR 4.0's tool has it.
    at_least : int
        The shortest list that is no error: scikit-learn refuses lists of one item.

    Examples
    --------
    >>> NDCG(2)([[2, 0, 1]], [[0.9, 0.5, 0.1]])
    0.826...
    >>> NDCG(gain="linear")([0, 1, 1, 0], [0.2, 0.1, 0.7, 0.3], qid=["b", "a", "b", "a"])
    0.815...
    """

    k: int | None = field(default=None, kw_only=False)
    gain: Gain = "exp2"
    discount: Discount = "log2"
    short: ShortNDCG = "whole"
    at_least: int = 0
    labels: LabelName | Labels = "non-negative"

    title: ClassVar[str] = "ndcg"
    choices: ClassVar[Choices] = {
        "gain": GAINS,
        "discount": DISCOUNTS,
        "short": ("whole", "zero"),
    }

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
        if np.any(hits.lengths < self.at_least):
            shortest = int(hits.lengths.min())
            raise ValueError(f"scores: expected lists of at least {self.at_least} items, found one of {shortest}")
        judged = hits.judged()
        longest = int(judged.max(initial=0))
        cut = longest if self.k is None else min(self.k, longest)
        table = np.append(DISCOUNTS[self.discount](cut), 0.0)
        gain = GAINS[self.gain]
        relevance, rank = _ideal(hits, judged)
        with np.errstate(over="ignore", invalid="ignore"):
            best = hits.sum(gain(relevance) * table[np.minimum(rank, cut)])
        if not np.isfinite(best).all():
            largest = relevance[~np.isfinite(best)[hits.lists]].max()
            raise ValueError(f"relevance: expected gains that add up within float64, found relevance {largest:g}")
        dcg = hits.sum(gain(hits.relevance) * _expected_discount(hits, table))
        values = ratio(dcg, best)
        if self.short == "zero" and self.k is not None:
            values = np.where(judged < self.k, 0.0, values)
        return self.with_empty(values, best <= 0)


def _expected_discount(hits: Hits, table: Floats) -> Floats:
    """Mean of the discount over the ranks a hit may take; the table ends with the 0 of all ranks past k."""
    cut = len(table) - 1
    begin = np.minimum(hits.first, cut)
    if np.all(hits.size == 1):
        return table[begin]
    up_to = np.concatenate(([0.0], np.cumsum(table[:-1])))
    mean = (up_to[np.minimum(hits.first + hits.size, cut)] - up_to[begin]) / hits.size
    return np.where(hits.size == 1, table[begin], mean)


def _ideal(hits: Hits, judged: Ints) -> tuple[Floats, Ints]:
    """Relevance by falling value inside each list, and the rank of each: negative ones stand at the list's end."""
    values, grade = np.unique(hits.relevance, return_inverse=True)
    relevance = hits.relevance
    if len(values) > 1:
        # List and grade in one integer: one fast sort instead of two keys.
        key = np.sort(hits.lists * len(values) + (len(values) - 1 - grade))
        relevance = values[len(values) - 1 - key % len(values)]
    return relevance, hits.number() + np.where(relevance < 0, (judged - hits.count())[hits.lists], 0)


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

    title: ClassVar[str] = "mean_ndcg"
    choices: ClassVar[Choices] = {"gain": GAINS, "discount": DISCOUNTS}

    def of_hits(self, hits: Hits) -> Floats:
        """Return one value per list."""
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
