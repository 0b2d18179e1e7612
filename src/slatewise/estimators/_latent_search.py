"""Steps and norms that a LatentRanker finds by itself: one after the other, by recall on the held-out pairs.

A parameter that is "auto" begins at the first value of its grid and tries the others while the rest stay as they are.
Stage 0 is settled first and then kept; what is tried for later stages, on stage 1, starts from it and from one and the
same lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from slatewise.warp.stages import Shape, Stages
from slatewise.warp.tables import Ints, Singles
from slatewise.warp.training import EpochReport, StageState

if TYPE_CHECKING:
    from slatewise.estimators.latent import LatentRanker

GRIDS: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (0.3, 0.5, 0.1, 0.03),
    "max_norm": (2.5, 1.5, 4.0),
    "stage_learning_rate": (0.1, 0.03, 0.3),
    "stage_norm": (1.0, 0.3, 2.0),
}
STARTS = {name: grid[0] for name, grid in GRIDS.items()}
FIRST, LATER = ("learning_rate", "max_norm"), ("stage_learning_rate", "stage_norm")


@dataclass(frozen=True)
class Steps:
    """AdaGrad's steps and the largest norms of rows, of U and V and of S."""

    learning_rate: float
    max_norm: float
    stage_learning_rate: float
    stage_norm: float

    @classmethod
    def of(cls, ranker: LatentRanker, instead: Mapping[str, float] = STARTS) -> Steps:
        """Take what a ranker is given, and something else where that is "auto"."""
        given = {name: getattr(ranker, name) for name in GRIDS}
        return cls(**{name: instead[name] if value == "auto" else float(value) for name, value in given.items()})


@dataclass(frozen=True, eq=False)
class Learned:
    """The stages kept, and the steps and norms they were trained with."""

    stages: tuple[StageState, ...]
    steps: Steps

    @property
    def factors(self) -> tuple[Singles, Singles]:
        """The tables of queries and of items, (stages, rows, columns), those of stage 0 filled up with zeros."""
        return _stack([one.queries.values for one in self.stages]), _stack([one.items.values for one in self.stages])


def left_open(ranker: LatentRanker) -> list[str]:
    """Name the parameters that a fit has to search for."""
    return [name for name in (*FIRST, *LATER)[: None if ranker.stages > 1 else 2] if getattr(ranker, name) == "auto"]


def search(
    stages: Stages,
    shape: Callable[[Steps], Shape],
    steps: Steps,
    names: Iterable[str],
    n_stages: int,
    tell: Callable[[EpochReport], None],
) -> Learned:
    """Train all stages with the best steps found; ``tell`` hears of every epoch of every trial."""
    names = set(names)

    def trials(done: tuple[StageState, ...], lists: Ints) -> Callable[[Steps], StageState | None]:
        def train(steps: Steps) -> StageState | None:
            own = replace(stages, shape=shape(steps))
            return own.train(own.start(len(done), done), lists, lambda report, _: tell(report))

        return train

    done: tuple[StageState, ...] = ()
    for searched in (FIRST, LATER)[:n_stages]:
        lists = replace(stages, shape=shape(steps)).hand_over(done)
        best, steps = _best(steps, [name for name in searched if name in names], trials(done, lists))
        if best is None:
            return Learned(done, steps)
        done = (*done, best)
    own = replace(stages, shape=shape(steps))
    return Learned(own.fit(n_stages, done, None, lambda _, report, __: tell(report)), steps)


def _best(
    steps: Steps, names: Iterable[str], train: Callable[[Steps], StageState | None]
) -> tuple[StageState | None, Steps]:
    best = train(steps)
    for name in names:
        for value in GRIDS[name][1:]:
            tried = replace(steps, **{name: value})
            state = train(tried)
            if state is not None and (best is None or state.best_recall > best.best_recall):
                best, steps = state, tried
    return best, steps


def _stack(parts: list[Singles]) -> Singles:
    width = max(part.shape[1] for part in parts)
    return np.stack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])
