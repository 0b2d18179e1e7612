"""What was learnt, frozen: all that answers are made of, made once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.ids import Ids
from slatewise.core.rules import is_whole
from slatewise.factors.pair_terms import PAIR_TERMS, PairTerm
from slatewise.factors.tables import Segment, Table
from slatewise.recommend.quantized import QuantizedIndex

FEWEST_INDEXED = 1 << 15
"""Fewer items are as soon multiplied as looked up."""


@dataclass(frozen=True, eq=False)
class LatentModel:
    """The factors of all stages, and how a list moves an item.

    Indexes are made when they are first needed, and belong to the arrays as they are: factors changed by hand need a
    new array, not new numbers in the old one.
    """

    item_ids: Ids
    """In ascending order."""
    items: tuple[Table, ...]
    """A row per item of every stage: [V d | b_d | S d | T d], or A d and B d behind S d; without V and b on a base."""
    pair: PairTerm
    position_weights: Singles
    self_weight: float = 0.0
    queries: tuple[Table, ...] = ()
    """A row per query, or per feature of queries, of every stage: [U q | 1]; none where a base scores first."""
    indexes: dict[int | str, QuantizedIndex | None] = field(default_factory=dict[int | str, QuantizedIndex | None])
    """Those made so far, by stage."""

    @property
    def n_components(self) -> int:
        """The width of S."""
        return self.pair.S.stop - self.pair.S.start

    @property
    def n_stages(self) -> int:
        """How many stages there are, a base counted in."""
        return len(self.items)

    def check_stage(self, stage: int | None) -> int:
        """Return the number of the stage asked for, by default the last."""
        last = self.n_stages - 1 if stage is None else stage
        if not is_whole(last) or not 0 <= last < self.n_stages:
            raise ValueError(f"stage: expected a number from 0 to {self.n_stages - 1}, found {stage!r}")
        return int(last)

    def width(self, stage: int) -> int:
        """Return how many numbers of a vector make its score: [U q | 1] with [V d | b], and p_q later."""
        return self.pair.joins[-1].moved.stop if stage else self.pair.S.start

    def quantized(self, stage: int) -> QuantizedIndex | None:
        """Return the index of the items of a stage; None where a product is as fast, or rows are not finite."""
        return self._index(stage, self.items[stage].values, self.width(stage))

    def quantized_cosines(self) -> QuantizedIndex | None:
        """Return the index whose scores are cosines with rows of V, for vectors of length 1."""
        return self._index("cosine", self.items[0].values, self.n_components)

    def _index(self, name: int | str, rows: Singles, width: int) -> QuantizedIndex | None:
        if len(rows) < FEWEST_INDEXED:
            return None
        if name not in self.indexes:
            factors = inverse_lengths(rows[:, :width]) if name == "cosine" else None
            self.indexes[name] = QuantizedIndex.of(rows, width, factors)
        return self.indexes[name]


def pair_term(pair: str, n_components: int, n_own: int) -> PairTerm:
    """Return how a list moves an item, of rows in which so many columns stand before those of S."""
    return PAIR_TERMS[pair](Segment(n_own, n_own + n_components, 0.0))


def inverse_lengths(rows: Singles) -> Singles:
    """Return what to multiply rows with to make their lengths 1."""
    return (1.0 / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)).astype(np.float32)
