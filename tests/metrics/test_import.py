"""Importing and using the measures loads NumPy and nothing heavier, until the compiled engine is asked for."""

import subprocess
import sys

HEAVY = "{'scipy', 'numba', 'sklearn', 'pandas', 'threadpoolctl'} & set(sys.modules)"


def loaded(code):
    script = f"import sys\n{code}\nprint(sorted({HEAVY}))"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def test_import_needs_numpy_only():
    assert loaded("from slatewise import metrics") == "[]"


def test_a_result_needs_numpy_only():
    assert loaded("from slatewise import metrics; metrics.evaluate(['ndcg@3', 'map', 'auc'], [1, 0], [1, 1])") == "[]"


def test_the_compiled_engine_loads_numba():
    assert "numba" in loaded("from slatewise import metrics; metrics.AP()([1, 0], [1, 2], engine='compiled')")
