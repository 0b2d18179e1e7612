"""A further epoch on further pairs; tables get rows for ids that were not there before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import Executor
from slatewise.factors.learner import Learned, Problem, engine_of, stages_of, steps_of
from slatewise.factors.pair_terms import PairTerm
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import Steps, TrainingSettings
from slatewise.factors.stages import StageState
from slatewise.factors.tables import Table, Weights


@dataclass(frozen=True, eq=False)
class Former:
    """What an epoch goes on from."""

    queries: tuple[Singles, ...]
    """U of every stage."""
    items: tuple[Singles, ...]
    pair: PairTerm
    query_steps: Singles
    item_steps: Singles
    """AdaGrad's accumulators."""
    epochs: tuple[int, ...]
    """Trained so far, by stage."""
    weights: dict[str, Weights] = field(default_factory=dict[str, Weights])
    """Those of the table of U."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of before are among those of now."""

    queries: Ints
    items: Ints
    new_are_random: bool = True
    """Whether new rows of U begin with random numbers, not 0."""


def first_epoch(
    settings: TrainingSettings,
    problem: Problem,
    executor: Executor,
    prepare: Callable[[Table], None] | None = None,
) -> Learned:
    """Train on the first pairs of all; ``prepare`` sets rows of U that have no pair."""
    if settings.stages.n != 1:
        raise ValueError(f"stages: expected 1 for a first partial_fit, found {settings.stages.n}; use fit")
    steps = steps_of(settings)
    state = stages_of(settings, problem, steps, executor).start(0, ())
    if prepare is not None:
        prepare(state.queries)
    _epoch(settings, problem, state, executor)
    return Learned((replace(state, epoch=1, best_epoch=1),), steps)


def one_more_epoch(
    settings: TrainingSettings,
    steps: Steps,
    problem: Problem,
    former: Former,
    places: Places,
    executor: Executor,
    prepare: Callable[[Table], None] | None = None,
) -> Learned:
    """Train stage 0 on further pairs, numbered among all ids; later stages have its U, V and b, and keep their S."""
    state = grown(settings, steps, problem, former, places)
    if prepare is not None:
        prepare(state.queries)
    _epoch(settings, problem, state, executor)
    first = former.epochs[0] + 1
    states = [replace(state, epoch=first, best_epoch=first)]
    for stage in range(1, len(former.items)):
        states.append(_later(settings, steps, problem, former, states[0], places.items, stage))
    return Learned(tuple(states), steps)


def grown(settings: TrainingSettings, steps: Steps, problem: Problem, former: Former, places: Places) -> StageState:
    """Return the tables of stage 0 with rows for all ids."""
    n, n_items = settings.n_components, len(problem.pairs.item_ids)
    queries, items = problem.shape(settings, steps).tables(0)
    rng = np.random.default_rng((settings.seed, 0, sum(former.epochs), n_items))
    drawn = rng if places.new_are_random else None
    _fill_rows(queries, n, places.queries, former.queries[0], former.query_steps, drawn)
    _fill_rows(items, n, places.items, former.items[0], former.item_steps, rng)
    queries.weights.update({name: part.copy() for name, part in former.weights.items()})
    return StageState(0, queries, items, epoch=sum(former.epochs))


def check_components(settings: TrainingSettings, former: int) -> None:
    """Raise ValueError unless the width of the tables stays."""
    if settings.n_components != former:
        raise ValueError(
            f"n_components: expected {former}, that of the tables to go on with, found {settings.n_components}; use fit"
        )


def _epoch(settings: TrainingSettings, problem: Problem, state: StageState, executor: Executor) -> None:
    training = problem.pairs.for_training()
    factors = Factors(problem.queries(state.queries), state.items)
    nothing = np.empty((problem.pairs.n_queries, 0), dtype=np.int64)
    rng = np.random.default_rng((settings.seed, 0, state.epoch))
    factors = replace(factors, queries=factors.queries.for_epoch(rng))
    engine_of(settings, len(training), executor, state, nothing).epoch(factors, training, rng)


def _later(
    settings: TrainingSettings,
    steps: Steps,
    problem: Problem,
    former: Former,
    first: StageState,
    old_items: Ints,
    stage: int,
) -> StageState:
    """Return a later stage with the U, V and b of the first; an item that was not there before has no S."""
    queries, items = problem.shape(settings, steps).tables(stage)
    own = first.items.values.shape[1]
    queries.values[:, : first.queries.values.shape[1]] = first.queries.values
    items.values[old_items] = former.items[stage][:, : items.values.shape[1]]
    pair = former.pair.S.start
    items.values[:, :pair] = first.items.values[:, : min(pair, own)]
    epochs = former.epochs[stage]
    return StageState(stage, queries, items, epoch=epochs, best_epoch=epochs)


def _fill_rows(
    table: Table, n: int, places: Ints, values: Singles, steps: Singles, rng: np.random.Generator | None
) -> None:
    """Put learned rows into their places of an empty table; the rest are random, as fit begins with, or stay 0."""
    new = np.ones(len(table.values), dtype=bool)
    new[places] = False
    if rng is not None:
        table.values[new, :n] = rng.normal(0, 1 / np.sqrt(n), (int(new.sum()), n))
    table.values[places], table.accumulators[places] = values[:, : table.values.shape[1]], steps
