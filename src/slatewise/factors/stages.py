"""Stages of a latent structured ranker, each on top of the lists of the one before (Weston and Blitzer, eq. 8).

    t = 0:  f(q, d) = (U q).(V d) + b_d                      or the score b(q, d) of any base
    t > 0:  f(q, d) = f_0(q, d) + sum_{j <= k} w_j (S d).(S dbar_j),    dbar = the k best items of stage t - 1

With p_q = sum_j w_j S dbar_j this is ``[U q ; 1 ; p_q].[V d ; b_d ; S d]``: one inner product; a bilinear pair term has
``T dbar_j`` instead, and one of both ``A d`` and ``B dbar_j`` besides. A stage begins at the U, V, b and S of the one
before (the first S: small random numbers) and is kept only if recall on held-out pairs rose. S overfits soon, so it has
its own step and norm, and U, V and b stay as they are. After the first epochs, which are still on their way, recall is
measured with the mean of the tables over an epoch, and that mean is kept.

A query that is itself an item may belong to its own list, with a weight: S'S then learns from a pair (a, b) what comes
after a and what comes after b.

Where queries come with features, a list made by a model that was trained on its query is better than any list of a new
query will be. Such lists are cross-fitted: those of a fold's queries come from a model trained without the fold.

Where a base of sessions scores too, its weight against the factors learned on top of it is chosen on held-out pairs:

    score = a g(base) / m + factors ,    m = 0: the base alone,  m = 1: as trained together,  None: no base

A sum that is trained as a whole moves the top of lists up and may lose items further down which the base alone finds.
So of all weights under which recall at k is not below that of the base alone, or by less than its standard error, the
best NDCG at k is looked for; and the weight nearest to the base is taken that has half of its gain. For later queries
resemble the held-out ones without being the same: the first half of the gain is nearly free, and the second is paid for
in recall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bools, Floats, Ints, Singles
from slatewise.core.running.executor import ONE_THREAD, Executor
from slatewise.factors.bags import AGE_WEIGHTS, REPEAT_WEIGHTS, SPLINE_STEPS, start_weights
from slatewise.factors.engines.protocol import WarpEngine
from slatewise.factors.pair_terms import ListedQueries, OwnItems, PairTerm, Semidefinite, places_of
from slatewise.factors.pairs import TrainingPairs, Validation
from slatewise.factors.queries import Queries
from slatewise.factors.scoring import BaseScores, Cascade, Device, Factors
from slatewise.factors.settings import WATCHED, EpochReport
from slatewise.factors.tables import EpochMean, Segment, Table, Weights, padded
from slatewise.recommend.evaluation import gains_of, ranks_in, recall_of


@dataclass(frozen=True)
class Schedule:
    """When to stop, and the seed of the order of the pairs."""

    epochs: int
    patience: int
    """Epochs in succession without a better recall after which a stage ends."""
    seed: int


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
    """Of the factors beside a base; None: there is no base."""
    hits: Bools | None = None
    """Held-out pairs found after the last epoch; not kept in a checkpoint."""

    def kept(self) -> StageState | None:
        """Return the stage with the tables of its best epoch; None where there is none."""
        if self.best is None:
            return None
        queries, items = self.best
        return replace(self, queries=queries, items=items, best=None)


def recall_at(
    cascade: Cascade, queries: Ints, items: Ints, ks: tuple[int, ...], executor: Executor = ONE_THREAD
) -> dict[int, float]:
    """Return the recall at each k."""
    distinct, own = np.unique(queries, return_inverse=True)
    return recall_of(cascade.top(distinct, min(max(ks), cascade.n_items), executor=executor).items, own, items, ks)


def hits_at(cascade: Cascade, held: Validation, executor: Executor = ONE_THREAD) -> Bools:
    """Say of each held-out pair whether its item is among the k best of its query."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, min(held.k, cascade.n_items), executor=executor).items
    return ranks_in(lists, own, held.items) < lists.shape[1]


WEIGHTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, None)
"""Of the factors, from the base alone, which is 0, away."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """Tables that answer by a weight, and what they reach with every pair held out."""

    weight: float | None
    tables: tuple[Table, Table]
    gains: Floats
    """1 / log2(1 + place) where the item is among the k best, else 0."""


def choose_weight(
    tables: tuple[Table, Table],
    popularity: Ints,
    ranked_by: Callable[[tuple[Table, Table]], Cascade],
    held: Validation,
    executor: Executor,
) -> Mixed:
    """Return the best mixture of a base and factors; ``ranked_by`` tables the held-out pairs are ranked."""
    tried: list[Mixed] = []
    for weight in (0.0, *WEIGHTS):
        made = _weighed(tables, popularity, weight)
        tried.append(Mixed(weight, made, reached(ranked_by(made), held, executor)))
    return best_mixture(*tried)


def best_mixture(base: Mixed, *others: Mixed) -> Mixed:
    """Return the base alone, or the one of the others, which come from the base away, that the rule takes."""
    allowed = [one for one in others if _finds_as_much(one.gains, base.gains)]
    allowed = [one for one in allowed if one.gains.mean() > base.gains.mean()]
    if not allowed:
        return base
    best = max(float(one.gains.mean()) for one in allowed)
    enough = (best + float(base.gains.mean())) / 2
    return next(one for one in allowed if one.gains.mean() >= enough)


def _finds_as_much(gains: Floats, others: Floats) -> bool:
    """Say whether recall is not below another's, or by less than the standard error of their difference."""
    found = (gains > 0).astype(np.float64) - (others > 0)
    return bool(found.mean() >= -found.std() / np.sqrt(len(found)))


def _weighed(tables: tuple[Table, Table], popularity: Ints, weight: float | None) -> tuple[Table, Table]:
    queries, items = (table.copy() for table in tables)
    steps = queries.weights[SPLINE_STEPS].values
    if weight == 0:
        # Items that the base says nothing of come by popularity: so little of it that the order of all others, which
        # have 1 at least, stays.
        steps[:] = 1.0
        queries.weights[REPEAT_WEIGHTS].values[:] = 0.0
        items.values[:] = 0.0
        items.values[:, items.segments[1].start] = 1e-7 * popularity / (popularity.sum() + 1.0)
    else:
        steps *= np.float32(0.0 if weight is None else 1.0 / weight)
    return queries, items


def reached(cascade: Cascade, held: Validation, executor: Executor) -> Floats:
    """Return the gain of every pair."""
    distinct, own = np.unique(held.queries, return_inverse=True)
    lists = cascade.top(distinct, held.k, executor=executor).items
    places: NDArray[np.int64] = np.full(len(own), -1, dtype=np.int64)
    for place in range(lists.shape[1]):
        places[lists[own, place] == held.items] = place
    return gains_of(places, held.k)


PLAIN_EPOCHS = 2
"""Before means are taken."""


@dataclass(frozen=True)
class Shape:
    """Sizes, steps and norms of the tables."""

    n_components: int
    n_queries: int
    """Rows of U: queries, or features of queries, or items and features of sessions."""
    n_items: int
    step: float
    max_norm: float
    bias_step: float
    pair_step: float
    pair_norm: float
    by_id: bool = True
    """Whether rows of U are the queries' own, and hold the 1 that multiplies the bias."""
    term: Callable[[Segment], PairTerm] = Semidefinite
    on_base: bool = False
    """Whether a base scores first: then there is no U, V and b, and rows begin with S."""
    n_ages: int = 0
    """Of queries that hold items: how many ages have weights."""
    n_knots: int = 0
    """Of a base of such queries: how many steps its levels have; 0: there is none."""

    @property
    def n_own(self) -> int:
        """How many columns stand before those of S: V and the bias."""
        return 0 if self.on_base else self.n_components + 1

    def width(self, stage: int) -> int:
        """Return how many numbers a row takes."""
        return padded(self.pair_term.segments[-1].stop if stage else self.n_own)

    @property
    def pair_term(self) -> PairTerm:
        """How a list moves an item."""
        return self.term(Segment(self.n_own, self.n_own + self.n_components, self.pair_step, self.pair_norm))

    def tables(self, stage: int) -> tuple[Table, Table]:
        """Return tables of zeros for U and for the items."""
        n, pair = self.n_components, self.pair_term.segments if stage else ()
        if self.on_base:
            return Table.zeros(0, self.width(stage), ()), Table.zeros(self.n_items, self.width(stage), pair)
        own = Segment(0, n, 0.0 if stage else self.step, self.max_norm)
        bias = Segment(n, n + 1, 0.0 if stage else self.bias_step)
        queries = Table.zeros(self.n_queries, self.width(stage), (own,))
        queries.values[:, n] = self.by_id
        sizes = {AGE_WEIGHTS: self.n_ages, REPEAT_WEIGHTS: self.n_ages, SPLINE_STEPS: self.n_knots}
        queries.weights.update({name: Weights.zeros(size) for name, size in sizes.items() if size})
        return queries, Table.zeros(self.n_items, self.width(stage), (own, bias, *pair))


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
    executor: Executor = ONE_THREAD
    own_items: OwnItems | None = None
    base: BaseScores | None = None
    """What scores first, where U and V do not."""
    base_steps: Singles | None = None
    """How a base of sessions is added to what U and V score."""
    device: Device | None = None
    """Where lists are made; None: here."""

    def fit(
        self, n_stages: int, done: tuple[StageState, ...], watch: Callable[[EpochReport], None]
    ) -> tuple[StageState, ...]:
        """Train the stages after those ``done``; stop where one does not raise recall."""
        for stage in range(len(done), n_stages):
            state, lists = self.start(stage, done), self.hand_over(done)
            self.advance(state, lists, watch)
            learned = self.kept(state, lists)
            if learned is None:
                break
            done = (*done, learned)
        return done

    def train(self, state: StageState, lists: Ints, watch: Callable[[EpochReport], None]) -> StageState | None:
        """Train one stage on the lists of the one before; None where it does not raise recall."""
        self.advance(state, lists, watch)
        return self.kept(state, lists)

    def kept(self, state: StageState, lists: Ints) -> StageState | None:
        """Return the best of a stage that is trained, a base weighed against it; None where it did not raise recall."""
        learned, held = state.kept(), self.validation
        if learned is None or held is None or state.stage or not self.shape.n_knots:
            return learned
        best = choose_weight(
            (learned.queries, learned.items),
            np.bincount(self.pairs.items, minlength=self.shape.n_items),
            lambda made: Cascade((self._factors(learned, lists, *made),), device=self.device),
            held,
            self.executor,
        )
        queries, items = best.tables
        recall = float((best.gains > 0).mean())
        return replace(learned, queries=queries, items=items, best_recall=recall, weight=best.weight)

    def advance(self, state: StageState, lists: Ints, watch: Callable[[EpochReport], None]) -> None:
        """Go on until recall is flat or the epochs are used up; ``state.best`` has the result.

        What an epoch does depends on the seed and its number only, so it can be gone on with later.
        """
        schedule, held, n_runs = self.schedule, self.validation, len(self.pairs.offsets) - 1
        moving = self._factors(state, lists, state.queries, state.items)
        engine = self.engine(state, lists)
        while state.epoch < schedule.epochs and (held is None or state.epoch - state.best_epoch < schedule.patience):
            rng = np.random.default_rng((schedule.seed, state.stage, state.epoch))
            mean = EpochMean(state.queries, state.items, n_runs)
            averaged = state.epoch >= PLAIN_EPOCHS
            seen_so = replace(moving, queries=moving.queries.for_epoch(rng))
            seen = engine.epoch(seen_so, self.pairs, rng, mean if averaged else None)
            if averaged and mean.seen != n_runs:
                raise RuntimeError(f"engine: expected a count of {n_runs} runs of pairs, found {mean.seen}")
            state.epoch += 1
            found, recall = mean.tables(), None
            if held is not None:
                cascade = Cascade((self._factors(state, lists, *found),), device=self.device)
                state.hits = hits_at(cascade, held, self.executor)
                recall = float(state.hits.mean())
            if recall is None or recall > state.best_recall:
                state.best, state.best_epoch = found, state.epoch
                state.best_recall = state.best_recall if recall is None else recall
            depth = WATCHED if held is None else held.k
            watch(EpochReport(state.stage, state.epoch, seen.loss, seen.violated, recall, schedule.epochs, depth))

    def hand_over(self, done: tuple[StageState, ...]) -> Ints:
        """Return the lists of the last stage for every query, (queries, k); empty ones before the first."""
        if not done:
            return np.empty((self.n_queries, 0), dtype=np.int64)
        lists = self._lists(done, np.arange(self.n_queries))
        if self.folds is not None:
            for fold in range(int(self.folds.max()) + 1):
                inside = self.folds == fold
                others = replace(self, pairs=self.pairs.without(inside), folds=None)
                apart = others.fit(len(done), (), lambda report: None)
                lists[inside] = self._lists(apart, np.flatnonzero(inside))
        return lists

    def start(self, stage: int, done: tuple[StageState, ...]) -> StageState:
        """Return the tables that a stage begins with."""
        rng = np.random.default_rng((self.schedule.seed, stage))
        queries, items = self.shape.tables(stage)
        n = self.shape.n_components
        if stage == 0:
            for table in () if self.shape.on_base else (queries, items):
                n_rows = len(table.values)
                # Weights draw numbers too, unused, so that V begins the same however they are stored.
                n_drawn = n_rows + sum(len(part.values) for part in table.weights.values())
                table.values[:, :n] = rng.normal(0, 1 / np.sqrt(n), (n_drawn, n))[:n_rows]
            if self.shape.n_ages:
                queries.values[:] = 0.0  # an item that nothing came after adds nothing
                start_weights(queries.weights, self.base_steps)
            return StageState(stage, queries, items)
        last = done[-1]
        for table, before in ((queries, last.queries), (items, last.items)):
            table.values[:, : before.values.shape[1]] = before.values
            for name, part in before.weights.items():
                table.weights[name].values[:] = part.values
        if stage == 1:
            for part in self.shape.pair_term.segments:
                items.values[:, part.start : part.stop] = rng.normal(0, 0.1 / np.sqrt(n), (len(items.values), n))
        return StageState(stage, queries, items, best_recall=last.best_recall)

    def recall(self, done: tuple[StageState, ...]) -> float:
        """Return the recall of the held-out pairs that is watched; -inf where none are held out."""
        if self.validation is None:
            return -np.inf
        held = self.validation
        return recall_at(self.cascade(done), held.queries, held.items, (held.k,), self.executor)[held.k]

    def cascade(self, done: tuple[StageState, ...]) -> Cascade:
        """Return what ranks by stages that are done."""
        factors = tuple(Factors(self.queries(state.queries), state.items, self.base) for state in done)
        return Cascade(factors, self.shape.pair_term, self.position_weights, self.own_items, device=self.device)

    def _lists(self, done: tuple[StageState, ...], numbers: Ints) -> Ints:
        cascade = self.cascade(done)
        return cascade.top(numbers, cascade.list_length, executor=self.executor).items

    def _factors(self, state: StageState, lists: Ints, own: Table, items: Table) -> Factors:
        """Return what a stage scores by, from tables of U and of the items."""
        queries = self.queries(own)
        if state.stage > 0:
            places, weights = places_of(lists, self.position_weights, self.own_items)
            queries = ListedQueries(queries, items, self.shape.pair_term, places, weights)
        return Factors(queries, items, self.base)
