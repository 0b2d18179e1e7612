"""The seam between training and what carries out an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import TrainingSettings
from slatewise.factors.tables import EpochMean, Table

if TYPE_CHECKING:
    from slatewise.factors.scoring import Device


@dataclass(frozen=True)
class EpochStats:
    """What an epoch saw, as it went: parameters changed in between."""

    loss: float
    """Mean over pairs of L(r)/L(D) times the mean hinge of the violators."""
    violated: float
    """Share of pairs with a violator, or for which one was found."""


class WarpEngine(Protocol):
    """One pass over the pairs, changing the factors in place."""

    def epoch(
        self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator, mean: EpochMean | None = None
    ) -> EpochStats:
        """Train on every pair once, in random order, and count all runs of pairs in ``mean``, step by step.

        An engine that knows no steps has to raise NotImplementedError where a mean is wanted: it would be the last step
        alone.
        """
        ...


class EngineTask(NamedTuple):
    """What an engine is made for: a stage of a fit."""

    settings: TrainingSettings
    stage: int
    queries: Table
    """The rows that queries come from."""
    lists: Ints
    """Those handed over to the stage, (queries, k); empty ones for stage 0."""
    n_items: int
    n_pairs: int
    executor: Executor


class EngineKind(NamedTuple):
    """How an engine is made, and where it ranks."""

    make: Callable[[EngineTask], WarpEngine]
    device: Callable[[TrainingSettings], Device | None] = lambda settings: None
    """Returns where lists are made in training: those handed over to the next stage, and for the recall of held-out
    pairs. None: on the CPU. Raises, before work starts, where there is no such device."""
