"""The decorator: compiled or not, cached or not, the same answer."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slatewise.core.running.kernel import kernel

SOURCE = """
from slatewise.core.running.kernel import kernel

@kernel
def total(values):
    out = 0.0
    for value in values:
        out += value
    return out
"""
USE = (
    "import numpy as np; from summing import total; print(total(np.arange(4.0)), len(getattr(total, 'signatures', [])))"
)


@kernel
def cumulate(values, out):
    running = 0.0
    for i in range(len(values)):
        running += values[i]
        out[i] = running


def run(folder: Path, use: str = USE, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", use],
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kernel_fills_its_output():
    out = np.empty(4)
    cumulate(np.ones(4), out)
    assert out.tolist() == [1, 2, 3, 4]


def test_what_an_older_version_left_is_compiled_anew(tmp_path):
    """The index names a type of an argument that is gone."""
    types, kernels = tmp_path / "pairs.py", tmp_path / "summing.py"
    types.write_text("from typing import NamedTuple\n\nclass Older(NamedTuple):\n    a: int\n\nPair = Older\n")
    kernels.write_text(SOURCE.replace("for value in values", "for value in values.a"))
    use = USE.replace("total(np.arange(4.0))", "total(Pair(np.arange(4.0)))").replace(
        "from summing", "from pairs import Pair; from summing"
    )
    assert run(tmp_path, use) == "6.0 1"
    types.write_text(types.read_text().replace("Older", "Newer"))
    assert run(tmp_path, use) == "6.0 1"


def test_machine_code_is_kept_beside_the_source(tmp_path):
    (tmp_path / "summing.py").write_text(SOURCE)
    assert run(tmp_path) == "6.0 1"
    assert list(tmp_path.glob("__pycache__/*.nbc"))


def test_without_a_writable_folder_a_kernel_compiles_in_memory(tmp_path):
    (tmp_path / "summing.py").write_text(SOURCE)
    # A file where the cache folders would be: unlike permissions, this stops every user, root too.
    (tmp_path / "__pycache__").write_text("")
    tmp_path.chmod(0o555)
    blocked = str(tmp_path / "__pycache__")
    assert run(tmp_path, XDG_CACHE_HOME=blocked, HOME=blocked, LOCALAPPDATA=blocked) == "6.0 1"


@pytest.mark.parametrize("cached", [True, False])
def test_with_the_jit_off_a_kernel_is_plain_python(tmp_path, cached):
    (tmp_path / "summing.py").write_text(SOURCE)
    if not cached:
        (tmp_path / "__pycache__").write_text("")
    assert run(tmp_path, NUMBA_DISABLE_JIT="1") == "6.0 0"
