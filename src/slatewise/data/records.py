"""What readers return: one frozen record a kind of data, flat arrays inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.errors import Skipped

Float: TypeAlias = NDArray[np.float64]
Int: TypeAlias = NDArray[np.int64]
Strings: TypeAlias = NDArray[np.str_]
Ids: TypeAlias = NDArray[Any]
"""Integer or string identifiers."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows to rank: row i belongs to list ``qid[i]``, has features ``X[i]`` and relevance ``y[i]``."""

    X: csr_array
    y: Float
    qid: Ids
    doc_ids: Strings | None = None
    skipped: Skipped = field(default_factory=Skipped)

    def dense(self) -> Float:
        """Return X as a dense float64 array."""
        return self.X.toarray()


@dataclass(frozen=True, eq=False)
class Run:
    """A system's answer: row i says that list ``qid[i]`` got document ``doc_ids[i]`` with ``scores[i]``."""

    qid: Strings
    doc_ids: Strings
    scores: Float
    tag: str = "slatewise"
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements: document ``doc_ids[i]`` has ``relevance[i]`` for list ``qid[i]``."""

    qid: Strings
    doc_ids: Strings
    relevance: Int
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Observed (query, item) pairs, with a weight each where the file has one."""

    queries: Ids
    items: Ids
    weights: Float | None = None
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False)
class Sessions:
    """Ordered item lists: session s is ``items[offsets[s]:offsets[s + 1]]``."""

    items: Ids
    offsets: Int
    skipped: Skipped = field(default_factory=Skipped)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pairs(self) -> Pairs:
        """Return every (item, next item) inside a session."""
        inside = np.ones(max(len(self.items) - 1, 0), dtype=bool)
        ends = self.offsets[1:-1] - 1
        inside[ends[(ends >= 0) & (ends < len(inside))]] = False
        return Pairs(self.items[:-1][inside], self.items[1:][inside])


@dataclass(frozen=True, eq=False)
class MultiLabel:
    """Rows with sets of labels: ``Y[i, l]`` is 1 where row i has label l."""

    X: csr_array | Float
    Y: csr_array
    label_names: Strings
    feature_names: Strings | None = None
    is_train: NDArray[np.bool_] | None = None
    skipped: Skipped = field(default_factory=Skipped)
