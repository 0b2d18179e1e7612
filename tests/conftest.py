"""For all tests: the folder of public data, or a skip that says why; no deadlines, because a test never times.

Generated cases are the same in every run, so that a tree that passed passes again; `make explore` tries new ones, and
more of them.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

gc.disable()  # collecting tests makes objects that stay
gc.set_threshold(100_000, 20, 20)  # as does compiling
# A worker per core is enough: threads of BLAS that wait for each other spin. Before NumPy is loaded.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # nor do those of torch, which a test sets to one per core
os.environ["SLATEWISE_QUIET"] = "1"  # a terminal under pytest -s gets what the tests print, nothing else
settings.register_profile("same", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=200)
settings.load_profile("explore" if os.environ.get("SLATEWISE_EXPLORE") else "same")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder named by SLATEWISE_DATA."""
    folder = os.environ.get("SLATEWISE_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SLATEWISE_DATA does not name a folder with the public data sets")
    return Path(folder)


def pytest_configure(config):
    from tests import compilations  # loads NumPy

    config.compilations = compilations.share()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Leave what has been collected out of every later search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session):
    """Send what a worker has compiled to the process that prints the summary."""
    if hasattr(session.config, "workeroutput"):
        here = session.config.compilations
        session.config.workeroutput["compilations"] = here.seconds, dict(here.kernels)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Add what a worker has compiled."""
    node.config.compilations.add(*getattr(node, "workeroutput", {}).get("compilations", (0.0, {})))


def pytest_terminal_summary(config, terminalreporter):
    """Print the CPU seconds of all processes and what was compiled; write details to SLATEWISE_COMPILATIONS."""
    terminalreporter.write_line(config.compilations.summary())
    if path := os.environ.get("SLATEWISE_COMPILATIONS"):
        lines = (f"{n}\t{name}\n" for name, n in sorted(config.compilations.kernels.items()))
        Path(path).write_text("".join(lines))
