"""What importing costs is measured by `slatewise bench metrics`; what it loads is tested here."""

import subprocess
import sys
from pathlib import Path

import pytest

import slatewise


def loaded_after(statement):
    code = f"import sys; {statement}; print(*sorted(m for m in sys.modules if '.' not in m))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "numba", "rich", "typer", "matplotlib", "narwhals", "pyarrow", "pandas"}
    assert not loaded_after("import slatewise") & heavy


def test_metrics_need_numpy_only():
    extra = {"scipy", "sklearn", "numba", "narwhals", "pyarrow", "pandas", "rich", "matplotlib", "threadpoolctl"}
    assert not loaded_after("from slatewise import metrics") & extra


@pytest.mark.parametrize("name", [name for name in slatewise.__all__ if name[0].isupper()])
def test_an_estimator_needs_scikit_learn_and_little_more(name):
    extra = loaded_after(f"from slatewise import {name}") - loaded_after("import sklearn.base")
    assert not extra & {"numba", "narwhals", "pyarrow", "pandas", "rich", "matplotlib", "pooch", "typer"}


@pytest.mark.parametrize("name", slatewise.__all__)
def test_every_public_name_is_there(name):
    assert getattr(slatewise, name) is not None
    assert name in dir(slatewise)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchRanker"):
        slatewise.NoSuchRanker  # noqa: B018


@pytest.mark.parametrize("module", ["slatewise", "slatewise.data", "slatewise.inference"])
def test_names_that_load_on_first_use_are_shown(module):
    """In a process of its own: a name that was used is there anyway."""
    code = f"import {module} as module; print(set(module.__all__) - set(dir(module)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_module_that_loads_names_lazily_is_looked_at():
    source = Path(slatewise.__file__).parent
    lazy = [path for path in source.rglob("*.py") if "= on_first_use(" in path.read_text()]
    assert len(lazy) == 3
    assert all("def __dir__" in path.read_text() for path in lazy)
