import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.engines.protocol import EpochStats
from slatewise.factors.pair_terms import ListedQueries, OwnItems
from slatewise.factors.pairs import TrainingPairs, Validation
from slatewise.factors.queries import DenseQueries, IdQueries, SparseQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import Schedule, Shape, Stages, StageState
from slatewise.factors.tables import Segment, Table
from tests.factors.reference import adagrad, shares

N = 3
WEIGHTS = np.array([1.0, 0.5, 1 / 3], dtype=np.float32)


def shape(n_queries, n_items, **change):
    settings = {"step": 0.3, "max_norm": 2.0, "bias_step": 0.3, "pair_step": 0.1, "pair_norm": 1.0}
    return Shape(N, n_queries, n_items, **{**settings, **change})


def filled(table, rng, columns):
    table.values[:, :columns] = rng.normal(0, 0.6, (len(table.values), columns))
    return table


def cascade_of(tables, sizes, own=None):
    stages = tuple(Factors(IdQueries(queries), items) for queries, items in tables)
    return Cascade(stages, sizes.pair_term, WEIGHTS, own)


def test_a_later_stage_scores_by_the_formula():
    rng = np.random.default_rng(0)
    sizes = shape(6, 12)
    first, second = sizes.tables(0), sizes.tables(1)
    for queries, items, columns in ((*first, N + 1), (*second, 2 * N + 1)):
        filled(items, rng, columns)
        filled(queries, rng, N)
    cascade = cascade_of([first, second], sizes)
    factors = cascade.factors(6)
    U0, V0 = first[0].values, first[1].values
    U, V, b, S = second[0].values[:, :N], second[1].values[:, :N], second[1].values[:, N], second[1].values[:, N + 1 :]
    found = factors.queries.vectors(np.arange(6)) @ factors.items.values.T
    for q in range(6):
        before = np.argsort(-(V0 @ U0[q]), kind="stable")[:3]
        for d in range(12):
            score = U[q] @ V[d] + b[d] + sum(w * S[d] @ S[j] for w, j in zip(WEIGHTS, before, strict=True))
            assert found[q, d] == pytest.approx(score, abs=1e-5)


def test_a_query_that_is_an_item_moves_its_own_list():
    rng = np.random.default_rng(0)
    sizes = shape(4, 12)
    tables = [sizes.tables(t) for t in range(3)]
    for t, (queries, items) in enumerate(tables):
        filled(items, rng, N + 1 + N * (t > 0))
        filled(queries, rng, N)
    own = OwnItems(np.array([7, -1, 0, 11]), 2.5)
    cascade = cascade_of(tables, sizes, own)
    factors = cascade.factors(4)
    found = factors.queries.vectors(np.arange(4)) @ factors.items.values.T
    for q in range(4):
        scores = tables[0][1].values @ tables[0][0].values[q]
        for queries, items in tables[1:]:
            before = np.argsort(-scores, kind="stable")[:3]
            S = items.values[:, N + 1 : 2 * N + 1]
            p = sum(w * S[j] for w, j in zip(WEIGHTS, before, strict=True))
            if own.items[q] >= 0:
                p = p + 2.5 * S[own.items[q]]
            scores = items.values[:, :N] @ queries.values[q, :N] + items.values[:, N] + S @ p
        np.testing.assert_allclose(found[q], scores, atol=1e-5)
        # Ranked all stages at a time, or the last alone on lists that were handed over.
        np.testing.assert_allclose(np.sort(found[q])[::-1], cascade.top(np.array([q]), 12).scores[0], atol=1e-5)


def test_a_step_of_a_stage_also_goes_through_the_lists():
    """S moves along the whole gradient of the objective in S, that of p_q included; U and V stay."""
    rng = np.random.default_rng(1)
    sizes = shape(4, 15, pair_norm=10.0)
    queries, items = sizes.tables(1)
    filled(items, rng, 2 * N + 1)
    filled(queries, rng, N)
    lists = np.array([rng.choice(15, 3, replace=False) for _ in range(4)])
    lists[2, 2] = -1
    factors = Factors(ListedQueries(IdQueries(queries), items, sizes.pair_term, lists, WEIGHTS), items)
    pairs = TrainingPairs.of(rng.integers(0, 4, 9), rng.integers(0, 15, 9), np.ones(9, dtype=np.float32))
    before = items.values.astype(float)
    X = queries.values.astype(float)

    def vectors(Z):
        out = X.copy()
        for q in range(4):
            out[q, N + 1 : 2 * N + 1] = sum(
                w * Z[j, N + 1 : 2 * N + 1] for w, j in zip(WEIGHTS, lists[q], strict=True) if j >= 0
            )
        return out

    pushed = [shares(vectors(before)[q], before, d) for q, d in zip(pairs.queries, pairs.items, strict=True)]

    def objective(Z):
        V = vectors(Z)
        return sum(
            part * (1 - V[q] @ Z[d] + V[q] @ Z[j])
            for q, d, share in zip(pairs.queries, pairs.items, pushed, strict=True)
            for j, part in share.items()
        )

    gradient, small = np.zeros(before.shape), 1e-6
    for row in range(15):
        for f in range(N + 1, 2 * N + 1):
            there = np.zeros(before.shape)
            there[row, f] = small
            gradient[row, f] = -(objective(before + there) - objective(before - there)) / (2 * small)
    expected, _ = adagrad(before, np.zeros((15, 1)), gradient, [(N + 1, 2 * N + 1, 0.1, 10.0)])
    kept = queries.values.copy()
    BlockedEngine(WholeCatalogue(), rank_weights(15), 64, Executor(1)).epoch(factors, pairs, np.random.default_rng(0))
    np.testing.assert_allclose(items.values, expected, atol=1e-4)
    np.testing.assert_array_equal(queries.values, kept)


@pytest.mark.parametrize("sparse", [False, True])
def test_feature_queries_step_along_the_product_with_their_features(sparse):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.7)
    table = filled(Table.zeros(4, 16, (Segment(0, N, 0.3, 2.0),)), rng, N)
    before = table.values.astype(float)
    kind, features = (SparseQueries, csr_array(X, dtype=np.float32)) if sparse else (DenseQueries, X.astype(np.float32))
    queries = kind(features, table, N)
    asked = np.array([5, 0, 0, 3])
    expected = X[asked] @ before
    expected[:, N] = 1
    np.testing.assert_allclose(queries.vectors(asked), expected, atol=1e-6)
    gradient = np.zeros((4, 16), dtype=np.float32)
    gradient[:, :N] = rng.normal(size=(4, N))
    queries.step(asked, gradient, Executor(1))
    moved, _ = adagrad(before, np.zeros((4, 1)), X[asked].T @ gradient, [(0, N, 0.3, 2.0)])
    np.testing.assert_allclose(table.values, moved, atol=1e-5)
    assert queries.backward(asked, gradient) is None


class Scripted:
    """An engine that plays recalls: after epoch e the first ``hits[e]`` queries find their item."""

    def __init__(self, table, hits):
        self.table = table
        self.hits = hits
        self.epochs = 0

    def epoch(self, factors, pairs, rng, mean=None):
        good = np.arange(len(self.table.values)) < self.hits[self.epochs]
        self.table.values[:, 0] = np.where(good, 1, -1)
        self.epochs += 1
        if mean is not None:
            mean.count(len(pairs))
        return EpochStats(1.0 / self.epochs, 0.5)


def test_a_stage_ends_when_recall_is_flat_and_keeps_its_best():
    queries, items = shape(10, 4).tables(0)
    items.values[:, 0] = [1, 0, 0, 0]
    state, engine, seen = StageState(0, queries, items), Scripted(queries, [2, 5, 4, 5, 3, 9]), []
    pairs = TrainingPairs.of(np.arange(10), np.zeros(10, dtype=np.int64), np.ones(10, dtype=np.float32))
    validation = Validation(np.arange(10), np.zeros(10, dtype=np.int64), 1)
    stages = Stages(shape(10, 4), IdQueries, 10, pairs, validation, Schedule(20, 3, 0), WEIGHTS, lambda *_: engine)
    stages.advance(state, np.empty((10, 0), dtype=np.int64), seen.append)
    assert [report.recall for report in seen] == [0.2, 0.5, 0.4, 0.5, 0.3]
    assert (state.best_epoch, state.best_recall) == (2, 0.5)
    assert np.sum(state.best[0].values[:, 0] > 0) == 5


def test_a_stage_that_does_not_help_is_dropped():
    rng = np.random.default_rng(0)
    pairs = TrainingPairs.of(rng.integers(0, 8, 40), rng.integers(0, 9, 40), np.ones(40, dtype=np.float32))
    validation = Validation(pairs.queries, pairs.items, 1)
    sizes = shape(8, 9)

    class Frozen:
        def epoch(self, factors, pairs, rng, mean=None):
            if mean is not None:
                mean.count(len(pairs.offsets) - 1)
            return EpochStats(1.0, 1.0)

    def engine(state, lists):
        return BlockedEngine(WholeCatalogue(), rank_weights(9), 64, Executor(1)) if state.stage == 0 else Frozen()

    stages = Stages(sizes, IdQueries, 8, pairs, validation, Schedule(5, 2, 0), WEIGHTS, engine)
    reports = []
    done = stages.fit(3, (), reports.append)
    assert len(done) == 1
    assert reports[-1].stage == 1


def test_cross_fitted_lists_do_not_know_their_own_pairs():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 40)).astype(np.float32)  # enough of them to learn every row by heart
    folds = np.arange(60) % 4 - 1
    weights = np.ones(1, dtype=np.float32)

    def stages(items, folds):
        pairs = TrainingPairs.of(np.arange(60), items, np.ones(60, dtype=np.float32))
        return Stages(
            shape(40, 9, by_id=False),
            lambda table: DenseQueries(features, table, N),
            60,
            pairs,
            None,
            Schedule(20, 3, 0),
            weights,
            lambda state, lists: BlockedEngine(WholeCatalogue(), rank_weights(9), 64, Executor(1)),
            folds,
        )

    items = rng.integers(0, 9, 60)
    plain = stages(items, None)
    done = plain.fit(1, (), lambda report: None)
    lists = plain.hand_over(done)[:, 0]
    assert np.mean(lists == items) > 0.6
    honest = stages(items, folds).hand_over(done)[:, 0]
    assert np.mean(honest[folds >= 0] == items[folds >= 0]) < 0.4
    np.testing.assert_array_equal(honest[folds < 0], lists[folds < 0])
    changed = np.where(folds == 1, (items + 1) % 9, items)
    again = stages(changed, folds).hand_over(done)[:, 0]
    np.testing.assert_array_equal(again[folds == 1], honest[folds == 1])


def test_lists_may_be_longer_than_the_catalogue():
    pairs = TrainingPairs.of(np.arange(4), np.arange(4) % 2, np.ones(4, dtype=np.float32))
    engine = BlockedEngine(WholeCatalogue(), rank_weights(2), 64, Executor(1))
    stages = Stages(shape(4, 2), IdQueries, 4, pairs, None, Schedule(2, 1, 0), WEIGHTS, lambda state, lists: engine)
    done = stages.fit(3, (), lambda report: None)
    assert [state.epoch for state in done] == [2, 2, 2]
