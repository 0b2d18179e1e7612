import numpy as np
import pytest

from slatewise.core.running.executor import Executor
from slatewise.factors.engines import ENGINES
from slatewise.factors.engines import gpu as gpu_engine
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.engines.gpu import TorchDevice
from slatewise.factors.engines.protocol import EngineTask, EpochStats
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import Gpu, TrainingSettings
from slatewise.factors.stages import PLAIN_EPOCHS, Schedule, Shape, Stages, StageState
from slatewise.factors.tables import MOMENTS, Entries, EpochMean, Segment, Table, step_rows


def tables(rng, n_queries=12, n_items=30):
    queries, items = Shape(3, n_queries, n_items, 0.3, 2.0, 0.3, 0.1, 1.0).tables(0)
    for table in (queries, items):
        table.values[:, :3] = rng.normal(size=(len(table.values), 3))
    return queries, items


def some_pairs(rng, n=300):
    return TrainingPairs.of(rng.integers(0, 12, n), rng.integers(0, 30, n), np.ones(n, dtype=np.float32), most=1)


def advanced(queries, items, pairs, engine, epochs):
    """A stage after so many epochs."""
    schedule, weights = Schedule(epochs, 3, 0), np.ones(1, dtype=np.float32)
    shape = Shape(3, len(queries.values), len(items.values), 0.3, 2.0, 0.3, 0.1, 1.0)
    stages = Stages(shape, IdQueries, 12, pairs, None, schedule, weights, lambda state, lists: engine)
    state = StageState(0, queries, items)
    stages.advance(state, np.empty((12, 0), dtype=np.int64), lambda report: None)
    return state


class Noted:
    """Queries that keep what the tables are after every step."""

    def __init__(self, inner, queries, items):
        self.inner, self.tables, self.seen = inner, (queries, items), []
        self.vectors, self.backward, self.score_offsets = inner.vectors, inner.backward, None

    def step(self, queries, gradient, executor):
        self.inner.step(queries, gradient, executor)
        self.seen.append([table.values.astype(float) for table in self.tables])


@pytest.mark.parametrize("step_pairs", [4, 12, 100, 1000])
def test_it_is_the_mean_over_moments_at_equal_distances(step_pairs):
    rng = np.random.default_rng(0)
    queries, items = tables(rng)
    pairs = some_pairs(rng)
    mean = EpochMean(queries, items, len(pairs))
    noted = Noted(IdQueries(queries), queries, items)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(30), step_pairs, Executor(1))
    engine.epoch(Factors(noted, items), pairs, np.random.default_rng(1), mean)
    runs = np.minimum(np.arange(1, len(noted.seen) + 1) * step_pairs, len(pairs))
    taken, moment = [], 1
    for seen, state in zip(runs, noted.seen, strict=True):
        if seen >= moment * len(pairs) / MOMENTS - 1e-9:
            taken.append(state)
            moment += 1
    assert len(taken) == min(len(noted.seen), MOMENTS)
    for found, table, which in zip(mean.tables(), (queries, items), range(2), strict=True):
        np.testing.assert_allclose(found.values, np.mean([state[which] for state in taken], axis=0), atol=1e-5)
        np.testing.assert_array_equal(found.accumulators, table.accumulators)
        assert not np.shares_memory(found.values, table.values)


def test_what_is_frozen_stays_to_the_bit():
    rng = np.random.default_rng(2)
    queries, items = tables(rng)
    mean = EpochMean(queries, items, 100)
    for _ in range(50):
        mean.count(2)
        items.values[:, 0] += rng.normal(size=len(items.values))
    np.testing.assert_array_equal(mean.tables()[0].values, queries.values)
    np.testing.assert_array_equal(mean.tables()[1].values[:, 1:], items.values[:, 1:])


@pytest.mark.parametrize("epochs", [PLAIN_EPOCHS, PLAIN_EPOCHS + 1])
def test_means_come_after_the_first_epochs(epochs):
    rng = np.random.default_rng(3)
    queries, items = tables(rng)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(30), 16, Executor(1))
    state = advanced(queries, items, some_pairs(rng), engine, epochs)
    assert state.best_epoch == epochs
    assert np.array_equal(state.best[1].values, items.values) == (epochs == PLAIN_EPOCHS)


def test_an_engine_that_tells_of_no_steps_breaks_its_contract():
    rng = np.random.default_rng(4)
    queries, items = tables(rng)

    class Untold:
        def epoch(self, factors, pairs, rng, mean=None):
            items.values[:, 0] += 1.0
            return EpochStats(1.0, 1.0)

    pairs = some_pairs(rng)
    assert advanced(queries, items, pairs, Untold(), PLAIN_EPOCHS).best_epoch == PLAIN_EPOCHS
    with pytest.raises(RuntimeError, match="engine: expected a count of 300 runs of pairs, found 0"):
        advanced(queries, items, pairs, Untold(), PLAIN_EPOCHS + 1)


@pytest.mark.parametrize("kind", list(ENGINES))
def test_every_engine_tells_of_all_runs_in_many_steps(kind, monkeypatch):
    if kind is Gpu:
        pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")
        monkeypatch.setattr(gpu_engine, "gpu_to_train_on", lambda name: TorchDevice("cpu"))
    settings = TrainingSettings(
        3, epochs=12, validation_fraction=0, patience=3, engine=kind(), learning_rate=0.3, max_norm=2.0
    )
    for stage in (0, 1):
        rng = np.random.default_rng(5)
        queries, items = tables(rng)
        pairs = some_pairs(rng, 2000)
        lists = np.empty((12, 0), dtype=np.int64)
        task = EngineTask(settings, stage, queries, lists, 30, len(pairs), Executor(1))
        mean = EpochMean(queries, items, len(pairs))
        start = items.copy()
        ENGINES[kind].make(task).epoch(Factors(IdQueries(queries), items), pairs, rng, mean)
        assert mean.seen == len(pairs)
        assert mean.moments == MOMENTS
        found = mean.tables()[1].values
        assert np.linalg.norm(found - start.values) < np.linalg.norm(items.values - start.values)


def test_a_gradient_too_small_to_have_a_square_moves_nothing():
    table = Table.zeros(2, 16, (Segment(0, 3, 0.3, 1.0), Segment(3, 4, 0.2)))
    entries = Entries(np.array([0, 1]), np.ones(2, dtype=np.float32), np.array([0, 1]))
    vectors = np.zeros((2, 16), dtype=np.float32)
    vectors[0, 0], vectors[1, :4] = 3e-23, 1.0  # its square is the least above 0, the mean of three is none
    step_rows(table, entries, vectors, Executor(1))
    assert not table.values[0].any()
    np.testing.assert_allclose(table.values[1, :4], [0.3, 0.3, 0.3, 0.2], rtol=1e-6)
