"""Lists of a c-star model: what inference is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from slatewise.core.arrays import Bytes, Floats, Ints
from slatewise.cstar.checks import checked_counts, checked_known, checked_scores
from slatewise.cstar.pair import StarPair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class StarLists:
    """Scores of the items of each list, the pair terms all lists share, and how many items to select.

    Made directly it trusts its arrays; users come through :meth:`of`.
    """

    s: Floats
    """(n, N) C-contiguous."""
    pair: StarPair
    k: Ints
    """(n,)."""
    known: Bytes | None = None
    """(n, N) 1 where an item must be in, 0 where it must be out, -1 elsewhere."""

    @classmethod
    def of(
        cls, s: ArrayLike, pair: ArrayLike, core: ArrayLike, k: ArrayLike, known: ArrayLike | None = None
    ) -> StarLists:
        """Check what a user gave, see :func:`slatewise.inference.star_top_k`."""
        star, scores = StarPair.of(pair, core), checked_scores(s)
        if scores.shape[1] != star.n_items:
            raise ValueError(f"pair: expected {scores.shape[1]} columns, as many as s has, found {star.n_items}")
        counts = checked_counts(k, scores.shape)
        return cls(scores, star, counts, checked_known(known, counts, scores.shape))


class Selection(NamedTuple):
    """The selected items of all lists, list after list, and what they are in order by."""

    items: Ints
    scores: Floats

    @classmethod
    def of(cls, items: Ints, scores: Floats, k: Ints) -> Selection:
        """Take the first k of each row."""
        kept = np.arange(items.shape[1], dtype=np.int64) < k[:, None]
        return cls(items[kept], scores[kept])
