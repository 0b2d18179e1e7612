"""Files of format 1, kept as they were written, load and answer as they did."""

import numpy as np
import pytest
from tests.model.format_1.write import HERE, answers

from slatewise import load
from slatewise.model import saving

FILES = sorted(path for path in HERE.glob("*.safetensors") if not path.name.startswith("old_"))


def asked_and_said(path):
    with np.load(path.with_suffix(".npz")) as stored:
        parts = {name: stored[name] for name in stored.files}
    asked = {name.removeprefix("asked "): value for name, value in parts.items() if name.startswith("asked ")}
    said = {name.removeprefix("says "): value for name, value in parts.items() if name.startswith("says ")}
    return asked, said


def assert_as_said(estimator, path):
    asked, said = asked_and_said(path)
    now = answers(estimator, asked)
    assert said.keys() <= now.keys()
    for name, value in said.items():
        if value.dtype.kind == "f":
            # Products of single precision are added in another order on another processor.
            tolerance = 1e-9 if value.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(now[name], value, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(now[name], value, err_msg=name)


def test_there_is_one_of_every_estimator():
    assert {type(load(path)).__name__ for path in FILES} == set(saving._HOMES)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_answers_as_before(path, mmap):
    assert_as_said(load(path, mmap), path)
