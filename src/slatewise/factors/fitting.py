"""How settings and pairs become the parts of a fit: tables, engine, schedule, stages, search."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from slatewise.core import rules
from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor, refuse_on_cluster
from slatewise.factors.base_scores import BaseScores
from slatewise.factors.checkpoint import packed, unpacked
from slatewise.factors.engine import EngineTask, WarpEngine
from slatewise.factors.engines import ENGINES
from slatewise.factors.pair_terms import OwnItems
from slatewise.factors.pairs import Pairs
from slatewise.factors.queries import Queries
from slatewise.factors.search import Learned, Progress, StageSearch, left_open
from slatewise.factors.settings import Steps, TrainingSettings
from slatewise.factors.stages import Shape, Stages
from slatewise.factors.tables import Table
from slatewise.factors.training import EpochReport, Schedule, StageState, Validation
from slatewise.persistence.checkpoint import Checkpoint


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


def learn(
    settings: TrainingSettings, problem: Problem, checkpoint: Checkpoint, executor: Executor, searched: bool = True
) -> Learned:
    """Train all stages, going on from a checkpoint; learning rates and norms that are "auto" are searched for."""
    steps = settings.steps()
    shape = partial(problem.shape, settings)
    stages = stages_of(settings, problem, shape(steps), executor)
    saved = checkpoint.read()
    progress = Progress() if saved is None else unpacked(saved, shape, steps)

    def watch(report: EpochReport) -> None:
        if checkpoint.path is not None:
            checkpoint.write(*packed(progress))
        settings.report(report)

    names = left_open(settings) if searched and stages.validation is not None else []
    learned = StageSearch(stages, shape, names, settings.stages.n, progress, watch).fit(steps)
    checkpoint.remove()
    return learned


def stages_of(settings: TrainingSettings, problem: Problem, shape: Shape, executor: Executor) -> Stages:
    """Put the parts of stages together."""
    refuse_on_cluster("WARP training", "a ranker that was fitted before the cluster was opened")
    training = problem.pairs.for_training()
    return Stages(
        shape,
        problem.queries,
        problem.pairs.n_queries,
        training,
        problem.validation,
        Schedule(settings.epochs, settings.patience, settings.seed),
        settings.stages.weights(),
        partial(engine_of, settings, len(training), executor),
        problem.folds if settings.stages.n > 1 else None,
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


def check_engine(settings: TrainingSettings) -> None:
    """Raise before work starts where the engine cannot be had."""
    ENGINES[type(settings.engine)].device(settings)


def warn_of_stages(kept: int, wanted: int) -> None:
    """Warn where a stage was trained and left out."""
    if kept < wanted:
        warnings.warn(
            f"stages: {kept} of {wanted} are kept: the next one did not raise the recall of held-out pairs",
            stacklevel=3,
        )


def zero_rows_without_pairs(queries: Table, n_queries: int, *known: Ints) -> None:
    """Set U of queries that have no pair, and are not ``known`` from before, to 0: nothing but chance has made it.

    Such a query is then ranked by the biases, as one is that is folded in without items.
    """
    own = queries.segments[0]
    without = np.ones(n_queries, dtype=bool)
    for numbers in known:
        without[numbers] = False
    queries.values[without, own.start : own.stop] = 0.0


def check_finite(query_factors: Singles, item_factors: Singles, steps: Steps) -> None:
    """Raise ValueError where training has led to numbers that are none."""
    finite = rules.learned_array(query_factors.ndim, np.float32)
    if not (finite.allows(query_factors) and finite.allows(item_factors)):
        raise ValueError(
            "learning_rate: expected steps under which factors stay finite, found "
            f"{steps.learning_rate:g}; features that are too large do the same"
        )
