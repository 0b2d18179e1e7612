"""What MatchingRanker accepts: every refusal names the argument, what was expected and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.lists.checks import require_in_range

if TYPE_CHECKING:
    from slatewise.estimators.matching import MatchingRanker

Floats: TypeAlias = NDArray[np.float64]

MOST_DOCUMENTS = 20
"""Of a slate: the exact sum doubles with every further one."""
_MOST_DOUBLINGS = 500.0


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
    """Return c, one weight a position (a rating, for whole lists), best first; None stands for the ratings."""
    if isinstance(c, str):
        return None if c == "rating" else np.arange(size - 1, -1, -1, dtype=np.float64)
    weights = np.asarray(c)
    if weights.shape != (size,) or weights.dtype.kind not in "iuf" or not np.isfinite(weights).all():
        raise ValueError(f"c: expected {size} finite numbers, found {c!r}")
    if (np.diff(weights) > 0).any() or weights[0] == weights[-1]:
        raise ValueError(f"c: expected numbers that fall and never grow, found {weights.tolist()}")
    return weights.astype(np.float64)
