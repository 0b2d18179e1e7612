"""The seam between training and what carries out an epoch; a GPU engine is one more class with this method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slatewise.latent.pairs import TrainingPairs
from slatewise.latent.queries import Queries
from slatewise.latent.tables import Table


@dataclass(frozen=True, eq=False)
class Factors:
    """What is learnt: the score of item d for query q is ``queries.vectors([q]) . items.values[d]``."""

    queries: Queries
    items: Table


@dataclass(frozen=True)
class EpochStats:
    """What an epoch saw, as it went: parameters changed in between."""

    loss: float
    """Mean over pairs of L(r)/L(D) times the mean hinge of the violators."""
    violated: float
    """Share of pairs with a violator, or for which one was found."""


class WarpEngine(Protocol):
    """One pass over the pairs, changing the factors in place."""

    def epoch(self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator) -> EpochStats:
        """Visit every pair once, in random order."""
        ...
