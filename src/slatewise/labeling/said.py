"""What is known of all items so far; rows are replaced as answers come.

An item is *complete* once somebody has answered for every label of it. "Don't know" is an answer; a tie between yes and
no waits for a reviewer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.arrays import Bools, Bytes
from slatewise.labeling.store.votes import Votes


@dataclass(frozen=True, eq=False)
class Said:
    """What is known by majority; see :class:`slatewise.labeling.store.known.KnownLabels`."""

    values: Bytes
    """(items, labels) 1, 0 or -1."""
    answered: Bools
    """(items, labels) whether it is known because somebody was asked or shown."""
    disputed: Bools
    """(items, labels)."""
    complete: Bools
    """(items,)."""

    @classmethod
    def of(cls, votes: Votes, shape: tuple[int, int]) -> Said:
        """Count votes."""
        n_items, n_labels = shape
        known = votes.known(shape)
        cells = np.unique(votes.item * n_labels + votes.label)
        all_there = np.bincount(cells // n_labels, minlength=n_items) == n_labels
        tied = (known.disputed & (known.values < 0)).any(axis=1)
        return cls(known.values, known.answered, known.disputed, all_there & ~tied)

    def replace(self, item: int, votes: Votes) -> None:
        """Put what was said of one item in the place of what was known."""
        row = Said.of(replace(votes, item=np.zeros_like(votes.item)), (1, self.values.shape[1]))
        self.values[item], self.answered[item] = row.values[0], row.answered[0]
        self.disputed[item], self.complete[item] = row.disputed[0], row.complete[0]
