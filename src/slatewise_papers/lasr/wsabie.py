"""WSABIE and one more stage on it, where queries are rows of features and items are labels.

    t = 0:  f(x, d) = (U x).(V d) + b_d                                          WSABIE
    t = 1:  f(x, d) = (U x).(V d) + b_d + sum_{j <= k} w_j (S d).(S dbar_j),     dbar = the k best labels by t = 0

A stage ends when recall at 5 of the validation rows' labels is flat for three epochs, and its best epoch is what is
returned, whether it is better than the stage before or not: the caller decides that. Lists of training rows come
from models of as many epochs that did not see the row, nor any other of its group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import tell, track
from slatewise.factors.pair_terms import PairTerm
from slatewise.factors.pairs import TrainingPairs, Validation
from slatewise.factors.queries import DenseQueries, Queries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import Schedule, Shape, Stages, StageState
from slatewise.factors.tables import Segment, Table
from slatewise_papers.lasr.labels import AnnotationProblem, LabelledPart
from slatewise_papers.lasr.stages import PATIENCE, POSITION_WEIGHTS, exact_stages

WATCHED_DEPTH, FOLDS = 5, 5


@dataclass(frozen=True, eq=False)
class Annotator:
    """Stages fitted to the training rows."""

    shape: Shape
    states: tuple[StageState, ...]

    @property
    def epochs(self) -> int:
        """How long the last stage was trained before it was best."""
        return self.states[-1].best_epoch

    def scores(self, X: Floats) -> Floats:
        """Return the score of every label, (rows, labels)."""
        queries = _queries(X, self.shape)
        stages = tuple(Factors(queries(state.queries), state.items) for state in self.states)
        factors = Cascade(stages, self.shape.pair_term, POSITION_WEIGHTS).factors(len(X), Executor.of(None))
        return (factors.queries.vectors(np.arange(len(X))) @ factors.items.values.T).astype(np.float64)


def first_stage(
    problem: AnnotationProblem, n_components: int, step: float, norm: float, epochs: int, seed: int
) -> Annotator:
    """Train WSABIE, the best of at most ``epochs`` epochs."""
    train, validation = problem.train, problem.validation
    shape = Shape(
        n_components, train.X.shape[1], train.Y.shape[1], step, norm, step, pair_step=0.0, pair_norm=1.0, by_id=False
    )
    stages = _stages(shape, train, validation, epochs, seed)
    return Annotator(shape, stages.fit(1, (), tell))


def next_stage(
    problem: AnnotationProblem,
    first: Annotator,
    lists: Ints,
    term: Callable[[Segment], PairTerm],
    step: float,
    norm: float,
    epochs: int,
    seed: int,
) -> Annotator:
    """Train one stage more, on the lists of the training and then the validation rows; U, V and b stay."""
    shape = replace(first.shape, term=term, pair_step=step, pair_norm=norm)
    stages = _stages(shape, problem.train, problem.validation, epochs, seed)
    # From nothing, not from what t=0 reached: the best epoch is wanted even where no epoch is better than that.
    state = replace(stages.start(1, first.states), best_recall=-np.inf)
    learned = stages.train(state, lists, tell)
    return Annotator(shape, first.states if learned is None else (*first.states, learned))


def out_of_fold(problem: AnnotationProblem, first: Annotator, seed: int) -> Floats:
    """Return scores of the training rows by models of the same settings that saw no row of their group."""
    train = problem.train
    scores = np.empty(train.Y.shape)
    number = fold_numbers(train.group, seed)
    for fold in track(range(int(number.max()) + 1), "folds"):
        stages = _stages(first.shape, train.rows(number != fold), None, first.epochs, seed)
        apart = Annotator(first.shape, stages.fit(1, (), tell))
        scores[number == fold] = apart.scores(train.X[number == fold])
    return scores


def fold_numbers(group: Ints, seed: int) -> Ints:
    """Return a fold for every row, the same for all rows of a group; folds have equally many groups, or one less."""
    distinct, own = np.unique(group, return_inverse=True)
    return np.random.default_rng((seed, 2)).permutation(len(distinct))[own] % FOLDS


def best_labels(scores: Floats, k: int | None = None) -> Ints:
    """Return the numbers of the k best labels of every row, best first; equal ones in their order."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def _stages(shape: Shape, train: LabelledPart, held_out: LabelledPart | None, epochs: int, seed: int) -> Stages:
    rows, labels = np.nonzero(train.Y)
    pairs = TrainingPairs.of(rows, labels, np.ones(len(rows), dtype=np.float32))
    X, validation = train.X, None
    if held_out is not None:
        rows_held_out, wanted = np.nonzero(held_out.Y)
        X = np.vstack([X, held_out.X])
        validation = Validation(len(train.X) + rows_held_out, wanted, min(WATCHED_DEPTH, shape.n_items))
    return exact_stages(shape, _queries(X, shape), len(X), pairs, validation, Schedule(epochs, PATIENCE, seed))


def _queries(X: Floats, shape: Shape) -> Callable[[Table], Queries]:
    features = np.ascontiguousarray(X, dtype=np.float32)
    return lambda table: DenseQueries(features, table, shape.n_components)
