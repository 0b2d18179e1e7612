"""Stages of a latent structured ranker, each on top of the lists of the one before (Weston and Blitzer, eq. 8).

    t = 0:  f(q, d) = (U q).(V d) + b_d
    t > 0:  f(q, d) = (U q).(V d) + b_d + sum_{j <= k} w_j (S d).(S dbar_j),    dbar = the k best items of stage t - 1

With p_q = sum_j w_j S dbar_j this is ``[U q ; 1 ; p_q].[V d ; b_d ; S d]``: one inner product; a bilinear pair term has
``T dbar_j`` instead. A stage begins at the U, V, b and S of the one before (the first S: small random numbers) and is
kept only if recall on held-out pairs rose. S overfits soon, so it has its own step and norm, and U, V and b stay as
they are.

A query that is itself an item may belong to its own list, with a weight: S'S then learns from a pair (a, b) what comes
after a and what comes after b.

Where queries come with features, a list made by a model that was trained on its query is better than any list of a new
query will be. Such lists are cross-fitted: those of a fold's queries come from a model trained without the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slatewise.latent.engine import Factors, WarpEngine
from slatewise.latent.pair_terms import Gram, PairTerm
from slatewise.latent.pairs import TrainingPairs
from slatewise.latent.queries import Queries
from slatewise.latent.screen import Screen
from slatewise.latent.tables import Ints, Segment, Singles, Table, padded
from slatewise.latent.top_k import top_items
from slatewise.latent.training import EpochReport, Schedule, StageState, Validation, train_stage


@dataclass(frozen=True)
class Shape:
    """Sizes, steps and norms of the tables."""

    n_components: int
    n_queries: int
    """Rows of U: queries, or features of queries."""
    n_items: int
    step: float
    max_norm: float
    bias_step: float
    pair_step: float
    pair_norm: float
    by_id: bool = True
    """Whether rows of U are the queries' own, and hold the 1 that multiplies the bias."""
    term: Callable[[Segment], PairTerm] = Gram

    def width(self, stage: int) -> int:
        """Return how many numbers a row takes."""
        return padded(self.n_components + 1 if stage == 0 else self.pair_term.segments[-1].stop)

    @property
    def pair(self) -> Segment:
        """The columns of S."""
        return Segment(self.n_components + 1, 2 * self.n_components + 1, self.pair_step, self.pair_norm)

    @property
    def pair_term(self) -> PairTerm:
        """How a list moves an item."""
        return self.term(self.pair)

    def tables(self, stage: int) -> tuple[Table, Table]:
        """Return tables of zeros for U and for the items."""
        n = self.n_components
        own = Segment(0, n, self.step, self.max_norm)
        bias = Segment(n, n + 1, self.bias_step)
        frozen = replace(own, step=0.0), replace(bias, step=0.0)
        parts = ((own,), (own, bias)) if stage == 0 else (frozen[:1], (*frozen, *self.pair_term.segments))
        queries = Table.zeros(self.n_queries, self.width(stage), parts[0])
        queries.values[:, n] = self.by_id
        return queries, Table.zeros(self.n_items, self.width(stage), parts[1])


@dataclass(frozen=True, eq=False)
class OwnItems:
    """Queries that are items themselves, each in its own list."""

    items: Ints
    """The item that each query is; -1 where it is none."""
    weight: float


@dataclass(frozen=True, eq=False)
class Stages:
    """How the stages of one fit are trained."""

    shape: Shape
    queries: Callable[[Table], Queries]
    """Makes the queries that pairs call by number from a table of U."""
    n_queries: int
    """How many of them there are."""
    pairs: TrainingPairs
    validation: Validation | None
    schedule: Schedule
    position_weights: Singles
    """w_1 to w_k."""
    engine: Callable[[StageState, Ints], WarpEngine]
    """Makes the engine that trains a stage, which may use the lists handed over to it; they are empty for stage 0."""
    folds: Ints | None = None
    """The fold of every query, -1 where it is in none; None: lists are not cross-fitted."""
    n_threads: int | None = None
    own_items: OwnItems | None = None

    def fit(
        self,
        n_stages: int,
        done: tuple[StageState, ...],
        going: StageState | None,
        watch: Callable[[tuple[StageState, ...], EpochReport, StageState], None],
    ) -> tuple[StageState, ...]:
        """Train the stages after those ``done``, going on with ``going``; stop where one does not raise recall."""
        for stage in range(len(done), n_stages):
            state = self.start(stage, done) if going is None else going
            going = None
            learned = self.train(state, self.hand_over(done), partial(watch, done))
            if learned is None:
                break
            done = (*done, learned)
        return done

    def train(
        self, state: StageState, lists: Ints, watch: Callable[[EpochReport, StageState], None]
    ) -> StageState | None:
        """Train one stage on the lists of the one before; None where it does not raise recall."""
        self.advance(state, lists, watch)
        if state.best is None:
            return None
        best_queries, best_items = state.best
        return replace(state, queries=best_queries, items=best_items, best=None)

    def advance(self, state: StageState, lists: Ints, watch: Callable[[EpochReport, StageState], None]) -> None:
        """Train a stage for as many epochs as the schedule has; it can be gone on with."""
        places = places_of(lists, self.position_weights, self.own_items)

        def factors(own: Table, items: Table) -> Factors:
            queries = self.queries(own)
            if state.stage > 0:
                queries = self.shape.pair_term.queries(queries, items, *places)
            return Factors(queries, items)

        train_stage(
            state,
            factors,
            self.pairs,
            self.engine(state, lists),
            self.schedule,
            self.validation,
            self.n_threads,
            watch,
        )

    def hand_over(self, done: tuple[StageState, ...]) -> Ints:
        """Return the lists of the last stage for every query, (queries, k); empty ones before the first."""
        if not done:
            return np.empty((self.n_queries, 0), dtype=np.int64)
        lists = self._lists(done, np.arange(self.n_queries))
        if self.folds is not None:
            for fold in range(int(self.folds.max()) + 1):
                inside = self.folds == fold
                others = replace(self, pairs=self.pairs.without(inside), folds=None)
                apart = others.fit(len(done), (), None, lambda done, report, state: None)
                lists[inside] = self._lists(apart, np.flatnonzero(inside))
        return lists

    def _lists(self, done: tuple[StageState, ...], numbers: Ints) -> Ints:
        tables = [(state.queries, state.items) for state in done]
        weights, threads = self.position_weights, self.n_threads
        pair, own = self.shape.pair_term, self.own_items
        factors = stage_factors(self.queries, self.n_queries, tables, pair, weights, threads, own)
        k = min(len(weights), self.shape.n_items)
        return top_items(factors.queries, numbers, factors.items.values, k, n_threads=threads).items

    def start(self, stage: int, done: tuple[StageState, ...]) -> StageState:
        """Return the tables that a stage begins with."""
        rng = np.random.default_rng((self.schedule.seed, stage))
        queries, items = self.shape.tables(stage)
        n = self.shape.n_components
        if stage == 0:
            for table in (queries, items):
                table.values[:, :n] = rng.normal(0, 1 / np.sqrt(n), (len(table.values), n))
            return StageState(stage, queries, items)
        last = done[-1]
        queries.values[:, : n + 1] = last.queries.values[:, : n + 1]
        width = last.items.values.shape[1]
        items.values[:, :width] = last.items.values
        if stage == 1:
            for part in self.shape.pair_term.segments:
                items.values[:, part.start : part.stop] = rng.normal(0, 0.1 / np.sqrt(n), (len(items.values), n))
        return StageState(stage, queries, items, best_recall=last.best_recall)


def stage_factors(
    queries: Callable[[Table], Queries],
    n_queries: int,
    tables: Sequence[tuple[Table, Table]],
    pair: PairTerm,
    position_weights: Singles,
    n_threads: int | None = None,
    own_items: OwnItems | None = None,
    screen: Callable[[int], Screen | None] = lambda stage: None,
) -> Factors:
    """Return the factors of the last stage: each stage's lists are made by the one before.

    Parameters
    ----------
    queries, n_queries
        Makes queries from a table of U, and how many they are.
    tables
        U and the items' table of every stage.
    pair
        How a list moves an item.
    position_weights
        w_1 to w_k.
    n_threads
        Threads over blocks of queries.
    own_items
        The queries as items of their lists.
    screen
        Returns the screen of the items of a stage, if there is one.
    """
    first, *later = tables
    factors = Factors(queries(first[0]), first[1])
    numbers, k = np.arange(n_queries), min(len(position_weights), len(first[1].values))
    for stage, (own, items) in enumerate(later):
        values = factors.items.values
        lists = top_items(factors.queries, numbers, values, k, n_threads=n_threads, screen=screen(stage)).items
        factors = Factors(pair.queries(queries(own), items, *places_of(lists, position_weights, own_items)), items)
    return factors


def places_of(lists: Ints, position_weights: Singles, own_items: OwnItems | None) -> tuple[Ints, Singles]:
    """Return lists, a row a query, with own items behind them, and the weights of all places."""
    weights = position_weights[: lists.shape[1]]
    if own_items is None:
        return lists, weights
    return np.column_stack([lists, own_items.items]), np.append(weights, np.float32(own_items.weight))
