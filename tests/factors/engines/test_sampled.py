import os
import subprocess
import sys

import numpy as np
import pytest

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import rank_weights
from slatewise.factors.engines.sampled import SampledEngine, quantized_rows
from slatewise.factors.kernels.quantized_rows import half_size, largest_score, quantize_row
from slatewise.factors.kernels.sampled import FactorMoves, sampled_epoch
from slatewise.factors.pairs import Block, TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import recall_at
from slatewise.factors.tables import Segment, Table, aligned_zeros, padded
from tests.factors.reference import adagrad

N = 5
SEGMENTS = (Segment(0, N, 0.3, 1.5), Segment(N, N + 1, 0.2))


def tables(n_queries, n_items, seed=0, n=N):
    rng = np.random.default_rng(seed)
    segments = (Segment(0, n, 0.3, 1.5), Segment(n, n + 1, 0.2))
    queries, items = Table.zeros(n_queries, padded(n + 1), segments[:1]), Table.zeros(n_items, padded(n + 1), segments)
    queries.values[:, :n], queries.values[:, n] = rng.normal(0, 0.5, (n_queries, n)), 1
    items.values[:, :n] = rng.normal(0, 0.5, (n_items, n))
    return queries, items


def visit(queries, items, pairs, max_draws, step=0.3, seed=7, weight=1.0, quantized=None):
    totals = np.zeros(2)
    sampled_epoch(
        queries.values,
        queries.accumulators,
        items.values,
        items.accumulators,
        quantized_rows(items.values, N + 1) if quantized is None else quantized,
        FactorMoves(N, step, 1.5, 0.2),
        Block(
            np.array([q for q, _ in pairs]),
            np.arange(1, len(pairs) + 1),
            np.array([d for _, d in pairs]),
            np.full(len(pairs), weight, dtype=np.float32),
            np.zeros(len(pairs), dtype=np.int64),
        ),
        rank_weights(len(items.values)),
        max_draws,
        seed,
        totals,
    )
    return totals


def expected_weights(ranks, n_items, max_draws, power=1):
    """Sum over N of P(first violator at draw N) (L(floor((D - 1) / N)) / L(D)) ** power, for each true rank.

    Draws of one estimate follow each other, and their chances add up to a difference of two powers.
    """
    weight = rank_weights(n_items).astype(float)
    estimates = np.unique((n_items - 1) // np.arange(1, max_draws + 1))
    first, last = (n_items - 1) // (estimates + 1), np.minimum((n_items - 1) // estimates, max_draws)
    missed = 1 - np.asarray(ranks)[:, None] / (n_items - 1)
    return (missed**first - missed**last) @ weight[estimates] ** power


def test_mean_update_weights_are_near_those_of_the_true_ranks():
    """Each of the ranks 1 to 1,000: the drawn weights against the arithmetic, and the arithmetic against L(r)."""
    n_items, ranks, repeats = 100_000, np.arange(1, 1001), 60
    expected = expected_weights(ranks, n_items, n_items - 1)
    true = rank_weights(n_items)[ranks].astype(float)
    # E L(D / N) is not L(D / E N), and at the first ranks one lucky draw weighs much.
    ratio = expected / true
    assert 1 < ratio.min() < ratio.max() < 1.25
    assert ratio[20:].max() < 1.16
    assert ratio[100:].max() < 1.115

    queries, items = tables(1, n_items)
    queries.values[0] = np.eye(1, queries.values.shape[1])
    items.values[:] = 0
    items.values[1:, 0] = -2
    quantized = quantized_rows(items.values, N + 1)
    found = np.empty(len(ranks))
    for place, rank in enumerate(ranks):
        items.values[rank, 0] = 0  # every violator exceeds the bar by 1, so the loss is the weight
        quantize_row(items.values, rank, N + 1, quantized)
        totals = visit(queries, items, [(0, 0)] * repeats, n_items - 1, step=0.0, seed=int(rank), quantized=quantized)
        found[place] = totals[0] / repeats
    spread = np.sqrt((expected_weights(ranks, n_items, n_items - 1, power=2) - expected**2) / repeats)
    errors = (found - expected) / spread
    assert np.abs(errors).max() < 5  # standard errors; of a thousand normal numbers the largest is about 3.2
    assert abs(errors.mean()) < 5 / np.sqrt(len(ranks))


def test_few_draws_lose_the_top():
    assert expected_weights([20], 177_000, 100)[0] < 0.05 * rank_weights(177_000)[20]


def test_an_update_is_the_slow_one():
    queries, items = tables(1, 2)
    x, good, bad = (values.astype(float) for values in (queries.values[0], items.values[0], items.values[1]))
    amount = float(rank_weights(2)[1])
    assert visit(queries, items, [(0, 0)], 1)[1] == 1
    columns = [(part.start, part.stop, part.step, part.max_norm) for part in SEGMENTS]
    new_x, _ = adagrad(x[None], np.zeros((1, 1)), amount * (good - bad)[None], columns[:1])
    new_z, steps = adagrad(np.stack([good, bad]), np.zeros((2, 2)), amount * np.stack([x, -x]), columns)
    np.testing.assert_allclose(queries.values, new_x, atol=1e-6)
    np.testing.assert_allclose(items.values, new_z, atol=1e-6)
    np.testing.assert_allclose(items.accumulators, steps, rtol=1e-5)


def test_draws_are_spread_evenly_and_never_hit_the_positive():
    queries, items = tables(1, 7)
    queries.values[:] = 0
    counts = np.zeros(7)
    for seed in range(1, 2001):
        before = items.accumulators[:, 1].copy()
        visit(queries, items, [(0, 3)], 6, step=0.0, seed=seed * 7919)
        counts += items.accumulators[:, 1] > before
    assert counts[3] == 2000
    others = np.delete(counts, 3)
    assert np.abs(others - 2000 / 6).max() < 6 * np.sqrt(2000 / 6)


@pytest.mark.parametrize("n_columns", [1, 51, 63, 64, 101])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-3, 1.0, 1e20])
def test_bytes_bound_a_score_from_above_and_closely(n_columns, scale):
    rng = np.random.default_rng(n_columns)
    rows = aligned_zeros(300, padded(n_columns))
    rows[:, :n_columns] = rng.normal(0, scale, (300, n_columns))
    rows[::7, 0] = np.float32(127 / 128) * scale  # at the edge between two exponents
    rows[0] = 0
    quantized = quantized_rows(rows, n_columns)
    assert quantized.shape[1] % 64 == 0
    assert quantized.ctypes.data % 64 == 0
    vector = np.zeros(quantized.shape[1], dtype=np.float32)
    vector[:n_columns] = rng.normal(size=n_columns)
    true = rows[:, :n_columns].astype(float) @ vector[:n_columns].astype(float)
    slack = half_size(vector)
    bounds = np.array([largest_score(quantized, row, vector, slack) for row in range(300)])
    largest = np.abs(rows[:, :n_columns]).astype(float).max(axis=1)
    rounding = 1e-4 * np.abs(vector).sum() * largest
    assert np.all(bounds >= true - rounding)
    # A byte is at most a 63rd of the largest number, and a bound off by one byte in every column.
    assert np.all(bounds <= true + np.abs(vector).sum() * largest / 63 + rounding + 1e-36)


def test_a_row_in_bytes_follows_its_row():
    rng = np.random.default_rng(0)
    rows = aligned_zeros(5, 16)
    rows[:, :6] = rng.normal(size=(5, 6))
    quantized = quantized_rows(rows, 6)
    rows[3, :6] *= 100
    quantize_row(rows, 3, 6, quantized)
    np.testing.assert_array_equal(quantized, quantized_rows(rows, 6))


@pytest.mark.parametrize("threads", [1, 2])
def test_it_learns(threads):
    rng = np.random.default_rng(0)
    wanted = rng.integers(0, 40, 30)
    pairs = TrainingPairs.of(np.repeat(np.arange(30), 20), np.repeat(wanted, 20), np.ones(600, dtype=np.float32))
    queries, items = tables(30, 40)
    factors = Factors(IdQueries(queries), items)
    engine = SampledEngine(queries, rank_weights(40), 39, Executor(threads))
    losses = [engine.epoch(factors, pairs, np.random.default_rng(epoch)).loss for epoch in range(10)]
    assert losses[-1] < 0.6 * losses[0]
    assert recall_at(Cascade((factors,)), np.arange(30), wanted, (3,))[3] > 0.9
    assert np.linalg.norm(items.values[:, :N], axis=1).max() <= 1.5 * (1 + 1e-5)


@pytest.mark.parametrize("n", [N, 8, 50])
def test_one_thread_repeats_itself_wherever_its_arrays_lie(n):
    results, kept, rng = [], [], np.random.default_rng(0)
    for _ in range(30):
        kept.append([np.empty(size) for size in rng.integers(1, 40, 50)])  # the heap is another one each time
        queries, items = tables(30, 40, n=n)
        pairs = TrainingPairs.of(np.arange(30), np.arange(30), np.ones(30, dtype=np.float32))
        engine = SampledEngine(queries, rank_weights(40), 39, Executor(1))
        for epoch in range(4):
            engine.epoch(Factors(IdQueries(queries), items), pairs, np.random.default_rng(epoch))
        results.append(items.values.tobytes() + queries.values.tobytes())
    assert len(set(results)) == 1


def test_a_weight_too_small_to_have_a_square_moves_nothing():
    queries, items = tables(1, 2)
    before = queries.values.copy(), items.values.copy()
    visit(queries, items, [(0, 0)], 1, weight=1e-23)
    np.testing.assert_array_equal(queries.values, before[0])
    np.testing.assert_array_equal(items.values, before[1])
    assert visit(queries, items, [(0, 0)], 1)[1] == 1


def test_rows_start_at_cache_lines():
    assert all(aligned_zeros(n, 64).ctypes.data % 64 == 0 for n in (1, 3, 1000))


def test_with_the_jit_off_the_kernel_is_plain_python():
    code = (
        "import numpy as np; from slatewise.factors.kernels.prefetch import prefetch_row;"
        "prefetch_row(np.zeros((2, 16), dtype=np.float32), 1); print('ran')"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ran"
