"""What MatchingRanker accepts: every refusal names the argument, what was expected and what was found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.checks import require_in_range
from slatewise.matching.slates import RatedLists

if TYPE_CHECKING:
    from slatewise.matching.ranker import MatchingRanker

Floats: TypeAlias = NDArray[np.float64]

MOST_DOCUMENTS = 20
"""Of a slate: the exact sum doubles with every further one."""
_MOST_DOUBLINGS = 500.0
_MOST_STATES = 1 << 20
"""Counts of documents by grade, but for the most frequent grade, that a whole list is summed over: some 100 MB."""


def check_settings(ranker: MatchingRanker, ratings: Floats) -> None:
    """Raise ValueError unless the parameters can be meant together, and for these ratings."""
    if ranker.M is not None and ranker.subsets == "whole":
        raise ValueError(f"M: expected None with subsets='whole', found {ranker.M}")
    if ranker.surrogate == "max-margin" and ranker.ties == "marginal":
        raise ValueError("ties: expected 'random' with surrogate='max-margin', found 'marginal'")
    check_ratings(ranker, ratings)


def check_ratings(ranker: MatchingRanker, ratings: Floats) -> None:
    """Raise ValueError unless the losses of these ratings, of ``fit`` or of ``loss``, are numbers."""
    require_in_range("y", ratings)
    if ranker.surrogate == "max-margin" and float(np.ptp(ratings)) > _MOST_DOUBLINGS:
        raise ValueError(
            f"y: expected ratings at most {_MOST_DOUBLINGS:g} apart for surrogate='max-margin', where the gain doubles "
            f"with each, found {ratings.min():g} and {ratings.max():g}"
        )


def position_weights(c: ArrayLike, size: int) -> Floats | None:
    """Return c, one weight per position (a rating, for whole lists), best first; None stands for the ratings."""
    if isinstance(c, str):
        return None if c == "rating" else np.arange(size - 1, -1, -1, dtype=np.float64)
    weights = np.asarray(c)
    if weights.shape != (size,) or weights.dtype.kind not in "iuf" or not np.isfinite(weights).all():
        raise ValueError(f"c: expected {size} finite numbers, found {c!r}")
    if (np.diff(weights) > 0).any() or weights[0] == weights[-1]:
        raise ValueError(f"c: expected numbers that fall and never grow, found {weights.tolist()}")
    return weights.astype(np.float64)


def left_out(lists: RatedLists, size: int, shown: int) -> str:
    """Say how many lists have no slate of ``size`` documents with ``shown`` different ratings, and why."""
    there, sizes = lists.n_ratings(), np.diff(lists.offsets)
    single, lacking = there < 2, (there >= 2) & (there < shown)
    reasons = {
        "of a single rating": single,
        f"without {shown} different ratings (absent='skip')": lacking,
        f"of fewer than M = {size} rows": ~single & ~lacking & (sizes < size),
    }
    counts = {why: int(np.count_nonzero(which)) for why, which in reasons.items()}
    why = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"{sum(counts.values())} of {len(lists)} lists are left out: {why}"


def check_grades(ranker: MatchingRanker, lists: RatedLists) -> None:
    """Raise ValueError where whole lists have so many grades that their sum would take all memory."""
    if ranker.subsets != "whole" or ranker.surrogate != "likelihood":
        return
    for start, end in zip(lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), strict=True):
        sizes = np.unique(lists.ratings[start:end], return_counts=True)[1]
        if _states(sizes.tolist()) > _MOST_STATES:
            n = end - start
            most = max(r for r in range(1, n + 1) if _states([n // r] * r) <= _MOST_STATES)
            raise ValueError(
                f"y: expected at most about {most} different relevance grades in a list of {n} rows for "
                f"subsets='whole', found {len(sizes)}: round y to fewer, or learn from slates (subsets=0.4)"
            )


def _states(sizes: list[int]) -> int:
    return math.prod(size + 1 for size in sizes) // (max(sizes) + 1)
