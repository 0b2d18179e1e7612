"""The mean of the tables over an epoch: wbar = (1/m) sum over m moments of w, taken at equal distances between steps.

Long steps find more than short ones but end anywhere around what they found; their mean lies in the middle (Polyak and
Ruppert). An engine tells the mean of every step it has taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slatewise.latent.tables import Singles, Table

MOMENTS = 24
"""Of an epoch. More are hardly better, and each reads both tables whole."""


@dataclass(eq=False)
class EpochMean:
    """Tables that an engine is about to move, and their mean so far."""

    queries: Table
    items: Table
    n_runs: int
    """Runs of pairs in an epoch."""
    seen: int = 0
    means: list[Singles] = field(default_factory=list[Singles])
    moments: int = 0

    def count(self, n_runs: int) -> None:
        """A step is done, of so many runs of pairs."""
        self.seen += n_runs
        if self.seen * MOMENTS < (self.moments + 1) * self.n_runs:
            return
        self.moments += 1
        if self.moments == 1:
            self.means = [table.copy().values for table in (self.queries, self.items)]
            return
        for mean, table in zip(self.means, (self.queries, self.items), strict=True):
            # What does not move stays as it is, to the bit.
            mean += (table.values - mean) * np.float32(1.0 / self.moments)

    def tables(self) -> tuple[Table, Table]:
        """Return the means, with the accumulators of now; copies of the tables before the first moment."""
        queries, items = self.queries.copy(), self.items.copy()
        if self.means:
            queries.values[:], items.values[:] = self.means
        return queries, items
