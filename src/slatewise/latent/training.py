"""Training of one stage: epochs of an engine, recall on held-out pairs after each, the best parameters kept.

After the first epochs, which are still on their way, what is judged and kept is the mean of the tables over an epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slatewise.latent.averaging import CountedQueries, EpochMean
from slatewise.latent.engine import Factors, WarpEngine
from slatewise.latent.pairs import TrainingPairs
from slatewise.latent.recall import recall_at
from slatewise.latent.tables import Ints, Table

PLAIN_EPOCHS = 2


@dataclass(frozen=True)
class EpochReport:
    """What callbacks see after each epoch."""

    stage: int
    epoch: int
    loss: float
    violated: float
    recall: float | None
    """Recall on the held-out pairs; None where none are held out."""

    def __str__(self) -> str:
        held_out = "" if self.recall is None else f", recall {self.recall:.4f}"
        return f"stage {self.stage}, epoch {self.epoch}, loss {self.loss:.4g}{held_out}"


@dataclass(frozen=True)
class Schedule:
    """When to stop, and the seed of the order of the pairs."""

    epochs: int
    patience: int
    """Epochs in a row without a better recall after which a stage ends."""
    seed: int


@dataclass(frozen=True, eq=False)
class Validation:
    """Pairs held out, and the depth of the recall that is watched."""

    queries: Ints
    items: Ints
    k: int


@dataclass(eq=False)
class StageState:
    """Everything a stage needs to go on: its tables now, and those of its best epoch."""

    stage: int
    queries: Table
    items: Table
    epoch: int = 0
    best_epoch: int = 0
    best_recall: float = -np.inf
    best: tuple[Table, Table] | None = None
    """None: no epoch has beaten the recall that the stage began with."""


def train_stage(
    state: StageState,
    factors: Callable[[Table, Table], Factors],
    pairs: TrainingPairs,
    engine: WarpEngine,
    schedule: Schedule,
    validation: Validation | None,
    n_threads: int | None,
    watch: Callable[[EpochReport, StageState], None],
) -> None:
    """Go on from ``state`` until recall is flat or the epochs are used up; ``state.best`` has the result.

    ``factors`` makes factors of the queries' and the items' table. What an epoch does depends on the seed and its
    number only.
    """
    moving = factors(state.queries, state.items)
    while state.epoch < schedule.epochs and (validation is None or state.epoch - state.best_epoch < schedule.patience):
        rng = np.random.default_rng((schedule.seed, state.stage, state.epoch))
        mean = EpochMean(state.queries, state.items, len(pairs.offsets) - 1)
        averaged = state.epoch >= PLAIN_EPOCHS
        queries = CountedQueries(moving.queries, mean) if averaged else moving.queries
        seen = engine.epoch(Factors(queries, moving.items), pairs, rng)
        state.epoch += 1
        found, recall = mean.tables(), None
        if validation is not None:
            k = validation.k
            recall = recall_at(factors(*found), validation.queries, validation.items, (k,), n_threads)[k]
        if recall is None or recall > state.best_recall:
            state.best, state.best_epoch = found, state.epoch
            state.best_recall = state.best_recall if recall is None else recall
        watch(EpochReport(state.stage, state.epoch, seen.loss, seen.violated, recall), state)
