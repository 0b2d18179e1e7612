"""How the progress of a LatentRanker's fit becomes the arrays and values of a checkpoint, and comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise.factors.search import Progress, Trial
from slatewise.factors.settings import Steps
from slatewise.factors.stages import Shape
from slatewise.factors.tables import Table
from slatewise.factors.training import StageState
from slatewise.persistence.file import Json, ModelState

_GOING, _LEADING = "going", "leading"


def packed(progress: Progress) -> tuple[dict[str, NDArray[Any]], dict[str, Json]]:
    """Return the finished stages, the trials, the best of them, and what is under way, as arrays and plain values."""
    trials, leader = progress.trials, _leader(progress)
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


def _leader(progress: Progress) -> int:
    """Return the best trial so far that is not the one under way; -1 where none has its state."""
    finished = progress.trials[:-1] if progress.trying else []
    return next((number for number, trial in enumerate(finished) if trial.state is not None), -1)


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
