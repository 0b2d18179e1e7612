"""The mean of the tables over an epoch: wbar = (1/m) sum over m moments of w, taken at equal distances between steps.

Long steps find more than short ones but end anywhere around what they found; their mean lies in the middle (Polyak and
Ruppert). An engine tells the mean of every step it has taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.factors.tables import Table

MOMENTS = 24
"""Of an epoch. More are hardly better, and each reads both tables whole."""


def is_moment(seen: int, moments: int, n_runs: int) -> bool:
    """Tell whether a moment has come, when so many of all runs are done and so many moments were taken."""
    return seen * MOMENTS >= (moments + 1) * n_runs


@dataclass(eq=False)
class EpochMean:
    """Tables that an engine is about to move, and their mean so far."""

    queries: Table
    items: Table
    n_runs: int
    """Runs of pairs in an epoch."""
    seen: int = 0
    means: list[Singles] = field(default_factory=list[Singles])
    """Of the arrays of both tables, in order."""
    moments: int = 0

    def count(self, n_runs: int) -> None:
        """A step is done, of so many runs of pairs."""
        self.seen += n_runs
        if not is_moment(self.seen, self.moments, self.n_runs):
            return
        self.moments += 1
        if self.moments == 1:
            self.means = [*self.queries.copy().arrays(), *self.items.copy().arrays()]
            return
        for mean, values in zip(self.means, (*self.queries.arrays(), *self.items.arrays()), strict=True):
            # What does not move stays as it is, to the bit.
            mean += (values - mean) * np.float32(1.0 / self.moments)

    def take_over(self, n_runs: int, moments: int, means: list[Singles]) -> None:
        """So many runs are done, and so many moments were taken elsewhere, with these means."""
        self.seen, self.moments, self.means = self.seen + n_runs, moments, means

    def tables(self) -> tuple[Table, Table]:
        """Return the means, with the accumulators of now; copies of the tables before the first moment."""
        queries, items = self.queries.copy(), self.items.copy()
        for values, mean in zip((*queries.arrays(), *items.arrays()), self.means, strict=False):
            values[:] = mean
        return queries, items
