"""From settings and pairs to trained stages: the parts of a fit, the search for learning rates, its checkpoint.

A parameter that is "auto" begins at its standard value and moves along its ladder, one value at a time, while a trial
of a few epochs promises more recall on the held-out pairs:

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

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.core import rules
from slatewise.core.arrays import Bools, Floats, Ints, Singles
from slatewise.core.declarations import expanded, resolved
from slatewise.core.running.executor import Executor, refuse_on_cluster
from slatewise.factors.engines import ENGINES
from slatewise.factors.engines.protocol import EngineTask, WarpEngine
from slatewise.factors.pair_terms import OwnItems
from slatewise.factors.pairs import Pairs, Validation
from slatewise.factors.queries import Queries
from slatewise.factors.scoring import BaseScores
from slatewise.factors.settings import ENGINES as ENGINE_KINDS
from slatewise.factors.settings import (
    LOSSES,
    STARTS,
    WATCHED,
    Engine,
    EpochReport,
    Loss,
    Steps,
    TrainingSettings,
)
from slatewise.factors.settings import Stages as StageSettings
from slatewise.factors.stages import Schedule, Shape, Stages, StageState
from slatewise.factors.tables import Table
from slatewise.persistence.checkpoint import Checkpoint, Path
from slatewise.persistence.file import Json, ModelCard, ModelState

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

ONE_STAGE = StageSettings()

STANDARD_ERRORS = 3.0
"""By how much a trial must be better than the best one before it."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What factors learn from: pairs by number, and how the vector of a query is made."""

    pairs: Pairs
    """Those that are trained on."""
    validation: Validation | None
    queries: Callable[[Table], Queries]
    """Makes all queries from a table of U."""
    n_rows: int
    """The number of rows of U."""
    by_id: bool = False
    """Whether rows of U are the queries' own."""
    self_items: OwnItems | None = None
    folds: Ints | None = None
    """The fold of every query whose lists are cross-fitted; None: lists are not."""
    base: BaseScores | None = None
    """What scores first, where U and V do not."""
    n_ages: int = 0
    n_knots: int = 0
    base_steps: Singles | None = None
    """How a base of sessions is added to what U and V score."""

    def shape(self, settings: TrainingSettings, steps: Steps) -> Shape:
        """Return the sizes of the tables, and how they move."""
        return Shape(
            settings.n_components,
            self.n_rows,
            len(self.pairs.item_ids),
            steps.learning_rate,
            steps.max_norm,
            steps.learning_rate,
            steps.stage_learning_rate,
            steps.stage_norm,
            by_id=self.by_id,
            term=settings.term,
            on_base=self.base is not None,
            n_ages=self.n_ages,
            n_knots=self.n_knots,
        )


def training_settings(
    given: Any,
    validation_fraction: float,
    seed: int,
    callbacks: Sequence[Callable[[EpochReport], None]] = (),
) -> TrainingSettings:
    """Resolve the parameters of a ranker, or of ``Factors``, which have one stage; raise without the engine's GPU."""
    stages: StageSettings = resolved(given, "stages") if hasattr(given, "stages") else ONE_STAGE
    settings = TrainingSettings(
        n_components=int(given.n_components),
        epochs=given.epochs,
        validation_fraction=validation_fraction,
        patience=given.patience,
        seed=seed,
        loss=cast("Loss", expanded(LOSSES.kinds, given.loss)),
        stages=stages,
        engine=cast("Engine", expanded(ENGINE_KINDS.kinds, given.engine)),
        learning_rate=given.learning_rate,
        max_norm=given.max_norm,
        dropout=given.dropout,
        callbacks=callbacks,
        depth=stages.k if stages.n > 1 else WATCHED,
    )
    ENGINES[type(settings.engine)].device(settings)
    return settings


def learn(
    estimator: Any,
    settings: TrainingSettings,
    problem: Problem,
    card: ModelCard,
    path: Path,
    as_used: Mapping[str, Any] | None = None,
    searched: bool = True,
) -> Learned:
    """Train all stages, going on from a checkpoint; learning rates and norms that are "auto" are searched for.

    ``as_used``: the parameters of the estimator that are objects, for the name of the checkpoint; None: its settings.
    """
    as_used = as_used or {"loss": settings.loss, "stages": settings.stages, "engine": settings.engine}
    checkpoint = Checkpoint.of(estimator, card.data_sha256, path, as_used)
    learned = _trained(settings, problem, checkpoint, Executor.of(estimator.n_jobs), searched)
    checkpoint.remove()
    return learned


def _trained(
    settings: TrainingSettings, problem: Problem, checkpoint: Checkpoint, executor: Executor, searched: bool
) -> Learned:
    steps = steps_of(settings)
    shape = partial(problem.shape, settings)
    stages = stages_of(settings, problem, steps, executor)
    saved = checkpoint.read()
    progress = Progress() if saved is None else unpacked(saved, shape, steps)

    def watch(report: EpochReport) -> None:
        if checkpoint.path is not None:
            checkpoint.write(*packed(progress))
        for callback in settings.callbacks:
            callback(report)

    names: list[str] = []
    if searched and stages.validation is not None:
        names = [name for of_stage in SEARCHED[: settings.stages.n] for name in of_stage]
        names = [name for name in names if _given(settings)[name] == "auto"]
    return StageSearch(stages, shape, names, settings.stages.n, progress, watch).fit(steps)


def steps_of(settings: TrainingSettings, found: Mapping[str, float] | None = None) -> Steps:
    """Return what to train with: where "auto" is given what was ``found``, or what a search begins with."""
    auto = found or settings.starts
    values = {name: auto[name] if one == "auto" else float(one) for name, one in _given(settings).items()}
    return Steps(**values)


def _given(settings: TrainingSettings) -> dict[str, float | Literal["auto"]]:
    stages = settings.stages
    values = settings.learning_rate, settings.max_norm, stages.learning_rate, stages.max_norm
    return dict(zip(STARTS, values, strict=True))


def stages_of(settings: TrainingSettings, problem: Problem, steps: Steps, executor: Executor) -> Stages:
    """Put the parts of stages together."""
    refuse_on_cluster("WARP training", "a ranker that was fitted before the cluster was opened")
    training = problem.pairs.for_training()
    return Stages(
        problem.shape(settings, steps),
        problem.queries,
        problem.pairs.n_queries,
        training,
        problem.validation,
        Schedule(settings.epochs, settings.patience, settings.seed),
        settings.stages.weights(),
        partial(engine_of, settings, len(training), executor),
        problem.folds,
        executor,
        problem.self_items,
        problem.base,
        problem.base_steps,
        ENGINES[type(settings.engine)].device(settings),
    )


def engine_of(
    settings: TrainingSettings, n_pairs: int, executor: Executor, state: StageState, lists: Ints
) -> WarpEngine:
    """Return what trains a stage on this number of pairs."""
    task = EngineTask(settings, state.stage, state.queries, lists, len(state.items.values), n_pairs, executor)
    return ENGINES[type(settings.engine)].make(task)


def warn_of_stages(kept: int, wanted: int) -> None:
    """Warn where a stage was trained and left out."""
    if kept < wanted:
        warnings.warn(
            f"stages: {kept} of {wanted} are kept: the next one did not raise the recall of held-out pairs",
            stacklevel=3,
        )


def zero_rows_without_pairs(queries: Table, pairs: Pairs, known: Ints | None = None) -> None:
    """Set U of queries that have no pair, and are not ``known`` from before, to 0: nothing but chance has made it.

    Such a query is then ranked by the biases, as one is that is folded in without items.
    """
    own = queries.segments[0]
    without = np.ones(pairs.n_queries, dtype=bool)
    without[pairs.queries] = False
    if known is not None:
        without[known] = False
    queries.values[without, own.start : own.stop] = 0.0


def check_finite(query_factors: Singles, item_factors: Singles, steps: Steps) -> None:
    """Raise ValueError where training has led to numbers that are none."""
    finite = rules.learned_array(query_factors.ndim, np.float32)
    if not (finite.allows(query_factors) and finite.allows(item_factors)):
        raise ValueError(
            "learning_rate: expected steps under which factors stay finite, found "
            f"{steps.learning_rate:g}; features that are too large do the same"
        )


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


@dataclass(eq=False)
class StageSearch:
    """A fit of all stages with the best steps found for those ``names``, going on from where ``progress`` stands."""

    stages: Stages
    shape: Callable[[Steps], Shape]
    names: Iterable[str]
    n_stages: int
    progress: Progress
    watch: Callable[[EpochReport], None]
    """Called after every epoch of every trial, with the progress up to date."""
    begun: int = 0
    """The number of trials that the search has begun, remembered ones included."""

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
        best = self._try(stage, lists, steps, f"{names[0].replace('_', ' ')} 1/{len(GRIDS[names[0]])}")
        for name in names:
            n_tried = 1
            for direction in (1, -1):
                before, ladder = best, GRIDS[name][::direction]
                for value in ladder[ladder.index(getattr(best.steps, name)) + 1 :]:
                    n_tried += 1
                    what = f"{name.replace('_', ' ')} {n_tried}/{len(ladder)}"
                    tried = self._try(stage, lists, replace(best.steps, **{name: value}), what)
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

    def _try(self, stage: int, lists: Ints | None, steps: Steps, what: str) -> Trial:
        """Train a trial, or what is left of it, or remember it; ``what`` is searched for."""
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
            self.watch(replace(report, searching=what))

        epochs = min(TRIAL_EPOCHS, own.schedule.epochs)
        replace(own, schedule=replace(own.schedule, epochs=epochs)).advance(state, lists, note)
        return trial


def _stack(parts: list[Singles]) -> Singles:
    width = max(part.shape[1] for part in parts)
    return np.stack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


_GOING, _LEADING = "going", "leading"


def packed(progress: Progress) -> tuple[dict[str, NDArray[Any]], dict[str, Json]]:
    """Return the finished stages, the trials, the best of them, and what is under way, as arrays and plain values."""
    trials = progress.trials
    # The best trial so far that is not the one under way; -1 where none has its state.
    finished = trials[:-1] if progress.trying else []
    leader = next((number for number, trial in enumerate(finished) if trial.state is not None), -1)
    values: dict[str, Json] = {"stages": len(progress.done), "trying": progress.trying, "leader": leader}
    counts = np.array([len(trial.hits) for trial in trials], dtype=np.int64)
    hits = [np.packbits(epoch) for trial in trials for epoch in trial.hits]
    n_held = next((len(epoch) for trial in trials for epoch in trial.hits), 0)
    steps = np.array([astuple(trial.steps) for trial in trials], dtype=np.float64).reshape(-1, 4)
    stages = np.array([trial.stage for trial in trials], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "trial stages": stages,
        "trial steps": steps,
        "trial epochs": counts,
        "trial hits": np.array(hits, dtype=np.uint8).reshape(len(hits), -1) if hits else np.empty((0, 0), np.uint8),
    }
    values["held out"] = n_held
    if progress.steps is not None:
        arrays["steps"] = np.array(astuple(progress.steps))
    states = {f"stage {state.stage}": state for state in progress.done}
    for name, state in ((_GOING, progress.going), (_LEADING, trials[leader].state if leader >= 0 else None)):
        if state is not None:
            states[name] = state
    for name, state in states.items():
        values[f"{name}.stage"], values[f"{name}.epoch"] = state.stage, state.epoch
        values[f"{name}.best_epoch"] = state.best_epoch
        arrays[f"{name}.best_recall"] = np.array([state.best_recall])
        arrays[f"{name}.weight"] = np.array([np.nan if state.weight is None else state.weight])
        for moment, pair in (("now", (state.queries, state.items)), ("best", state.best)):
            for side, table in zip(("queries", "items"), pair or (), strict=False):
                arrays[f"{name}.{moment}.{side}"] = table.values
                arrays[f"{name}.{moment}.{side}.steps"] = table.accumulators
                for part, weights in table.weights.items():
                    arrays[f"{name}.{moment}.{side}.{part}"] = weights.values
                    arrays[f"{name}.{moment}.{side}.{part}.steps"] = weights.accumulators
    return arrays, values


def unpacked(saved: ModelState, shape: Callable[[Steps], Shape], given: Steps) -> Progress:
    """Return how far the fit had come.

    ``shape`` has the sizes of tables and how they move under some steps, of which trials have their own.
    """
    values, arrays = cast("dict[str, Any]", saved.values), saved.arrays
    hits = np.unpackbits(arrays["trial hits"], axis=1, count=int(values["held out"])).astype(bool)
    ends = np.cumsum(arrays["trial epochs"])
    trials = [
        Trial(int(stage), Steps(*steps.tolist()), list(hits[end - n : end]))
        for stage, steps, n, end in zip(
            arrays["trial stages"], arrays["trial steps"], arrays["trial epochs"], ends, strict=True
        )
    ]
    leader, trying = int(values["leader"]), bool(values["trying"])
    if leader >= 0:
        trials[leader].state = _state(saved, shape(trials[leader].steps), _LEADING)
    steps = Steps(*arrays["steps"].tolist()) if "steps" in arrays else None
    moving = steps or given  # how tables move is in their segments
    going = _state(saved, shape(moving), _GOING) if f"{_GOING}.stage" in values else None
    done = tuple(_state(saved, shape(moving), f"stage {stage}") for stage in range(int(values["stages"])))
    return Progress(done, trials, going, trying, steps)


def _state(saved: ModelState, shape: Shape, name: str) -> StageState:
    stage, weight = cast("int", saved.values[f"{name}.stage"]), float(saved.arrays[f"{name}.weight"][0])

    def tables(moment: str) -> tuple[Table, Table]:
        made = shape.tables(stage)
        for side, table in zip(("queries", "items"), made, strict=True):
            table.values[:] = saved.arrays[f"{name}.{moment}.{side}"]
            table.accumulators[:] = saved.arrays[f"{name}.{moment}.{side}.steps"]
            for part, weights in table.weights.items():
                weights.values[:] = saved.arrays[f"{name}.{moment}.{side}.{part}"]
                weights.accumulators[:] = saved.arrays[f"{name}.{moment}.{side}.{part}.steps"]
        return made

    return StageState(
        stage,
        *tables("now"),
        cast("int", saved.values[f"{name}.epoch"]),
        cast("int", saved.values[f"{name}.best_epoch"]),
        float(saved.arrays[f"{name}.best_recall"][0]),
        tables("best") if f"{name}.best.items" in saved.arrays else None,
        None if np.isnan(weight) else weight,
    )
