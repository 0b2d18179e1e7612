"""Files of format 1, kept as they were written, load and answer as they did."""

import numpy as np
import pytest
from tests.model.format_1.write import HERE, answers

from slatewise import load
from slatewise.model import saving
from slatewise.model.file import FORMAT_VERSION, read_model, write_model

FILES = sorted(HERE.glob("*.safetensors"))


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
        elif name == "ids" and value.dtype != now[name].dtype:  # numbers of classes: answers name them since
            np.testing.assert_array_equal(now[name], estimator.classes_[value], err_msg=name)
        else:
            np.testing.assert_array_equal(now[name], value, err_msg=name)


LATER = {"CooccurrenceRanker", "SessionBlend", "SessionNeighbors"}
"""Estimators that never wrote this format."""


def test_there_is_one_of_every_estimator():
    assert {type(load(path)).__name__ for path in FILES} == set(saving._HOMES) - LATER


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_answers_as_before(path, mmap):
    assert_as_said(load(path, mmap), path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_saved_again_it_is_of_the_present_format(path, tmp_path):
    load(path).save(tmp_path / "again")
    state = read_model(tmp_path / "again")
    assert (state.format, state.estimator_version) == (FORMAT_VERSION, type(load(path)).file_version)
    assert_as_said(load(tmp_path / "again"), path)


def test_a_file_of_format_1_is_written_as_it_was_read(tmp_path):
    for path in FILES:
        write_model(tmp_path / "same", read_model(path))
        assert (tmp_path / "same").read_bytes() == path.read_bytes()


def test_sets_of_labels_and_classes_are_told_apart_before_multilabel():
    labels, classes = (load(HERE / f"old_cstar_{kind}.safetensors") for kind in ("labels", "classes"))
    assert "multilabel_" not in read_model(HERE / "old_cstar_labels.safetensors").values
    assert (labels.multilabel_, labels.classes_.tolist()) == (True, [0, 1, 2, 3])
    assert (classes.multilabel_, classes.classes_.tolist()) == (False, ["a", "b", "c"])
