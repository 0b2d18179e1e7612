"""The twins of the GPU's kernels on CPU tensors, against the engine of the CPU."""

import numpy as np
import pytest

from slatewise import load
from slatewise.core.running.devices import with_less_memory
from slatewise.core.running.executor import Executor
from slatewise.factors.engines import gpu as gpu_engine
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.engines.gpu import GpuEngine, TorchDevice, check_device
from slatewise.factors.kernels.violators import Violators, scan_tile
from slatewise.factors.pairs import Block
from slatewise.factors.tables import EpochMean
from tests.factors.flat import make_latent, make_session_ranker
from tests.factors.gpu_cases import KINDS, case

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")

HERE = TorchDevice("cpu")


def here(weight, step_pairs, dropout=0.0):
    return GpuEngine(weight, step_pairs, dropout, HERE)


def test_counts_are_those_of_the_scan():
    from slatewise.factors.gpu.twins import sum_violators

    factors, pairs, _ = case("ids", n_items=300, n_pairs=200)
    items, vectors = factors.items.values, factors.queries.vectors(pairs.queries)
    bars = np.einsum("pf,pf->p", vectors, items[pairs.items]) - np.float32(1)
    every = np.arange(len(pairs))
    found = Violators(*(np.zeros(len(pairs), dtype=np.int64) for _ in range(3)), np.empty((200, 300), dtype=np.int64),
                      np.empty((200, 300), dtype=np.float32))  # fmt: skip
    block = Block(pairs.queries, every + 1, pairs.items, pairs.weights, every * 0)
    scan_tile(vectors @ items.T, 0, len(items), block, bars, found)
    half = torch.from_numpy(items).half()
    half[:, -1] = 1
    sums = sum_violators(torch.from_numpy(vectors).half(), half, torch.from_numpy(bars), None)
    np.testing.assert_array_equal(sums[:, -1].numpy() - 1, found.counts)  # the kernels count the pair's own item too


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_that_of_the_blocked_engine(kind):
    ours, pairs, own = case(kind)
    theirs, _, others = case(kind)
    n_items = len(ours.items.values)
    weight = rank_weights(n_items)
    blocked = BlockedEngine(WholeCatalogue(most=n_items), weight, 1000, Executor(1))
    expected = blocked.epoch(theirs, pairs, np.random.default_rng(0))
    seen = here(weight, 1000).epoch(ours, pairs, np.random.default_rng(0))
    before, _, first = case(kind)
    assert np.abs(theirs.items.values - before.items.values).max() > 0.01  # something moved
    for mine, other in ((ours.items, theirs.items), (own, others)):
        np.testing.assert_allclose(mine.values, other.values, atol=5e-4)
        np.testing.assert_allclose(mine.accumulators, other.accumulators, rtol=2e-3, atol=1e-5)
    assert seen.violated == pytest.approx(expected.violated)
    assert seen.loss == pytest.approx(expected.loss, rel=1e-3)
    assert np.array_equal(own.values[0] != first.values[0], others.values[0] != first.values[0])


@pytest.mark.parametrize("kind", ["ids", "levels"])
def test_epochs_have_the_same_bits_every_time_and_their_means_count_all_runs(kind):
    def trained():
        factors, pairs, own = case(kind, seed=3)
        engine = here(rank_weights(70), 9, 0.5)
        for epoch in range(2):
            mean = EpochMean(own, factors.items, len(pairs.offsets) - 1)
            seen = engine.epoch(factors, pairs, np.random.default_rng(epoch), mean)
        assert mean.seen == len(pairs.offsets) - 1
        return (own.values, factors.items.values, mean.tables()[1].values, np.array([seen.loss]))

    for left, right in zip(trained(), trained(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_mean_is_that_of_the_epoch_mean():
    factors, pairs, own = case("ids")
    n_runs = len(pairs.offsets) - 1
    mean = EpochMean(own, factors.items, n_runs)
    here(rank_weights(70), 1000).epoch(factors, pairs, np.random.default_rng(0), mean)
    queries, items = mean.tables()
    assert mean.moments == 1  # after the only step: the tables themselves
    np.testing.assert_array_equal(queries.values, own.values)
    np.testing.assert_array_equal(items.values, factors.items.values)


def test_what_is_left_out_is_half_and_keeps_the_mean():
    from slatewise.factors.gpu.epoch import _plan
    from slatewise.factors.gpu.step import Step
    from slatewise.factors.gpu.tables import Sent

    factors, pairs, _ = case("ids")
    sent = Sent.to("cpu", 16, {})
    plan, _ = _plan(sent, pairs, np.arange(len(pairs.offsets) - 1), 8, 8)
    weight = torch.from_numpy(rank_weights(70))
    step = Step.of(sent, factors.queries.on(sent), sent.table(factors.items), weight, plan, 0.5, 7)
    kept = step._kept_shares(torch.arange(4000))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert kept.mean().item() == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(kept[0], kept[1])
    step.at.add_(1)
    assert not torch.equal(kept, step._kept_shares(torch.arange(4000)))


@pytest.fixture
def on_cpu(monkeypatch):
    monkeypatch.setattr(gpu_engine, "gpu_to_train_on", lambda name: HERE)


def clusters(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, 60, n)
    return queries, queries % 6 * 10 + rng.integers(0, 10, n)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_ranker_learns_as_with_the_blocked_engine(on_cpu, stages):
    queries, items = clusters()
    settings = {"n_components": 8, "epochs": 6, "learning_rate": 0.3, "max_norm": 1.5, "stages": stages, "k": 5}
    found = {
        engine: make_latent(engine=engine, **settings).fit(queries, items).recall(queries, items, ks=(10,))[10]
        for engine in ("gpu", "blocked")
    }
    assert found["gpu"] > 0.9
    assert found["gpu"] == pytest.approx(found["blocked"], abs=0.03)


def test_a_checkpoint_goes_on_with_the_same_bits(on_cpu, tmp_path):
    queries, items = clusters(400)
    settings = {"n_components": 4, "learning_rate": 0.3, "max_norm": 1.5, "epochs": 4, "engine": "gpu"}
    whole = make_latent(**settings).fit(queries, items)

    class Stop(Exception):
        pass

    def stop(report):
        if report.epoch == 3:
            raise Stop

    path = tmp_path / "state"
    with pytest.raises(Stop):
        make_latent(**settings, checkpoint=path, callbacks=[stop]).fit(queries, items)
    again = make_latent(**settings, checkpoint=path).fit(queries, items)
    np.testing.assert_array_equal(again.item_factors_, whole.item_factors_)


def test_a_file_is_of_no_device(monkeypatch, tmp_path):
    queries, items = clusters(60)
    with monkeypatch.context() as patched:
        patched.setattr(gpu_engine, "gpu_to_train_on", lambda name: HERE)
        ranker = make_latent(4, engine="gpu", epochs=1, learning_rate=0.3, max_norm=1.5).fit(queries, items)
    ranker.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.rank([1, 2], k=5).ids, ranker.rank([1, 2], k=5, device="cpu").ids)
    monkeypatch.setattr("slatewise.core.running.devices.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'slatewise\[gpu\]'"):
        loaded.partial_fit(queries, items)


@pytest.mark.parametrize("window", [4, None])
def test_sessions_and_baskets_are_learnt(on_cpu, window):
    rng = np.random.default_rng(0)
    sessions = [(rng.integers(6) * 10 + rng.integers(0, 10, rng.integers(2, 7))).tolist() for _ in range(150)]
    ranker = make_session_ranker(
        n_components=8, engine="gpu", window=window, epochs=5, learning_rate=0.3, max_norm=1.5, dropout=0.2
    ).fit(sessions)
    best = ranker.rank([[11, 12]], k=5).ids[0]
    assert (best // 10 == 1).sum() >= 4


def test_who_asks_is_learnt(on_cpu):
    rng = np.random.default_rng(0)
    users, firsts = rng.integers(0, 5, 300), rng.integers(0, 4, 300)
    sessions = [[f"b{first}", f"a{user}"] for first, user in zip(firsts, users, strict=True)]
    settings = {"n_components": 8, "engine": "gpu", "epochs": 6, "learning_rate": 0.3, "max_norm": 1.5, "base": None}
    ranker = make_session_ranker(**settings).fit(sessions, query_features=np.eye(5)[users])
    assert ranker.rank([["b0"]] * 5, k=1, query_features=np.eye(5)).ids[:, 0].tolist() == [f"a{u}" for u in range(5)]
    make_session_ranker(**settings).fit(sessions, query_features=np.zeros((300, 2)))


def test_what_cannot_be_had_is_said_before_work_starts(monkeypatch):
    queries, items = clusters(60)
    if not torch.cuda.is_available():
        with pytest.raises((ValueError, ImportError), match=r"expected a GPU|slatewise\[gpu\]"):
            make_latent(engine="gpu").fit(queries, items)
        with pytest.raises((ValueError, ImportError), match=r"expected a GPU|slatewise\[gpu\]"):
            make_latent(epochs=1, learning_rate=0.3, max_norm=1.5).fit(queries, items).rank([1], device="cuda")
    for wrong in ("tpu", "cuda:x", 3):
        with pytest.raises(ValueError, match="device: expected None, 'cpu', 'cuda' or 'cuda:0', found"):
            check_device(wrong)
    assert check_device("cpu") is None
    monkeypatch.setattr("slatewise.core.running.devices.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'slatewise\[gpu\]'"):
        make_latent(engine="gpu").fit(queries, items)


def test_less_memory_is_tried_before_an_error():
    from slatewise.factors.gpu.tiles import SMALLEST, Tiles, tiles_for

    tried = []

    def attempt(tiles):
        tried.append(tiles)
        raise torch.OutOfMemoryError("no more")

    with pytest.raises(MemoryError, match="device: expected memory for a step, found too little; try less"):
        with_less_memory(attempt, tiles_for(64), Tiles.smaller, "a step", "less")
    assert tried[-1].pairs == SMALLEST
    assert tried[-1].shares == 1
    assert len(set(tried)) == len(tried)
