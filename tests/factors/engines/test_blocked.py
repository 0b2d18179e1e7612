import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import (
    BlockedEngine,
    SharedNegatives,
    WholeCatalogue,
    rank_weights,
    step_size,
)
from slatewise.factors.pairs import Block, TrainingPairs, shuffled_blocks
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.tables import Segment, Table, aligned_zeros, padded
from tests.factors.reference import adagrad, ascent, objective, rank_weight, shares

N = 5
SEGMENTS = (Segment(0, N, 0.3, 1.5), Segment(N, N + 1, 0.2))


def make_factors(n_queries, n_items, seed=0):
    rng = np.random.default_rng(seed)
    width = padded(N + 1)
    queries, items = Table.zeros(n_queries, width, SEGMENTS[:1]), Table.zeros(n_items, width, SEGMENTS)
    queries.values[:, :N], queries.values[:, N] = rng.normal(0, 0.5, (n_queries, N)), 1
    items.values[:, : N + 1] = rng.normal(0, 0.5, (n_items, N + 1))
    return Factors(IdQueries(queries), items)


def make_pairs(n_pairs, n_queries, n_items, seed=1):
    rng = np.random.default_rng(seed)
    queries, items = rng.integers(0, n_queries, n_pairs), rng.integers(0, n_items, n_pairs)
    weights = rng.random(n_pairs).astype(np.float32)
    return TrainingPairs.of(queries, items, weights, most=4)


def expected_tables(factors, pairs, pushed):
    X, Z = factors.queries.table.values.astype(float), factors.items.values.astype(float)
    gx, gz = ascent(X, Z, list(zip(pairs.queries, pairs.items, strict=True)), pairs.weights, pushed)
    columns = [(part.start, part.stop, part.step, part.max_norm) for part in SEGMENTS]
    return (
        adagrad(X, np.zeros((len(X), 1)), gx, columns[:1]),
        adagrad(Z, np.zeros((len(Z), 2)), gz, columns),
    )


@pytest.mark.parametrize(("n_items", "n_pairs"), [(7, 30), (300, 30), (5000, 5)])
def test_a_step_over_the_whole_catalogue_is_the_slow_one(n_items, n_pairs):
    factors, pairs = make_factors(9, n_items), make_pairs(n_pairs, 9, n_items)
    X, Z = factors.queries.table.values, factors.items.values
    pushed = [shares(X[q].astype(float), Z.astype(float), d) for q, d in zip(pairs.queries, pairs.items, strict=True)]
    (x, ax), (z, az) = expected_tables(factors, pairs, pushed)
    engine = BlockedEngine(WholeCatalogue(most=n_items), rank_weights(n_items), 1000, Executor(1))
    seen = engine.epoch(factors, pairs, np.random.default_rng(0))
    np.testing.assert_allclose(factors.queries.table.values, x, atol=2e-5)
    np.testing.assert_allclose(factors.items.values, z, atol=2e-5)
    np.testing.assert_allclose(factors.queries.table.accumulators, ax, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(factors.items.accumulators, az, rtol=1e-4, atol=1e-9)
    assert seen.violated == np.mean([bool(share) for share in pushed])


@pytest.mark.parametrize("k", [0, 6])
def test_a_step_over_drawn_negatives_is_the_slow_one(k):
    factors, pairs = make_factors(9, 200), make_pairs(30, 9, 200)
    X, Z = factors.queries.table.values, factors.items.values
    lists = np.argsort(-(X @ Z.T), axis=1, kind="stable")[:, :k]
    if k:
        lists[4, 3:] = -1
    negatives = SharedNegatives(40, lists=lists)
    drawn = negatives.draw(Z, np.random.default_rng(5))
    pushed = [
        shares(X[q].astype(float), Z.astype(float), d, drawn=drawn.drawn, listed=[j for j in lists[q] if j >= 0])
        for q, d in zip(pairs.queries, pairs.items, strict=True)
    ]
    (x, _), (z, _) = expected_tables(factors, pairs, pushed)

    class Fixed:
        def prepare(self, factors, pairs, executor):
            return self

        def draw(self, items, rng):
            return drawn

    BlockedEngine(Fixed(), rank_weights(200), 1000, Executor(1)).epoch(factors, pairs, np.random.default_rng(0))
    np.testing.assert_allclose(factors.queries.table.values, x, atol=2e-5)
    np.testing.assert_allclose(factors.items.values, z, atol=2e-5)


def whole_block(pairs, starts=None):
    ends = pairs.offsets[1:].copy()
    starts = np.zeros(len(pairs), dtype=np.int64) if starts is None else starts
    return Block(pairs.queries[pairs.offsets[:-1]], ends, pairs.items, pairs.weights, starts)


def test_the_gradient_is_that_of_the_objective_at_fixed_weights():
    factors, pairs = make_factors(4, 30), make_pairs(12, 4, 30)
    X, Z = factors.queries.table.values.astype(float), factors.items.values.astype(float)
    listed = list(zip(pairs.queries, pairs.items, strict=True))
    pushed = [shares(X[q], Z, d) for q, d in listed]
    block = whole_block(pairs)
    found = WholeCatalogue(most=30).gradient(
        block, factors.queries.vectors(block.queries), factors.items.values, rank_weights(30)
    )
    assert found.loss == pytest.approx(objective(X, Z, listed, pairs.weights, pushed), rel=1e-5)
    dense = np.zeros(Z.shape)
    vectors = factors.queries.vectors(block.queries)
    np.add.at(dense, found.items.rows, found.items.coefficients[:, None] * vectors[found.items.sources])
    by_query = np.zeros(X.shape)
    np.add.at(by_query, block.queries, found.queries)
    small = 1e-6
    rng = np.random.default_rng(0)
    for _ in range(40):
        for values, gradient in ((X, by_query), (Z, dense)):
            place = rng.integers(len(values)), rng.integers(N + 1)
            before = values[place]
            values[place] = before + small
            up = objective(X, Z, listed, pairs.weights, pushed)
            values[place] = before - small
            down = objective(X, Z, listed, pairs.weights, pushed)
            values[place] = before
            assert -(up - down) / (2 * small) == pytest.approx(gradient[place], abs=1e-5)


@pytest.mark.parametrize("n_violators", [3, 8, 9, 100, 3000])
def test_the_sample_of_violators_is_even(n_violators):
    n_items, most = 4100, 8
    rng = np.random.default_rng(0)
    Z = aligned_zeros(n_items, 16)
    Z[1:, 0] = -5
    bad = rng.choice(np.arange(1, n_items), n_violators, replace=False)
    Z[bad, 0] = 5
    X = aligned_zeros(1, 16)
    X[0, 0] = 1
    repeats = 4096
    block = Block(
        np.zeros(1, dtype=np.int64),
        np.array([repeats]),
        np.zeros(repeats, dtype=np.int64),
        np.ones(repeats, dtype=np.float32),
        np.arange(repeats),
    )
    found = WholeCatalogue(most).gradient(block, X, Z, rank_weights(n_items))
    share = np.zeros(n_items)
    np.add.at(share, found.items.rows, found.items.coefficients)
    weight = rank_weight(n_violators, n_items)
    assert share[0] / repeats == pytest.approx(weight, rel=1e-4)
    assert set(np.flatnonzero(share < 0)) == set(bad)
    # A sample of 4 to 8 violators whose mean is taken: unbiased up to the last, shorter stride.
    assert share[bad].sum() / repeats == pytest.approx(-weight, rel=1e-4)
    np.testing.assert_allclose(share[bad] / repeats, -weight / n_violators, rtol=0.3)
    sizes = np.bincount(found.items.sources, minlength=1)[0] / repeats - 1
    assert min(n_violators, most // 4) <= sizes <= most


def ladder(n_items, ranks):
    """One query for each rank: exactly so many items violate the pair (query, item 0)."""
    Z = aligned_zeros(n_items, 16)
    Z[0, 1] = 1
    Z[1:, 0] = -np.arange(1, n_items) / 1024
    X = aligned_zeros(len(ranks), 16)
    X[:, 0], X[:, 1] = 1, 1 - (np.asarray(ranks) + 0.5) / 1024
    return X, Z


def block_of(ranks, repeats):
    n = len(ranks) * repeats
    rows = np.arange(len(ranks), dtype=np.int64)
    return Block(rows, (rows + 1) * repeats, np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.float32), np.arange(n))


def update_weights(found, n_rows):
    up = np.zeros(n_rows)
    positive = found.items.coefficients > 0
    np.add.at(up, found.items.sources[positive], found.items.coefficients[positive])
    return up


def test_update_weights_over_the_whole_catalogue_are_exact():
    n_items, ranks = 100_000, np.arange(1, 1001)
    X, Z = ladder(n_items, ranks)
    table = rank_weights(n_items)
    found = WholeCatalogue().gradient(block_of(ranks, 1), X, Z, table)
    np.testing.assert_array_equal(update_weights(found, 1000).astype(np.float32), table[ranks])
    harmonic = np.cumsum(1 / np.arange(1, n_items + 1))
    np.testing.assert_allclose(table[ranks], harmonic[ranks - 1] / harmonic[-1], rtol=1e-6)


def test_update_weights_with_drawn_negatives_and_lists():
    n_items, ranks = 100_000, np.arange(1, 1001)
    X, Z = ladder(n_items, ranks)
    table = rank_weights(n_items)
    lists = np.tile(np.arange(1, 21), (1000, 1))
    negatives = SharedNegatives(2048, lists=lists)
    rng, total = np.random.default_rng(0), np.zeros(1000)
    for _ in range(100):
        drawn = negatives.draw(Z, rng)
        total += update_weights(drawn.gradient(block_of(ranks, 1), X, Z, table), 1000)
    ratio = total / 100 / table[ranks]
    np.testing.assert_allclose(ratio[:20], 1, rtol=1e-5)  # inside the list: exact
    assert np.all(ratio[20:] > 0.88)  # a logarithm of an unbiased rank: a little below
    assert np.all(ratio[20:] < 1.1)
    # Without lists the top of the list is hardly ever updated.
    none = SharedNegatives(2048, lists=np.empty((1000, 0), dtype=np.int64))
    few = block_of(ranks[:3], 1)
    bare = sum(update_weights(none.draw(Z, rng).gradient(few, X[:3], Z, table), 3) for _ in range(100))
    assert bare.mean() / 100 < 0.2 * table[1]


def test_queries_with_few_pairs_get_no_list():
    n_items, counts = 3000, np.arange(1, 13)  # 8 pairs x 8 x 50 drawn items are the first to outweigh 3,000
    factors, owners = make_factors(12, n_items), np.repeat(np.arange(12), counts)
    pairs = TrainingPairs.of(owners, np.arange(len(owners)), np.ones(len(owners), dtype=np.float32))
    lists = SharedNegatives(50, 5).prepare(factors, pairs, Executor(1)).lists
    best = np.argsort(-(factors.queries.table.values @ factors.items.values.T), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(lists[:7], -1)
    np.testing.assert_array_equal(lists[7:], best[7:])


def test_auc_weights_count_all_ranks_alike():
    np.testing.assert_allclose(rank_weights(50, power=0.0), np.arange(50) / 50, rtol=1e-6)


@pytest.mark.parametrize("negatives", [WholeCatalogue(8), SharedNegatives(50, 5)])
def test_same_bits_with_any_number_of_threads(negatives):
    tables = []
    for threads in (1, 2, 3):
        factors, pairs = make_factors(40, 3000), make_pairs(700, 40, 3000)
        engine = BlockedEngine(negatives, rank_weights(3000), 200, Executor(threads))
        for epoch in range(2):
            engine.epoch(factors, pairs, np.random.default_rng(epoch))
        tables.append((factors.queries.table.values, factors.items.values, factors.items.accumulators))
    for others in tables[1:]:
        for one, other in zip(tables[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_norms_stay_bounded_and_the_bias_is_left_out():
    factors, pairs = make_factors(20, 50), make_pairs(400, 20, 50)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(50), 64, Executor(1))
    for epoch in range(6):
        engine.epoch(factors, pairs, np.random.default_rng(epoch))
    lengths = np.linalg.norm(factors.items.values[:, :N], axis=1)
    assert lengths.max() <= 1.5 * (1 + 1e-6)
    assert np.abs(factors.items.values[:, N]).max() > 0
    assert np.all(factors.queries.table.values[:, N] == 1)
    assert not factors.items.values[:, N + 1 :].any()


def test_the_loss_falls():
    factors, pairs = make_factors(20, 100), make_pairs(60, 20, 100)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(100), 16, Executor(1))
    losses = [engine.epoch(factors, pairs, np.random.default_rng(epoch)).loss for epoch in range(15)]
    assert losses[-1] < 0.5 * losses[0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 7), st.integers(1, 20), st.integers(0, 9))
def test_runs_and_blocks_hold_every_pair_once(queries, most, block_pairs, seed):
    numbers = np.array(queries, dtype=np.int64)
    pairs = TrainingPairs.of(numbers, np.arange(len(numbers)), np.ones(len(numbers), dtype=np.float32), most)
    sizes = np.diff(pairs.offsets)
    assert sizes.min() >= 1
    assert sizes.max() <= most
    assert len(sizes) == sum(-(-count // most) for count in np.bincount(numbers))
    seen = []
    for block in shuffled_blocks(pairs, block_pairs, np.random.default_rng(seed)):
        owners = np.repeat(block.queries, np.diff(block.ends, prepend=0))
        seen += list(zip(owners.tolist(), block.positives.tolist(), strict=True))
        assert block.ends[-1] == len(block.positives)
        assert len(block.positives) < block_pairs + most
    assert sorted(seen) == sorted(zip(queries, range(len(queries)), strict=True))


def test_a_step_is_a_hundredth_of_an_epoch():
    assert [step_size(n) for n in (10, 50_000, 10**7)] == [64, 500, 2048]
