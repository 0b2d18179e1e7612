"""Permanents on a GPU: kernels against plain torch, the public function against the CPU and against itself."""

import numpy as np
import pytest

from slatewise.inference import permanent


def drawn(device, count, size, seed=0):
    import torch

    return torch.as_tensor(np.random.default_rng(seed).normal(size=(count, size, size)), device=device)


@pytest.mark.parametrize("size", range(1, 7))
def test_subsets_kernel_equals_its_twin(device, size):
    from slatewise.matching.gpu.fused import subsets
    from slatewise.matching.gpu.twins import torch_subsets

    w = drawn(device, 131, size)
    w[7, 0, 0] = -np.inf if size > 1 else 0.0
    for found, expected in zip(subsets(w, block=64), torch_subsets(w), strict=True):
        np.testing.assert_allclose(found.cpu(), expected.cpu(), rtol=1e-13)


@pytest.mark.parametrize(("size", "low", "lane_columns"), [(3, 1, 5), (5, 2, 1), (6, 2, 0), (9, 4, 2), (8, 3, 5)])
def test_signs_kernel_equals_its_twin(device, size, low, lane_columns):
    from slatewise.matching.gpu.fused import signs
    from slatewise.matching.gpu.twins import GRAIN, torch_signs

    columns = (drawn(device, 2, size).softmax(dim=1) / GRAIN).round() * GRAIN
    found, expected = signs(columns, low, lane_columns).cpu(), torch_signs(columns, low).cpu()
    assert (found - expected).abs().max() <= 1e-14 * expected[..., -1].max()


@pytest.mark.parametrize(("size", "low", "lane_columns", "num_warps"), [(13, 6, 5, 1), (18, 8, 6, 1), (21, 10, 7, 4)])
def test_signs_kernel_equals_its_twin_at_size(gpu, size, low, lane_columns, num_warps):
    from slatewise.matching.gpu.fused import signs
    from slatewise.matching.gpu.twins import GRAIN, torch_signs

    columns = (drawn(gpu, 2, size).softmax(dim=1) / GRAIN).round() * GRAIN
    found, expected = signs(columns, low, lane_columns, num_warps), torch_signs(columns, low)
    assert (found - expected).abs().max() <= 1e-14 * expected[..., -1].max()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 22])
def test_equal_to_the_cpu(gpu, size):
    w = np.random.default_rng(size).normal(size=(2, size, size))
    here, there = permanent(w, "subsets"), permanent(w, device="cuda")
    np.testing.assert_allclose(there.log_z, here.log_z, rtol=0, atol=1e-11)
    np.testing.assert_allclose(there.marginals, here.marginals, rtol=1e-10)
    assert (there.error < 1e-10).all()


def test_thirty_rows_equal_to_the_cpu(gpu):
    w = np.random.default_rng(30).normal(size=(30, 30))
    here, there = permanent(w, "glynn", n_jobs=-1), permanent(w, device="cuda")
    assert abs(there.log_z - here.log_z) <= 1e-10
    np.testing.assert_allclose(there.marginals, here.marginals, rtol=1e-10)


@pytest.mark.parametrize("spread", [30.0, 300.0])
@pytest.mark.parametrize(
    "shape", [(2, 2), (4, 4), (6, 6), (8, 8), (9, 9), (14, 14), (18, 18), (2, 5), (5, 9), (9, 13)], ids=str
)
def test_wide_ranges_forbidden_edges_and_more_columns(gpu, shape, spread):
    w = spread * np.random.default_rng(1).normal(size=(4, *shape))
    w[1:, 0, 1] = -np.inf
    here, there = permanent(w, n_jobs=1), permanent(w, device="cuda")
    np.testing.assert_allclose(there.log_z, here.log_z, rtol=1e-13, atol=1e-10)
    np.testing.assert_allclose(there.marginals, here.marginals, rtol=0, atol=1e-10)


def test_thirty_six_rows_near_the_diagonal(gpu):
    """The CPU walks the few sets of columns that a band leaves; the GPU sums 2^35 sign vectors."""
    apart = np.abs(np.subtract.outer(np.arange(36), np.arange(36)))
    w = np.where(apart <= 3, np.random.default_rng(2).normal(size=(36, 36)), -np.inf)
    here, there = permanent(w, "candidates"), permanent(w, device="cuda")
    assert there.log_z == pytest.approx(here.log_z, abs=max(1e-10, there.error))
    np.testing.assert_allclose(there.marginals, here.marginals, rtol=0, atol=max(1e-10, there.error))


def test_tensors_in_tensors_out_and_the_same_bits(gpu):
    import torch

    for size in (5, 8, 12, 20):
        w = drawn(gpu, 3, size)
        first, second = permanent(w, device="cuda"), permanent(w, device="cuda")
        assert first.marginals.device == gpu
        assert torch.equal(first.log_z, second.log_z)
        assert torch.equal(first.marginals, second.marginals)


def test_a_large_batch_equals_its_parts_and_the_cpu(gpu):
    import torch

    for size, count in ((5, 1_000_003), (8, 20_003), (10, 5_001)):
        w = drawn(gpu, count, size)
        whole, part = permanent(w, device="cuda"), permanent(w[-100:], device="cuda")
        torch.testing.assert_close(whole.marginals[-100:], part.marginals, rtol=1e-12, atol=0)
        here = permanent(w.cpu().numpy(), n_jobs=-1)
        np.testing.assert_allclose(whole.log_z.cpu(), here.log_z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whole.marginals.cpu(), here.marginals, rtol=1e-10)


def test_one_without_a_matching_is_named_by_its_number(gpu):
    for size in (3, 5, 10):
        w = np.zeros((900, size, size))
        w[701, 2] = -np.inf
        with pytest.raises(ValueError, match="found none in matrix 701"):
            permanent(w, device="cuda")


def test_wrong_input_is_refused(gpu):
    import torch

    with pytest.raises(ValueError, match="at most 36 rows and columns on a GPU, found \\(37, 37\\)"):
        permanent(np.zeros((37, 37)), device="cuda")
    with pytest.raises(ValueError, match="finite numbers or -inf, found nan at \\[1, 0\\]"):
        permanent(np.array([[0.0, 1.0], [np.nan, 2.0]]), device="cuda")
    with pytest.raises(ValueError, match="device: expected 'cuda:0', where log_weights is, found None"):
        permanent(torch.zeros((3, 3), device=gpu))
    with pytest.raises(ValueError, match="device: expected 'cpu', where log_weights is, found 'cuda'"):
        permanent(torch.zeros((3, 3)), device="cuda")
    with pytest.raises(ValueError, match="device: expected one of"):
        permanent(np.zeros((3, 3)), device="cuda:99")
    with pytest.raises(ValueError, match="method: expected 'auto', 'subsets' or 'glynn' on a GPU, found 'bethe'"):
        permanent(np.zeros((3, 3)), "bethe", device="cuda")
