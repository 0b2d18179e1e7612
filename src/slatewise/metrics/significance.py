"""Is one system better than another on the same lists? Two answers from the per-list values of both.

With differences ``d_l = a_l - b_l``:

* paired bootstrap: draw lists with replacement; quantiles of ``mean(d*)`` are a confidence interval of the mean
  difference (Efron's percentile interval);
* randomisation test: if the systems were alike, each ``d_l`` could as well have the other sign; the p value is the
  share of sign patterns with ``|mean(+-d)| >= |mean(d)|`` (Fisher).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Floats
from slatewise.core.checks import real_numbers, require_in_range

_BLOCK_VALUES = 1 << 20
_MOST_ENUMERATED = 16


@dataclass(frozen=True)
class Bootstrap:
    """Mean difference a - b with its confidence interval; 0 outside ``low..high`` speaks for a real difference."""

    difference: float
    low: float
    high: float
    confidence: float
    n: int


@dataclass(frozen=True)
class Randomisation:
    """Mean difference a - b and its two-sided p value; ``exact`` where every sign pattern was tried."""

    difference: float
    p_value: float
    exact: bool
    n: int


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    n: int = 10_000,
    *,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
) -> Bootstrap:
    """Confidence interval of the mean difference of two systems.

    Parameters
    ----------
    a, b : array-like of shape (n_lists,)
        Per-list values of the two systems; a list that is NaN (skipped) in both is left out.
    n : int
        Resamples.
    confidence : float
        Coverage of the interval.
    random_state : int or Generator, optional
        Seed.

    Examples
    --------
    >>> found = paired_bootstrap([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4], random_state=0)
    >>> round(found.difference, 3), found.low > 0
    (0.3, True)
    """
    difference = _differences(a, b)
    _check_count(n)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence: expected a number between 0 and 1, found {confidence!r}")
    rng = np.random.default_rng(random_state)
    lists = len(difference)
    means = np.concatenate(
        [difference[rng.integers(lists, size=(rows, lists))].mean(axis=1) for rows in _rows(n, lists)]
    )
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Bootstrap(float(difference.mean()), float(low), float(high), confidence, n)


def randomisation_test(
    a: ArrayLike, b: ArrayLike, n: int = 10_000, *, random_state: int | np.random.Generator | None = None
) -> Randomisation:
    """Two-sided sign-flip test of the mean difference of two systems.

    With at most 16 lists all sign patterns are tried and the p value is exact; otherwise ``n`` are drawn and the
    p value is ``(1 + hits) / (1 + n)``, which never claims more than the draws can show.

    Parameters
    ----------
    a, b : array-like of shape (n_lists,)
        Per-list values of the two systems; a list that is NaN (skipped) in both is left out.
    n : int
        Sign patterns drawn where there are too many to try.
    random_state : int or Generator, optional
        Seed.

    Examples
    --------
    >>> randomisation_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.4]).p_value
    0.125
    """
    difference = _differences(a, b)
    _check_count(n)
    lists = len(difference)
    observed = abs(float(difference.sum()))
    # Patterns that equal the observed one in exact arithmetic must count, whatever order they were added in.
    bar = observed - 1e-12 * float(np.abs(difference).sum())
    if lists <= _MOST_ENUMERATED:
        patterns = (np.arange(1 << lists)[:, None] >> np.arange(lists)) & 1
        p_value = float(np.mean(np.abs((1.0 - 2.0 * patterns) @ difference) >= bar))
        return Randomisation(float(difference.mean()), p_value, True, 1 << lists)
    rng = np.random.default_rng(random_state)
    hits = 0
    for rows in _rows(n, lists):
        signs = 1.0 - 2.0 * rng.integers(2, size=(rows, lists))
        hits += int(np.count_nonzero(np.abs(signs @ difference) >= bar))
    return Randomisation(float(difference.mean()), (1 + hits) / (1 + n), False, n)


def _rows(n: int, lists: int) -> Iterator[int]:
    """Cut n draws into blocks whose size depends on the data only."""
    step = max(1, _BLOCK_VALUES // lists)
    for begin in range(0, n, step):
        yield min(step, n - begin)


def _check_count(n: int) -> None:
    if n < 1:
        raise ValueError(f"n: expected a whole number >= 1, found {n!r}")


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
    left, right = real_numbers("a", a), real_numbers("b", b)
    if left.ndim != 1 or left.shape != right.shape:
        raise ValueError(
            f"b: expected one value per list, as many as a has, found shapes {left.shape} and {right.shape}"
        )
    skipped = np.isnan(left)
    if np.any(skipped != np.isnan(right)):
        place = int(np.argmax(skipped != np.isnan(right)))
        raise ValueError(f"b[{place}]: expected the same lists to be skipped in a and b, found NaN in one of them")
    if skipped.all():
        raise ValueError("a: expected at least one list that is not skipped, found none")
    for name, values in (("a", left), ("b", right)):
        require_in_range(name, values[~skipped])
    return (left - right)[~skipped]
