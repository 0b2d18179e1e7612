"""Items that people label without the model, so that what the model is worth can be measured.

Which ones is drawn from their ids: a number between 0 and 1 per item, by a hash of seed and id, and those below the
share are in. A larger share keeps those of a smaller one, and items that are added later change nothing. They are given
out in the order of these numbers, whatever the model thinks of them: those that are labelled first would otherwise be
those that it finds hard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Bools, Floats, Ints


def draws(ids: Iterable[str], seed: int) -> Floats:
    """Return a number in [0, 1) per id.

    Examples
    --------
    >>> draws(["a.jpg", "b.jpg"], seed=0).round(3)
    array([0.526, 0.621])
    """
    digests = (hashlib.blake2b(f"{seed} {one}".encode(), digest_size=8).digest() for one in ids)
    return np.array([int.from_bytes(digest, "big") >> 11 for digest in digests], dtype=np.float64) / 2.0**53


@dataclass(frozen=True, eq=False)
class HonestShare:
    """Who is in, and whose turn it is."""

    draw: Floats
    """(items,)."""
    share: float

    @property
    def inside(self) -> Bools:
        """(items,)."""
        return self.draw < self.share

    def is_due(self, free: Ints) -> bool:
        """Whether the next item of a person should be one of these, if the ``free`` items are those left."""
        inside = self.inside
        left = int(inside[free].sum())
        if not left or left == len(free):
            return left > 0
        taken = len(inside) - len(free)
        return int(inside.sum()) - left + 1 <= self.share * (taken + 1)

    def in_turn(self, free: Ints) -> Ints:
        """Return those of the free items, in the order in which they are given out."""
        of_share = free[self.inside[free]]
        return of_share[np.argsort(self.draw[of_share], kind="stable")]
