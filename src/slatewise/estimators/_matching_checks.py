"""What MatchingRanker accepts: every refusal names the argument, what was expected and what was found."""

from __future__ import annotations

from numbers import Real
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
_CHOICES = {"ties": ("random", "marginal"), "surrogate": ("likelihood", "max-margin")}


def check_settings(ranker: MatchingRanker, ratings: Floats) -> None:
    """Raise ValueError unless the parameters can be meant, together and for these ratings."""
    for name, allowed in _CHOICES.items():
        if getattr(ranker, name) not in allowed:
            raise ValueError(f"{name}: expected one of {', '.join(allowed)}, found {getattr(ranker, name)!r}")
    if isinstance(ranker.c, str) and ranker.c not in ("linear", "rating"):
        raise ValueError(f"c: expected 'linear', 'rating' or numbers, found {ranker.c!r}")
    if ranker.subsets not in ("all", "whole") and not _positive(ranker.subsets):
        raise ValueError(f"subsets: expected a number > 0, 'all' or 'whole', found {ranker.subsets!r}")
    if ranker.M is not None and (not _whole(ranker.M) or not 2 <= ranker.M <= MOST_DOCUMENTS):
        raise ValueError(f"M: expected a whole number from 2 to {MOST_DOCUMENTS} or None, found {ranker.M!r}")
    if ranker.M is not None and ranker.subsets == "whole":
        raise ValueError(f"M: expected None with subsets='whole', found {ranker.M}")
    if not _whole(ranker.repeats) or ranker.repeats < 1:
        raise ValueError(f"repeats: expected a whole number >= 1, found {ranker.repeats!r}")
    for name, value in {"l2": ranker.l2, "tol": ranker.tol, "max_iter": ranker.max_iter}.items():
        if not _positive(value) and (name, value) not in (("l2", "auto"), ("tol", None)):
            raise ValueError(f"{name}: expected a finite number > 0, found {value!r}")
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


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _positive(value: object) -> bool:
    return isinstance(value, Real) and value is not True and 0 < float(value) < np.inf
