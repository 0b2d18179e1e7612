"""Devices are found, or refused by an error that says what to do; torch need not be installed."""

import numpy as np
import pytest

from slatewise.core.running import devices
from slatewise.inference import permanent


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "mps", ""])
def test_names_that_are_no_device(device):
    with pytest.raises(ValueError, match="device: expected None, 'cpu', 'cuda' or 'cuda:0', found"):
        permanent(np.zeros((2, 2)), device=device)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a GPU needs torch: pip install 'slatewise\[gpu\]'"):
        permanent(np.zeros((2, 2)), device="cuda")


def test_the_cpu_by_name():
    w = np.random.default_rng(0).normal(size=(2, 4, 4))
    np.testing.assert_array_equal(permanent(w, device="cpu").marginals, permanent(w).marginals)
