"""For all tests: the folder of public data, or a skip that says why; no deadlines, because a test never times."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A worker per core is enough: threads of BLAS that wait for each other spin. Before NumPy is loaded.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
os.environ["SLATEWISE_QUIET"] = "1"  # a terminal under pytest -s gets what the tests print, nothing else
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder named by SLATEWISE_DATA."""
    folder = os.environ.get("SLATEWISE_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SLATEWISE_DATA does not name a folder with the public data sets")
    return Path(folder)
