"""Where tools disagree about a measure: ties, gains, discounts, empty and short lists, allowed labels.

Every name a constructor takes is looked up here once; :func:`slatewise.metrics.preset` chooses the names that
reproduce one tool.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Floats

Array: TypeAlias = NDArray[Any]

Ties: TypeAlias = Literal["average", "input", "id", "worst", "best", "together"]
"""Which of several items with equal scores comes first:

``"average"``
    none of them: the value is its expectation over all orders of the tied items (scikit-learn's NDCG);
``"input"``
    the item given first (LightGBM, XGBoost, LETOR);
``"id"``
    the larger document id, compared as text (trec_eval);
``"worst"``, ``"best"``
    the least, the most relevant item (CatBoost takes the worst);
``"together"``
    none of them: tied items all enter at the last rank of their group (scikit-learn's average precision).
"""
Gain: TypeAlias = Literal["exp2", "linear", "positive"]
Discount: TypeAlias = Literal["log2", "letor"]
Empty: TypeAlias = Literal[0, 1, "skip"]
"""What a list without a relevant item counts: 0, 1, or nothing (NaN in ``per_list``, left out of the mean)."""
Short: TypeAlias = Literal["k", "n"]
"""What precision divides by when the list has n < k items."""
ShortNDCG: TypeAlias = Literal["whole", "zero"]
"""What NDCG@k of a list of n < k items is: NDCG@n, or 0 (LETOR 4.0)."""
Norm: TypeAlias = Literal["relevant", "reachable"]
"""What AP@k divides by: the R relevant items (trec_eval), or the min(R, k) that fit (LightGBM, XGBoost, CatBoost)."""
ScoreType: TypeAlias = Literal["float64", "float32"]
"""The precision in which scores are compared: trec_eval and XGBoost see ties that float64 does not."""

GAINS: dict[str, Callable[[Floats], Floats]] = {
    "exp2": lambda relevance: np.exp2(relevance) - 1.0,
    "linear": lambda relevance: relevance,
    "positive": lambda relevance: np.maximum(relevance, 0.0),
}
"""What an item of relevance r is worth: ``2**r - 1``, ``r``, ``max(r, 0)``. All grow with r, so the ideal is a sort."""


DISCOUNTS: dict[str, Callable[[int], Floats]] = {
    "log2": lambda ranks: 1.0 / np.log2(np.arange(2.0, ranks + 2.0)),
    # log2(1) = 0 cannot divide: LETOR's script leaves the first rank undiscounted, and log2(2) = 1 the second.
    "letor": lambda ranks: 1.0 / np.log2(np.maximum(np.arange(1.0, ranks + 1.0), 2.0)),
}
"""The weight of rank 1, 2, ...: ``1/log2(rank + 1)``, or LETOR's 1, 1, then ``1/log2(rank)``."""
EMPTY: dict[object, float] = {0: 0.0, 1: 1.0, "skip": float("nan")}


@dataclass(frozen=True)
class Labels:
    """Which relevance a measure accepts; anything else is an error rather than an undefined number."""

    expected: str
    low: float = -np.inf
    high: float = np.inf
    whole: bool = False
    signs: bool = False
    """Whether -1 may stand for 0 throughout."""

    def check(self, relevance: Floats) -> None:
        """Raise ValueError that names the first value outside."""
        seen = relevance
        if self.signs and relevance.min(initial=0.0) < 0:
            seen = (relevance + 1.0) / 2.0  # -1 and 1 become 0 and 1; a 0 among them becomes a fraction, and refused
        wrong = (seen < self.low) | (seen > self.high)
        if self.whole:
            wrong |= seen != np.floor(seen)
        if wrong.any():
            raise ValueError(f"relevance: expected {self.expected}, found {relevance[int(np.argmax(wrong))]:g}")


def grades(largest: int) -> Labels:
    """Accept whole numbers from 0 to ``largest``."""
    return Labels(f"whole numbers from 0 to {largest}", low=0, high=largest, whole=True)


LabelName: TypeAlias = Literal["any", "non-negative", "whole", "binary", "two-valued"]
LABELS: dict[str, Labels] = {
    "any": Labels("any finite number"),
    "non-negative": Labels("numbers >= 0 (a negative gain has no agreed meaning)", low=0),
    "whole": Labels("whole numbers", whole=True),
    "binary": Labels("0 or 1", low=0, high=1, whole=True),
    "two-valued": Labels("0 and 1, or -1 and 1", low=0, high=1, whole=True, signs=True),
}


def check_choice(argument: str, value: object, allowed: Iterable[object]) -> None:
    """Raise ValueError unless the value is one of the allowed names."""
    allowed = list(allowed)
    if value not in allowed:
        raise ValueError(f"{argument}: expected {', '.join(map(repr, allowed))}, found {value!r}")


def check_cutoff(k: int | None) -> None:
    """Raise unless k is None (the whole list) or a whole number >= 1."""
    if k is None:
        return
    try:
        number = operator.index(k)
    except TypeError:
        raise TypeError(f"k: expected a whole number >= 1 or None, found {k!r}") from None
    if isinstance(k, bool) or number < 1:
        raise ValueError(f"k: expected a whole number >= 1 or None, found {k!r}")
    if number >= 1 << 62:
        raise ValueError(f"k: expected a whole number below 2^62, found {k!r}; None takes the whole list")


def check_threshold(threshold: float) -> None:
    """Raise unless the threshold is a positive number: an item of relevance 0 is never relevant."""
    if not 0.0 < threshold < float("inf"):
        raise ValueError(f"threshold: expected a finite number > 0, found {threshold!r}")
