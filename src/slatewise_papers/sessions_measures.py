"""What lists of next items are worth: places, figures of every query, and intervals that count sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.data.records import Prefixes

Rank: TypeAlias = Callable[[Prefixes], Ints]

DEPTH = 50
"""Places that figures look at."""
LISTED = DEPTH + 1
"""One more, because one may be taken out."""
RECALLS = (5, 10, 20, 30, 50)
FIGURES = (*(f"R@{k}" for k in RECALLS), "MRR@20")
AT_ONCE = 2048


def places_of(rank: Rank, asked: Prefixes, item_differs: bool) -> Ints:
    """Return how many items are ahead of each that came next, the last item of a session left out if need be."""
    places = np.full(len(asked), -1, dtype=np.int64)
    for first in range(0, len(asked), AT_ONCE):
        part = asked[first : first + AT_ONCE]
        lists = rank(part)
        rows, columns = np.nonzero(lists == part.next_items[:, None])
        if item_differs:
            left_out = lists == part.items[part.ends - 1][:, None]
            columns = columns - np.cumsum(left_out, axis=1)[rows, columns]
        places[first + rows] = np.where(columns < DEPTH, columns, -1)
    return places


def ndcg(places: Ints) -> float:
    """Return what settings are judged by: NDCG@20, which lies between recall and MRR."""
    near = places[(places >= 0) & (places < 20)]
    return float((1.0 / np.log2(near + 2.0)).sum() / len(places))


def figures_of(places: Ints) -> Floats:
    """Return every figure of every query, (queries, FIGURES).

    Examples
    --------
    >>> figures_of(np.array([0, 7, -1]))[:, [0, 1, -1]].tolist()
    [[1.0, 1.0, 1.0], [0.0, 1.0, 0.125], [0.0, 0.0, 0.0]]
    """
    ahead = np.where(places < 0, DEPTH, places)
    found = [(ahead < k).astype(np.float64) for k in RECALLS]
    return np.stack([*found, np.where(ahead < 20, 1.0 / (1.0 + ahead), 0.0)], axis=1)


def paired(sessions: Ints, gains: Floats) -> dict[str, float]:
    """Return the mean of each figure's gains over queries, and its 95% interval over sessions.

    Examples
    --------
    >>> found = paired(np.array([0, 0, 1]), np.array([[1.0], [1.0], [4.0]]) * np.ones(len(FIGURES)))
    >>> found["R@5"], round(found["R@5_low"], 1), round(found["R@5_high"], 1)
    (2.0, -0.6, 4.6)
    """
    _, own = np.unique(sessions, return_inverse=True)
    found: dict[str, float] = {}
    for name, column in zip(FIGURES, gains.T, strict=True):
        mean = float(column.mean())
        of_session = np.bincount(own, column - mean)  # its queries go together: their errors add up
        n = len(of_session)
        reach = 1.96 * float(np.sqrt(n / max(n - 1, 1) * (of_session**2).sum())) / len(column)
        found |= {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}
    return found
