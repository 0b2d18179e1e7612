"""What importing costs is measured by `slatewise bench metrics`; what it loads is tested here."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import slatewise


@cache
def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted(m for m in sys.modules if '.' not in m))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "numba", "rich", "typer", "matplotlib", "narwhals", "pyarrow", "pandas"}
    assert not loaded_after("import slatewise") & heavy


def test_metrics_need_numpy_only():
    extra = {"scipy", "sklearn", "numba", "narwhals", "pyarrow", "pandas", "rich", "matplotlib", "threadpoolctl"}
    assert not loaded_after("from slatewise import metrics") & extra


def test_sums_on_a_gpu_need_little():
    """Machines with a GPU often have torch and its like, and nothing else."""
    extra = {"daqp", "pooch", "typer", "narwhals", "rich", "matplotlib", "torch", "triton"}
    sums = "from slatewise.inference import permanent; import slatewise_papers.bench.gpu_permanent"
    assert not loaded_after(f"{sums}; import slatewise_papers.bench.gpu") & extra
    learners = "import slatewise_papers.bench.gpu_metric, slatewise_papers.bench.gpu_warp"
    assert not loaded_after(learners) & (extra - {"narwhals"})  # scikit-learn's


CLASSES = [name for name in slatewise.__all__ if name[0].isupper()]
EACH_ALONE = """
import os, sys, sklearn.base
before = set(sys.modules)
for name in sys.argv[1:]:
    if not os.fork():
        exec(f"from slatewise import {name}")
        print(name, *sorted(m for m in set(sys.modules) - before if "." not in m), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@cache
def loaded_beside_scikit_learn():
    """What each class loads when it is the first: forks of one process that has loaded scikit-learn's base."""
    done = subprocess.run([sys.executable, "-c", EACH_ALONE, *CLASSES], capture_output=True, text=True, check=True)
    return {name: set(modules) for name, *modules in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("name", CLASSES)
def test_an_estimator_needs_scikit_learn_and_little_more(name):
    extra = loaded_beside_scikit_learn()[name]
    assert "slatewise" in extra
    assert not extra & {"numba", "narwhals", "pyarrow", "pandas", "rich", "matplotlib", "pooch", "typer"}


@pytest.mark.parametrize("name", slatewise.__all__)
def test_every_public_name_is_there(name):
    assert getattr(slatewise, name) is not None
    assert name in dir(slatewise)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchRanker"):
        slatewise.NoSuchRanker  # noqa: B018


LAZY = [
    "slatewise",
    "slatewise.data",
    "slatewise.inference",
    "slatewise.factors",
    "slatewise.labeling",
    "slatewise.labeling.page",
    "slatewise.matching",
    "slatewise.sessions",
]


@pytest.mark.parametrize("module", LAZY)
def test_names_that_load_on_first_use_are_shown(module):
    """In a process of its own: a name that was used is there anyway."""
    code = f"import {module} as module; print(set(module.__all__) - set(dir(module)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_module_that_loads_names_lazily_is_looked_at():
    source = Path(slatewise.__file__).parent
    lazy = [path for path in source.rglob("*.py") if "= lazy_getattr(" in path.read_text()]
    assert len(lazy) == len(LAZY)
    assert all("def __dir__" in path.read_text() for path in lazy)
