"""For tests on a GPU: the device, or a skip that says why.

`make gpu-test` runs them, or `PYTHONPATH=src python -m pytest tests/gpu`. With TRITON_INTERPRET=1 kernels are
interpreted on the CPU, a thousand times slower: enough for the smallest cases (Triton 3.6 with NumPy before 2.4).
"""

import os

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/gpu" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device():
    """Return the torch device that kernels run on."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")
    pytest.importorskip("triton", reason="triton is not installed")
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    return pytest.skip(f"torch {torch.__version__} finds no GPU")


@pytest.fixture(scope="session")
def gpu(device):
    """Return the device where it is a GPU and no interpreter."""
    if device.type != "cuda":
        pytest.skip("needs a GPU, not the interpreter")
    return device
