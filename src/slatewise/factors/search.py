"""Learning rates and norms that a LatentRanker finds by itself: short trials, judged on the held-out pairs.

A parameter that is "auto" begins at its standard value and moves along its ladder, one value at a time, while a trial
of a few epochs promises more recall:

    promise = max(best recall so far, last recall + its last gain)

for small norms and large learning rates begin slowly and end higher, so that recall alone would mislead. It moves only
if the promise rises by more than three standard errors over the held-out queries (of the difference, pair by pair).
Otherwise chance would decide, down to the last bits of a processor, and neighbors of a decision would give quite
different models. With few held-out pairs the standard values are the better guess.

Only the best trial goes on to the end, from where it stands. So a search ends with the very bits of a fit that is given
the values found, and takes two or three times as long. Stage 0 is settled first and then kept; trials of stage 1 start
from it and share its lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slatewise.core.arrays import Bools, Floats, Ints, Singles
from slatewise.factors.settings import Steps, TrainingSettings
from slatewise.factors.stages import Shape, Stages
from slatewise.factors.training import EpochReport, StageState

GRIDS: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (0.03, 0.1, 0.3, 0.6),
    "max_norm": (0.7, 1.0, 1.5, 2.0, 2.5, 3.5, 5.0),
    "stage_learning_rate": (0.03, 0.1, 0.3),
    "stage_norm": (0.3, 1.0, 2.0),
}
"""The ladders, on which :data:`slatewise.factors.settings.STARTS` are."""
SEARCHED = (("max_norm", "learning_rate"), ("stage_learning_rate", "stage_norm"))
"""What is settled with a stage, in this order."""
TRIAL_EPOCHS = 4
STANDARD_ERRORS = 3.0
"""By how much a trial must be better than the best one before it."""


@dataclass(frozen=True, eq=False)
class Learned:
    """The stages kept, and the steps and norms they were trained with."""

    stages: tuple[StageState, ...]
    steps: Steps

    @property
    def factors(self) -> tuple[Singles, Singles]:
        """The tables of queries and of items, (stages, rows, columns), those of stage 0 filled up with zeros."""
        return _stack([one.queries.values for one in self.stages]), _stack([one.items.values for one in self.stages])


@dataclass(eq=False)
class Trial:
    """The first epochs of a stage with some steps and norms."""

    stage: int
    steps: Steps
    hits: list[Bools] = field(default_factory=list[Bools])
    """The held-out pairs found after each epoch so far."""
    state: StageState | None = None
    """Where it stands; None: it was beaten, and is only remembered."""

    def promise(self) -> Floats:
        """Return what each held-out pair adds to the recall that the trial can be expected to reach."""
        epochs = [hits.astype(np.float64) for hits in self.hits]
        ahead = 2 * epochs[-1] - epochs[max(len(epochs) - 2, 0)]
        return max(*epochs, ahead, key=np.mean)


@dataclass(eq=False)
class Progress:
    """All that a fit needs to go on: what a checkpoint keeps."""

    done: tuple[StageState, ...] = ()
    trials: list[Trial] = field(default_factory=list[Trial])
    """In the order they were begun, of all stages; only the best so far of the stage under way has its state."""
    going: StageState | None = None
    """What is being trained: the last trial, or what goes on from the best one."""
    trying: bool = False
    """Whether it is the last trial."""
    steps: Steps | None = None
    """What it is trained with."""


def left_open(settings: TrainingSettings) -> list[str]:
    """Name the parameters that a fit has to search for."""
    return [name for names in SEARCHED[: settings.stages.n] for name in names if settings.given[name] == "auto"]


@dataclass(eq=False)
class StageSearch:
    """A fit of all stages with the best steps found for those ``names``, going on from where ``progress`` stands."""

    stages: Stages
    shape: Callable[[Steps], Shape]
    names: Iterable[str]
    n_stages: int
    progress: Progress
    watch: Callable[[EpochReport], None]
    """Hears of every epoch of every trial, and finds the progress up to date."""
    begun: int = 0
    """Trials that the search has asked for, remembered ones counted in."""

    def fit(self, steps: Steps) -> Learned:
        """Train the stages; ``steps`` are those given, and where a search begins."""
        progress = self.progress
        for stage in range(self.n_stages):
            # None: the stage is done, and its trials are all remembered.
            lists = None if stage < len(progress.done) else self._with(steps).hand_over(progress.done)
            names = [name for name in SEARCHED[stage] if name in self.names] if stage < len(SEARCHED) else []
            state = None
            if names:
                best = self._climb(stage, lists, steps, names)
                steps, state = best.steps, best.state
            if lists is None:
                continue
            own = self._with(steps)
            if progress.going is None or progress.trying:
                progress.going, progress.trying = state or own.start(stage, progress.done), False
                progress.steps = steps
            learned = own.train(progress.going, lists, self.watch)
            progress.going = None
            if learned is None:
                break
            progress.done = (*progress.done, learned)
            for trial in progress.trials:
                trial.state = None
        return Learned(progress.done, steps)

    def _with(self, steps: Steps) -> Stages:
        return replace(self.stages, shape=self.shape(steps))

    def _climb(self, stage: int, lists: Ints | None, steps: Steps, names: list[str]) -> Trial:
        """Move along the ladder of one parameter after the other: up, or else down, while that promises more."""
        best = self._try(stage, lists, steps)
        for name in names:
            for direction in (1, -1):
                before = best
                for value in _rungs(name, getattr(best.steps, name), direction):
                    tried = self._try(stage, lists, replace(best.steps, **{name: value}))
                    if not self._is_better(tried, best):
                        tried.state = None
                        break
                    best.state, best = None, tried
                if best is not before:
                    break
        return best

    def _is_better(self, tried: Trial, best: Trial) -> bool:
        """Say whether a trial promises more than another, by more than chance."""
        if self.stages.validation is None:
            raise RuntimeError("a trial is judged by pairs that are held out")
        gain = tried.promise() - best.promise()
        _, query = np.unique(self.stages.validation.queries, return_inverse=True)
        # Their spread is taken around 0, not around their mean: a few queries may all gain as much by chance.
        gains = np.bincount(query, gain)
        return bool(gains.sum() > STANDARD_ERRORS * np.sqrt(gains @ gains))

    def _try(self, stage: int, lists: Ints | None, steps: Steps) -> Trial:
        """Train a trial, or what is left of it, or remember it."""
        progress, number = self.progress, self.begun
        self.begun += 1
        under_way = progress.trying and number == len(progress.trials) - 1
        if number < len(progress.trials) and not under_way:
            return progress.trials[number]
        own = self._with(steps)
        if not under_way:
            progress.trials.append(Trial(stage, steps))
            progress.going, progress.trying, progress.steps = own.start(stage, progress.done), True, steps
        trial, state = progress.trials[number], progress.going
        if state is None or lists is None:
            raise RuntimeError("a trial is trained from a state and lists")
        trial.state = state

        def note(report: EpochReport) -> None:
            if state.hits is None:
                raise RuntimeError("a trial is judged by pairs that are held out")
            trial.hits.append(state.hits)
            self.watch(report)

        epochs = min(TRIAL_EPOCHS, own.schedule.epochs)
        replace(own, schedule=replace(own.schedule, epochs=epochs)).advance(state, lists, note)
        return trial


def _rungs(name: str, value: float, direction: int) -> tuple[float, ...]:
    ladder = GRIDS[name][::direction]
    return ladder[ladder.index(value) + 1 :]


def _stack(parts: list[Singles]) -> Singles:
    width = max(part.shape[1] for part in parts)
    return np.stack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])
