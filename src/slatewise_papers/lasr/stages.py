"""Stages of LaSR on numbered artists: all is chosen on the validation pairs, then fitted to all known pairs.

    weight of a pair = L(r) = sum_{i <= r} alpha_i,    alpha_i = i ** -alpha

with alpha = 1 in the paper and 0 for the AUC loss; above 1 the first places count even more. A stage ends when recall
at 20 on the validation pairs is flat for three epochs. Its settings are those with the best lists then, and a later
stage is kept only if its lists are better than those of the stage before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.arrays import Ints
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import tell, track
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights, step_size
from slatewise.factors.pair_terms import OwnItems, PairTerm, Semidefinite
from slatewise.factors.pairs import TrainingPairs, Validation
from slatewise.factors.queries import IdQueries, Queries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import Schedule, Shape, Stages, StageState
from slatewise.factors.tables import Segment, Table
from slatewise_papers.lasr.data import ArtistPairs, MusicProblem
from slatewise_papers.lasr.lists import Factored, Lists, ranks_of

LIST_LENGTH = 20
PATIENCE = 3
POSITION_WEIGHTS = (1.0 / np.arange(1, LIST_LENGTH + 1)).astype(np.float32)


@dataclass(frozen=True)
class Settings:
    """What is chosen: of t=0, and of the pair term of later stages."""

    n_components: int
    alpha: float = 1.0
    step: float = 0.5
    max_norm: float = 2.25
    term: Callable[[Segment], PairTerm] = Semidefinite
    pair_step: float = 0.1
    pair_norm: float = 0.7
    reverse: float = 0.0
    """Weight of every pair in the other direction, added to the training pairs."""
    own_weight: float = 0.0
    """Of the query itself in its list."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Stages fitted to some pairs."""

    settings: Settings
    states: tuple[StageState, ...]
    seconds: float = 0.0

    @property
    def epochs(self) -> tuple[int, ...]:
        """How long each stage was trained."""
        return tuple(state.best_epoch for state in self.states)

    @property
    def first(self) -> Factored:
        """Stage 0, biases in the last column."""
        width = self.settings.n_components + 1
        queries, items = self.states[0].queries.values, self.states[0].items.values
        return Factored(queries[:, :width], items[:, :width])

    def factors(self, numbers: Ints, stage: int | None = None) -> Factors:
        """Return the factors of a stage, or of the last one before it that there is; queries in the given order."""
        return self._cascade(numbers, stage).factors(len(numbers), Executor.of(None))

    def _cascade(self, numbers: Ints, stage: int | None) -> Cascade:
        last = len(self.states) - 1
        states = self.states[: 1 + (last if stage is None else min(stage, last))]
        stages = tuple(Factors(IdQueries(_rows(state.queries, numbers)), state.items) for state in states)
        pair, own = _shape(self.settings, 0).pair_term, _own_items(self.settings, numbers)
        return Cascade(stages, pair, POSITION_WEIGHTS, own)

    def lists(self, stage: int | None = None) -> Lists:
        """Rank by the factors of a stage."""

        def rank(numbers: Ints, k: int) -> Ints:
            cascade = self._cascade(numbers, stage)
            return cascade.top(np.arange(len(numbers)), k, executor=Executor.of(None)).items

        return rank


def choose_first(problem: MusicProblem, choices: Iterable[Settings], epochs: int, seed: int) -> Learned:
    """Train t=0 with every choice, and return the one with the best lists."""
    trials = (
        Learned(choice, _stages(problem, problem.train, choice, True, epochs, seed).fit(1, (), tell))
        for choice in track(list(choices), "settings of t=0")
    )
    return max(trials, key=lambda trial: quality(problem, trial.lists()))


def choose_next(problem: MusicProblem, before: Learned, choices: Iterable[Settings], epochs: int, seed: int) -> Learned:
    """Train one stage more with every choice, on lists handed over once; return the best, or ``before`` if it is."""
    lists = _stages(problem, problem.train, before.settings, True, epochs, seed).hand_over(before.states)
    best, chosen = quality(problem, before.lists()), before
    for choice in track(list(choices), f"settings of t={len(before.states)}"):
        stages = _stages(problem, problem.train, choice, True, epochs, seed)
        learned = stages.train(stages.start(len(before.states), before.states), lists, tell)
        if learned is None:
            continue
        trial = Learned(choice, (*before.states, learned))
        reached = quality(problem, trial.lists())
        if reached > best:
            best, chosen = reached, trial
    return chosen


def refit(problem: MusicProblem, trial: Learned, seed: int, done: Learned | None = None) -> Learned:
    """Fit the stages of a trial, after those ``done``, to all known pairs: as many epochs, nothing held out."""
    start = time.perf_counter()
    states = () if done is None else done.states
    for epochs in track(trial.epochs[len(states) :], "stages on all known pairs"):
        stages = _stages(problem, problem.known, trial.settings, False, epochs, seed)
        learned = stages.train(stages.start(len(states), states), stages.hand_over(states), tell)
        states = states if learned is None else (*states, learned)
    return Learned(trial.settings, states, time.perf_counter() - start)


def quality(problem: MusicProblem, lists: Lists) -> float:
    """Return what settings are chosen by: recall of the validation pairs."""
    return ranks_of(lists, problem.validation, problem.n_artists).quality()


def _stages(
    problem: MusicProblem, pairs: ArtistPairs, settings: Settings, watched: bool, epochs: int, seed: int
) -> Stages:
    return exact_stages(
        _shape(settings, problem.n_artists),
        IdQueries,
        problem.n_artists,
        _training(pairs, settings.reverse),
        Validation(problem.validation.queries, problem.validation.items, LIST_LENGTH) if watched else None,
        Schedule(epochs, PATIENCE, seed),
        settings.alpha,
        _own_items(settings, np.arange(problem.n_artists)),
    )


def exact_stages(
    shape: Shape,
    queries_of: Callable[[Table], Queries],
    n_queries: int,
    training: TrainingPairs,
    validation: Validation | None,
    schedule: Schedule,
    alpha: float = 1.0,
    own_items: OwnItems | None = None,
) -> Stages:
    """Return stages trained on all violating items of every pair."""
    executor = Executor.of(None)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(shape.n_items, alpha), step_size(len(training)), executor)
    return Stages(
        shape,
        queries_of,
        n_queries,
        training,
        validation,
        schedule,
        POSITION_WEIGHTS,
        lambda state, lists: engine,
        executor=executor,
        own_items=own_items,
    )


def _own_items(settings: Settings, numbers: Ints) -> OwnItems | None:
    return OwnItems(numbers, settings.own_weight) if settings.own_weight else None


def _training(pairs: ArtistPairs, reverse: float) -> TrainingPairs:
    weights = np.ones(len(pairs), dtype=np.float32)
    if not reverse:
        return TrainingPairs.of(pairs.queries, pairs.items, weights)
    return TrainingPairs.of(
        np.concatenate([pairs.queries, pairs.items]),
        np.concatenate([pairs.items, pairs.queries]),
        np.concatenate([weights, np.float32(reverse) * weights]),
    )


def _shape(settings: Settings, n_artists: int) -> Shape:
    return Shape(
        settings.n_components,
        n_artists,
        n_artists,
        settings.step,
        settings.max_norm,
        settings.step,
        settings.pair_step,
        settings.pair_norm,
        term=settings.term,
    )


def _rows(table: Table, numbers: Ints) -> Table:
    return replace(table, values=table.values[numbers])
