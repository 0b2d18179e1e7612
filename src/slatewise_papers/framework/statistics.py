"""Means with their errors, and differences of two methods with p values or intervals.

A figure's name with ``_se`` is its standard error, with ``_low`` and ``_high`` its 95% interval, with ``_p`` its p
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from slatewise import metrics
from slatewise.core.arrays import Floats, Ints


def mean_and_error(name: str, values: Sequence[float]) -> dict[str, float]:
    """Return the mean of a figure over splits, and its standard error where there are several.

    Examples
    --------
    >>> mean_and_error("error", [1.0, 3.0])
    {'error': 2.0, 'error_se': 1.0}
    """
    measured = {name: float(np.mean(values))}
    if len(values) > 1:
        measured[f"{name}_se"] = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return measured


def compared(
    names: Iterable[str], one: Iterable[Floats], other: Iterable[Floats], *, n_flips: int | None = None
) -> dict[str, float]:
    """Return the mean difference of each figure and its p value by randomization; a value per list and figure."""
    measured: dict[str, float] = {}
    more = () if n_flips is None else (n_flips,)
    for name, ours, theirs in zip(names, one, other, strict=True):
        test = metrics.randomisation_test(ours, theirs, *more, random_state=0)
        measured |= {name: test.difference, f"{name}_p": test.p_value}
    return measured


def sums_of_groups(values: Floats, group: NDArray[np.generic], factor: float = 1.0) -> Floats:
    """Add up the values of each group, scaled so that the mean over groups is ``factor`` times the mean over rows."""
    _, own = np.unique(group, return_inverse=True)
    share = (int(own.max()) + 1) / len(own)
    return np.asarray(factor * share * np.bincount(own, weights=values), dtype=np.float64)


def with_interval(name: str, mean: float, reach: float) -> dict[str, float]:
    """Return a figure with the ends of its interval."""
    return {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}


def paired_by_row(names: Sequence[str], rows: Ints, values: Floats) -> dict[str, float]:
    """Return the mean of each figure's differences over distinct rows, and its 95% interval (Student's).

    A row that several splits tested counts once, with the mean of its differences: else it would pass for several rows.

    Examples
    --------
    >>> found = paired_by_row(["Q0"], np.array([3, 4, 3]), np.array([[1.0], [0.0], [3.0]]))
    >>> found["Q0"], round(found["Q0_low"], 1), round(found["Q0_high"], 1)
    (1.0, -11.7, 13.7)
    """
    _, row = np.unique(rows, return_inverse=True)
    times, measured = np.bincount(row), dict[str, float]()
    for name, column in zip(names, values.T, strict=True):
        of_row = np.bincount(row, column) / times
        error = float(of_row.std(ddof=1) / np.sqrt(len(of_row)))
        reach = float(stdtrit(len(of_row) - 1, 0.975)) * error
        measured |= with_interval(name, float(of_row.mean()), reach)
    return measured


def paired_by_cluster(names: Sequence[str], clusters: Ints, values: Floats) -> dict[str, float]:
    """Return the mean of each figure's differences over rows, and its 95% interval over independent clusters of rows.

    Examples
    --------
    >>> found = paired_by_cluster(["R@5"], np.array([0, 0, 1]), np.array([[1.0], [1.0], [4.0]]))
    >>> found["R@5"], round(found["R@5_low"], 1), round(found["R@5_high"], 1)
    (2.0, -0.6, 4.6)
    """
    _, own = np.unique(clusters, return_inverse=True)
    found: dict[str, float] = {}
    for name, column in zip(names, values.T, strict=True):
        mean = float(column.mean())
        of_cluster = np.bincount(own, column - mean)  # its rows go together: their errors add up
        n = len(of_cluster)
        reach = 1.96 * float(np.sqrt(n / max(n - 1, 1) * (of_cluster**2).sum())) / len(column)
        found |= with_interval(name, mean, reach)
    return found
