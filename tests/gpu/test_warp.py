"""The kernels of a WARP step against their twins, on a GPU; with TRITON_INTERPRET=1 on the CPU, where none is."""

import os
from dataclasses import replace

import numpy as np
import pytest

from slatewise.factors.engines.blocked import rank_weights
from slatewise.factors.engines.gpu import GpuEngine, TorchDevice
from slatewise.factors.tables import EpochMean
from tests.factors.gpu_cases import KINDS, case, on_grid

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")
pytest.importorskip("triton", reason="triton is not installed: pip install 'slatewise[gpu]'")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("torch finds no GPU", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")  # of the interpreter
DEVICE = "cpu" if INTERPRETED else "cuda"
SIZES = [(128, 300, 16), (128, 1000, 64)] if INTERPRETED else [(128, 300, 16), (2048, 20_000, 64), (256, 5000, 128),
                                                               (128, 3000, 256), (128, 500, 512)]  # fmt: skip


@pytest.fixture
def kernels():
    from slatewise.factors.gpu import fused, tiles, twins

    return fused, twins, tiles


def made(n_pairs, n_items, width, grid=True):
    """Vectors, rows with a 1 in the last column, and bars; sums of products of a grid are the same in any order."""
    rng = np.random.default_rng(n_pairs + n_items)
    n_padded = -(-n_items // 128) * 128
    draw = on_grid if grid else lambda rng, shape: rng.normal(0, 0.3, shape).astype(np.float32)
    u, v = draw(rng, (n_pairs, width)), np.zeros((n_padded, width), dtype=np.float32)
    u[:, -1] = 0
    v[:n_items] = draw(rng, (n_items, width))
    v[:n_items, -1] = 1
    positives = rng.integers(0, n_items, n_pairs)
    half = (torch.from_numpy(part).half().to(DEVICE) for part in (u, v))
    u, v = half
    return u, v, (u.float() * v[positives].float()).sum(1) - 1


@pytest.mark.parametrize(("n_pairs", "n_items", "width"), SIZES)
def test_counts_are_exact_and_sums_near(kernels, n_pairs, n_items, width):
    fused, twins, tiles = kernels
    u, v, bars = made(n_pairs, n_items, width)
    found = fused.sum_violators(u, v, bars, tiles.tiles_for(width))
    expected = twins.sum_violators(u, v, bars, None)
    assert torch.equal(found[:, -1], expected[:, -1])
    assert expected[:, -1].max() > 1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    assert torch.equal(found, fused.sum_violators(u, v, bars, tiles.tiles_for(width)))


@pytest.mark.parametrize(("n_pairs", "n_items", "width"), SIZES)
def test_items_step_as_with_the_twin(kernels, n_pairs, n_items, width):
    fused, twins, tiles = kernels
    u, half, bars = made(n_pairs, n_items, width)
    generator = torch.Generator().manual_seed(0)
    last = width // 2
    moves = torch.tensor([[0, 5, 0.3, 1.5], [5, 6, 0.2, torch.inf], [6, last, 0, 1], [last, width - 1, 0.1, 0.5]])
    shares = torch.rand(n_pairs, generator=generator).to(DEVICE)
    asked = torch.randn(half.shape, generator=generator).to(DEVICE)
    asked[7] = 0
    scale = torch.tensor(4.0, device=DEVICE)
    results = []
    for one, sizes in ((fused, tiles.tiles_for(width)), (twins, None), (fused, tiles.tiles_for(width))):
        values, spent, copy = half.float(), torch.full((len(half), 4), 0.1, device=DEVICE), half.clone()
        one.step_items(
            values, spent, copy, moves.to(DEVICE), n_items, u, bars, (shares * scale).half(), scale, asked, sizes
        )
        results.append((values, spent, copy))
    for found, expected, again in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
        assert torch.equal(found, again)
    assert torch.equal(results[0][0][n_items:], half[n_items:].float())  # rows that fill up stay 0


def test_rows_are_summed_and_stepped_as_with_the_twins(kernels):
    from slatewise.factors.gpu.tables import by_row

    fused, twins, _ = kernels
    rng = np.random.default_rng(0)
    n_entries, n_rows, width = (150, 40, 16) if INTERPRETED else (5000, 300, 64)
    rows = np.where(rng.random(n_entries) < 0.2, 3, rng.integers(0, n_rows + 9, n_entries))  # some are not there
    sources = rng.integers(0, 50, n_entries)
    coefficients = rng.normal(size=n_entries).astype(np.float32)
    entries = by_row(*(torch.from_numpy(part).to(DEVICE) for part in (rows, coefficients, sources)))
    vectors = torch.from_numpy(rng.normal(size=(50, width)).astype(np.float32)).to(DEVICE)
    moves = torch.tensor([[0, 7, 0.3, 1.5], [7, 8, 0.2, torch.inf]], device=DEVICE)
    summed, stepped = [], []
    for one in (fused, twins, fused):
        out = torch.zeros((n_rows, width), device=DEVICE)
        one.sum_rows(out, *entries, vectors, None)
        summed.append(out)
        values, spent = torch.ones((n_rows, width), device=DEVICE), torch.zeros((n_rows, 2), device=DEVICE)
        one.step_rows(values, spent, moves, *entries, vectors, None)
        stepped.append((values, spent))
    torch.testing.assert_close(summed[0], summed[1], rtol=1e-4, atol=1e-4)
    assert torch.equal(summed[0], summed[2])
    for found, expected, again in zip(*stepped, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        assert torch.equal(found, again)


def trained(kind, device, kernels, launched=False, epochs=1, step_pairs=1000):
    """Tables after some epochs, on a device or by its interpreter."""
    from slatewise.factors.gpu import epoch as epoch_module
    from slatewise.factors.gpu import tables

    factors, pairs, own = case(kind)
    engine = GpuEngine(rank_weights(70), step_pairs, 0.0, TorchDevice(device))
    if launched:
        engine.setting = replace(engine.setting, take=epoch_module.launch)
    before, tables.kernels_for = tables.kernels_for, lambda name: kernels
    try:
        for epoch in range(epochs):
            mean = EpochMean(own, factors.items, len(pairs.offsets) - 1)
            seen = engine.epoch(factors, pairs, np.random.default_rng(epoch), mean)
    finally:
        tables.kernels_for = before
    return (*(table.values for table in (own, factors.items, *mean.tables())), np.array([seen.loss, seen.violated]))


@pytest.mark.parametrize("kind", KINDS[:4] + KINDS[6:7] if INTERPRETED else KINDS)
def test_an_epoch_on_the_device_is_that_of_the_twins(kernels, kind):
    fused, twins, _ = kernels
    for found, expected in zip(trained(kind, DEVICE, fused), trained(kind, "cpu", twins), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.skipif(INTERPRETED, reason="there is no GPU to record steps on")
@pytest.mark.parametrize("kind", KINDS)
def test_recorded_steps_have_the_bits_of_launched_ones(kernels, kind):
    fused = kernels[0]
    steps = {"epochs": 3, "step_pairs": 5}
    first = trained(kind, DEVICE, fused, **steps)
    for found, again in zip(first, trained(kind, DEVICE, fused, **steps), strict=True):
        np.testing.assert_array_equal(found, again)
    for found, launched in zip(first, trained(kind, DEVICE, fused, launched=True, **steps), strict=True):
        np.testing.assert_array_equal(found, launched)


def test_tiles_that_are_too_large_become_smaller(kernels, monkeypatch):
    from triton.runtime.errors import OutOfResources

    fused = kernels[0]
    summed, tried = fused.sum_violators, []

    def limited(u, half, bars, tiles):
        tried.append(tiles.pairs)
        if tiles.pairs > 32:
            raise OutOfResources(1 << 20, 232448, "shared memory")
        return summed(u, half, bars, tiles)

    whole = trained("ids", DEVICE, fused)
    monkeypatch.setattr(fused, "sum_violators", limited)
    for found, expected in zip(trained("ids", DEVICE, fused), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert tried == [128, 64, 32]
