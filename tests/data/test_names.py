"""The folder's public names."""

import subprocess
import sys

import pytest

from slatewise import data


@pytest.mark.parametrize("name", data.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(data, name).__name__ == name
    assert name in dir(data)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'read_everything'"):
        data.__getattr__("read_everything")


def test_a_format_does_not_load_the_others() -> None:
    code = (
        "import sys; from slatewise import data; assert 'scipy' not in sys.modules; data.read_run; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "narwhals", "pandas", "polars", "pyarrow"} & set(done.stdout.split())
