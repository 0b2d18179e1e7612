"""For all tests: the folder of public data, or a skip that says why; no deadlines, because a test never times.

Generated cases are the same in every run, so that a tree that passed passes again; `make explore` tries new ones.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A worker per core is enough: threads of BLAS that wait for each other spin. Before NumPy is loaded.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
os.environ["SLATEWISE_QUIET"] = "1"  # a terminal under pytest -s gets what the tests print, nothing else
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("SLATEWISE_EXPLORE") else "same")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder named by SLATEWISE_DATA."""
    folder = os.environ.get("SLATEWISE_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SLATEWISE_DATA does not name a folder with the public data sets")
    return Path(folder)
