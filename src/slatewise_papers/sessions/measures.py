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


def places_of(rank: Rank, questions: Prefixes, item_differs: bool) -> Ints:
    """Return how many items are ahead of each that came next, the last item of a session left out if need be."""
    places = np.full(len(questions), -1, dtype=np.int64)
    for first in range(0, len(questions), AT_ONCE):
        part = questions[first : first + AT_ONCE]
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
