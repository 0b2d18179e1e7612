"""Scores that came from elsewhere, b(q, d), under those that are learnt here.

A base is asked for whole rows, a few queries at a time, so its scores are never all in memory unless it keeps them:
memory is that of ``MOST_SCORES`` per thread, or of one row where a row has more.
"""

from __future__ import annotations

from typing import Protocol

from slatewise.core.arrays import Ints, Singles

MOST_SCORES = 1 << 22
"""Scores (16 MB) that a thread holds; rows are taken in pieces of so many, which the data decide."""


class BaseScores(Protocol):
    """Scores of all items for queries that are called by number; asked from several threads."""

    def rows(self, queries: Ints) -> Singles:
        """Return a fresh array (queries, items)."""
        ...


def pieces(n_rows: int, n_items: int, most: int | None = None) -> list[slice]:
    """Cut rows into pieces of at most ``MOST_SCORES`` scores, and ``most`` rows, but never less than a row."""
    size = max(1, min(most or n_rows, MOST_SCORES // max(n_items, 1)))
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
