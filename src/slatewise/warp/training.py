"""Training of one stage: epochs of an engine, recall on held-out pairs after each, the best parameters kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slatewise.warp.engine import Factors, WarpEngine
from slatewise.warp.pairs import TrainingPairs
from slatewise.warp.recall import recall_at
from slatewise.warp.tables import Ints, Table


@dataclass(frozen=True)
class EpochReport:
    """What callbacks see after each epoch."""

    stage: int
    epoch: int
    loss: float
    violated: float
    recall: float | None
    """Recall on the held-out pairs; None where none are held out."""


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
    factors: Factors,
    pairs: TrainingPairs,
    engine: WarpEngine,
    schedule: Schedule,
    validation: Validation | None,
    n_threads: int | None,
    watch: Callable[[EpochReport, StageState], None],
) -> None:
    """Go on from ``state`` until recall is flat or the epochs are used up; ``state.best`` has the result.

    ``factors`` are made of the tables of ``state``. What an epoch does depends on the seed and its number only.
    """
    while state.epoch < schedule.epochs and (validation is None or state.epoch - state.best_epoch < schedule.patience):
        rng = np.random.default_rng((schedule.seed, state.stage, state.epoch))
        seen = engine.epoch(factors, pairs, rng)
        state.epoch += 1
        recall = None
        if validation is None:
            state.best, state.best_epoch = (state.queries, state.items), state.epoch
        else:
            found = recall_at(factors, validation.queries, validation.items, (validation.k,), n_threads)
            recall = found[validation.k]
            if recall > state.best_recall:
                state.best_recall, state.best_epoch = recall, state.epoch
                state.best = state.queries.copy(), state.items.copy()
        watch(EpochReport(state.stage, state.epoch, seen.loss, seen.violated, recall), state)
