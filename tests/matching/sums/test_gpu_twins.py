"""The plain torch of a GPU's sums, on CPU tensors, against the Numba engine; its kernels are tested in tests/gpu."""

import numpy as np
import pytest
from tests.matchings import random_weights

from slatewise.inference import permanent

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")


def summed(w, method="auto"):
    from slatewise.matching.gpu.permanent import checked_tensor, sums_on_device
    from slatewise.matching.gpu.twins import TORCH

    name, sums = sums_on_device(checked_tensor(w, torch.device("cpu"), 1e300), method, TORCH)
    return name, *(part.numpy() for part in sums)


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (5, 5), (8, 8), (9, 9), (13, 13), (17, 17), (1, 4), (3, 7), (6, 10)], ids=str
)
def test_equal_to_the_numba_engine(shape, spread):
    rng = np.random.default_rng(3)
    w = np.concatenate([random_weights(rng, 2, *shape, spread), random_weights(rng, 1, *shape, spread, 0.3)])
    name, log_z, marginals, error = summed(w)
    here = permanent(w, "subsets" if shape[0] == shape[1] else "rows")
    assert name == ("subsets" if shape[1] <= 8 else "glynn")
    np.testing.assert_allclose(log_z, here.log_z, rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(marginals, here.marginals, rtol=0, atol=1e-11)
    if spread == 1.0:
        np.testing.assert_allclose(marginals[:2], here.marginals[:2], rtol=1e-12)
    assert (error <= 1e-10).all()


@pytest.mark.parametrize("size", [3, 4, 7, 10])
def test_signs_equal_subsets(size):
    w = np.random.default_rng(4).normal(size=(3, size, size))
    np.testing.assert_allclose(summed(w, "glynn")[2], permanent(w, "subsets").marginals, rtol=1e-12)


def test_cancelling_matrices_go_to_the_subsets():
    """A matrix near the identity: the signs' terms cancel but for what the subsets then find."""
    w = np.log(np.eye(12) + 1e-9)[None]
    _, log_z, marginals, error = summed(w)
    here = permanent(w, "subsets")
    np.testing.assert_allclose(log_z, here.log_z, atol=error[0])
    np.testing.assert_allclose(marginals, here.marginals, rtol=0, atol=error[0])


def test_a_matrix_without_a_matching_is_named():
    for size in (2, 9):
        w = np.zeros((5, size, size))
        w[3, 1] = -np.inf
        with pytest.raises(ValueError, match="found none in matrix 3"):
            summed(w)


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.zeros((37, 37)), r"at most 36 rows and columns on a GPU, found \(37, 37\)"),
        (np.full((2, 2), np.nan), r"finite numbers or -inf, found nan at \[0, 0\]"),
        (np.full((1, 2, 2), np.inf), r"finite numbers or -inf, found inf at \[0, 0, 0\]"),
        (np.full((2, 2), -2e300), "at most 1e\\+300 in size"),
        (np.zeros((3, 2)), "1 <= M <= N"),
        (np.zeros((2, 2), dtype=complex), "real numbers"),
    ],
)
def test_wrong_weights_are_refused(w, message):
    with pytest.raises(ValueError, match=message):
        summed(w)


@pytest.mark.parametrize(("size", "method"), [(3, "bethe"), (9, "subsets")])
def test_wrong_methods_are_refused(size, method):
    with pytest.raises(ValueError, match="method: expected 'auto'"):
        summed(np.zeros((size, size)), method)


def test_weights_on_another_device_are_refused():
    elsewhere = torch.empty((2, 2), device="meta")  # a tensor that lies on no CPU
    for device in (None, "cpu"):
        with pytest.raises(ValueError, match=f"device: expected 'meta', where log_weights is, found {device!r}"):
            permanent(elsewhere, device=device)


def test_without_a_gpu_the_error_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match=r"device: expected a GPU that torch .* can use, found none"):
        permanent(np.zeros((2, 2)), device="cuda")


def test_a_tensor_on_the_cpu_is_an_array():
    assert permanent(torch.zeros((2, 2), dtype=torch.float64), device="cpu").log_z == pytest.approx(np.log(2.0))
