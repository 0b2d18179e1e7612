"""A StructuredReranker's base, a matrix or a scorer, as rows of scores."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slatewise.estimators._latent_input import Ids, as_singles
from slatewise.warp.on_base import BaseScores
from slatewise.warp.tables import Ints, Singles

MOST_KEPT = 1 << 27
"""Scores (half a gigabyte) that are kept; a larger table is asked for again, block by block."""


class Scorer(Protocol):
    """What a base must have, unless it is a matrix."""

    def score(self, queries: Ids, items: Ids, /) -> Any:
        """Return the score of every query with every item, (queries, items)."""
        ...


def is_matrix(base: Any) -> bool:
    """Tell a matrix from a scorer; anything else is an error."""
    if callable(getattr(base, "score", None)):
        return False
    table = np.asarray(base)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise ValueError(
            "base: expected a matrix of scores (queries, items) or an object with score(queries, items), "
            f"found {type(base).__name__} with {table.ndim} dimensions"
        )
    return True


def rows_of(base: Any, query_ids: Ids, item_ids: Ids) -> BaseScores:
    """Return the base's scores for these queries, called by their places, with these items."""
    if is_matrix(base):
        # Ids are row and column numbers.
        table = np.asarray(base)
        if len(query_ids) and (int(query_ids.min()) < 0 or int(query_ids.max()) >= len(table)):
            wrong = next(number for number in query_ids.tolist() if not 0 <= number < len(table))
            raise ValueError(f"queries: expected row numbers below {len(table)}, the base's rows, found {wrong}")
        return Kept(_checked(table[query_ids], (len(query_ids), len(item_ids))))
    asked = _Asked(base, query_ids, item_ids, Lock())
    if len(query_ids) * len(item_ids) > MOST_KEPT:
        return asked
    return Kept(asked.rows(np.arange(len(query_ids))))


@dataclass(frozen=True, eq=False)
class Kept:
    """Scores in memory."""

    scores: Singles

    def rows(self, queries: Ints) -> Singles:
        """Copy them."""
        return self.scores[queries]


@dataclass(frozen=True, eq=False)
class Scaled:
    """Another base's scores in another unit."""

    base: BaseScores
    unit: float

    def rows(self, queries: Ints) -> Singles:
        """Divide."""
        scores = self.base.rows(queries)
        scores /= np.float32(self.unit)
        return scores


@dataclass(frozen=True, eq=False)
class _Asked:
    scorer: Scorer
    query_ids: Ids
    item_ids: Ids
    lock: Lock
    """Other people's scorers need not stand several threads."""

    def rows(self, queries: Ints) -> Singles:
        with self.lock:
            scores = self.scorer.score(self.query_ids[queries], self.item_ids)
        return _checked(np.asarray(scores), (len(queries), len(self.item_ids)))


def _checked(scores: NDArray[Any], shape: tuple[int, int]) -> Singles:
    if scores.shape != shape:
        raise ValueError(f"base: expected scores of shape {shape} (queries, items), found {scores.shape}")
    return as_singles("base", scores, lambda place: str([*divmod(place, shape[1])]))
