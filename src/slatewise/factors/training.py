"""What a fit is at: reports of epochs, when to stop, pairs held out, the state of a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.arrays import Bools, Ints
from slatewise.factors.tables import Table


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
    """Epochs in succession without a better recall after which a stage ends."""
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
    weight: float | None = 1.0
    """Of what was learnt beside a base: ``mixing.py``."""
    hits: Bools | None = None
    """Held-out pairs found after the last epoch; not kept in a checkpoint."""

    def kept(self) -> StageState | None:
        """Return the stage with the tables of its best epoch; None where there is none."""
        if self.best is None:
            return None
        queries, items = self.best
        return replace(self, queries=queries, items=items, best=None)
