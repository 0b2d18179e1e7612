"""What ``rank`` returns: names, scores, and shapes."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import slatewise
from slatewise import CStarMarginRanker, CStarRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.persistence.file import read_model, write_model

hinge = partial(CStarMarginRanker, C=1.0)
NAMES = ["sky", "sea", "tree", "car", "road", "boat", "sun", "dog"]


@pytest.fixture(scope="module")
def scenes():
    return datasets.make_label_scenes(200, n_labels=8, n_groups=1, random_state=1)


@pytest.fixture(scope="module")
def named(scenes):
    return hinge(core=2, tol=0.1).fit(scenes.X, pd.DataFrame(scenes.Y, columns=NAMES))


@pytest.fixture(scope="module")
def numbered(scenes):
    return hinge(core=2, tol=0.1).fit(scenes.X, scenes.Y)


@pytest.mark.parametrize("k", [1, 3, 8, np.arange(30) % 4])
def test_lists_are_in_the_order_of_their_scores(scenes, k):
    given = np.random.default_rng(0).normal(size=scenes.Y.shape)
    ranker = hinge("scores", core=2, tol=0.1).fit(given, scenes.Y)
    X = given[:30]
    answer, decision = ranker.rank(X, k), ranker.decision_function(X, k)
    assert answer.query_ids.tolist() == list(range(30))
    assert (answer.offsets is None) == (np.ndim(k) == 0)
    for row, labels in enumerate(answer.lists()):
        scores = answer.list_scores(row)
        assert (scores[1:] <= scores[:-1]).all()
        np.testing.assert_allclose(scores, decision[row, labels], atol=1e-9)


def test_scores_of_a_core_too_large_to_walk(scenes):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 20)) < 0.2).astype(int)
    X = rng.normal(size=(60, 3))
    ranker = hinge(core=18, tol=0.5, max_iter=5).fit(X, Y)
    answer = ranker.rank(X[:4], 3)
    np.testing.assert_allclose(
        answer.scores, np.take_along_axis(ranker.decision_function(X[:4], 3), answer.ids, axis=1), atol=1e-9
    )


def test_what_must_be_in_scores_infinity(scenes, numbered):
    known = np.full((5, 8), -1)
    known[:, 4] = 1
    answer = numbered.rank(scenes.X[:5], 3, known)
    assert (answer.ids[:, 0] == 4).all()
    assert (answer.scores[:, 0] == np.inf).all()
    assert np.isfinite(answer.scores[:, 1:]).all()


def test_the_columns_of_a_frame_come_back(scenes, named, numbered):
    X = scenes.X[:7]
    assert named.label_names_.tolist() == NAMES
    assert named.rank(X, 3).ids.tolist() == [[NAMES[label] for label in row] for row in numbered.rank(X, 3).ids]
    assert named.rank(X[:1], 2).to_dict().keys() == {0}
    why, plain = named.explain(X, 3), numbered.explain(X, 3)
    assert why.labels.tolist() == [[NAMES[label] for label in row] for row in plain.labels]
    assert why.core.tolist() == [NAMES[label] for label in plain.core]
    np.testing.assert_array_equal(named.predict(X), numbered.predict(X))
    assert named.score(X, scenes.Y[:7]) == numbered.score(X, scenes.Y[:7])
    assert named.next_question(X, np.full((7, 8), -1)).dtype == np.int64


def test_core_labels_by_their_names(tmp_path, scenes):
    frame = pd.DataFrame(scenes.Y, columns=NAMES)
    for kind in (CStarRanker, CStarMarginRanker):
        settings = {"C": 0.3, "tol": 0.1}
        ranker = kind(core=["sun", "sea"], **settings).fit(scenes.X, frame)
        assert ranker.core_.tolist() == [6, 1]
        assert ranker.explain(scenes.X[:1]).core.tolist() == ["sun", "sea"]
        ranker.save(tmp_path / "m")
        assert list(slatewise.load(tmp_path / "m").core) == ["sun", "sea"]
        with pytest.raises(ValueError, match="core: expected names of labels that fit saw, found 'moon'"):
            kind(core=["moon"], **settings).fit(scenes.X, frame)
        with pytest.raises(ValueError, match="core: expected names of labels that fit saw, found 'sun'"):
            kind(core=["sun"], **settings).fit(scenes.X, scenes.Y)


def test_names_of_polars_and_given_ones(scenes):
    frame = pl.DataFrame(scenes.Y, schema=NAMES)
    for y, names in [(frame, None), (scenes.Y, NAMES), (csr_array(scenes.Y), np.array(NAMES))]:
        ranker = hinge(core=0, tol=0.5).fit(scenes.X, y, label_names=names)
        assert ranker.label_names_.tolist() == NAMES


def test_without_names_labels_are_numbers(scenes, numbered):
    assert numbered.label_names_.tolist() == list(range(8))
    by_number = hinge(core=0, tol=0.5).fit(scenes.X, pd.DataFrame(scenes.Y))
    assert by_number.label_names_.tolist() == list(range(8))
    assert by_number.rank(scenes.X[:2], 2).ids.dtype.kind == "i"


def test_one_class_per_row_is_named_by_its_class(scenes):
    y = np.array(["sea", "sky", "tree"])[np.arange(200) % 3]
    ranker = hinge(core=0, tol=0.5).fit(scenes.X, y)
    assert set(ranker.rank(scenes.X, 2).ids.ravel()) <= {"sea", "sky", "tree"}
    np.testing.assert_array_equal(ranker.rank(scenes.X, 1).ids[:, 0], ranker.predict(scenes.X))
    with pytest.raises(ValueError, match="label_names: expected None with one class per row"):
        ranker.fit(scenes.X, y, label_names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (NAMES[:7], "label_names: expected 8 strings, found"),
        ([*NAMES[:7], 3], "label_names: expected 8 strings, found"),
        ("sky", "label_names: expected 8 strings, found 'sky'"),
        ([*NAMES[:7], "sky"], "label_names: expected every name once, found 'sky' again"),
    ],
)
def test_names_that_are_none(scenes, names, message):
    with pytest.raises(ValueError, match=message):
        hinge().fit(scenes.X, scenes.Y, label_names=names)


def test_a_frame_with_a_name_twice(scenes):
    with pytest.raises(ValueError, match="y: expected every column name once"):
        hinge().fit(scenes.X, pd.DataFrame(scenes.Y, columns=[*NAMES[:7], "sky"]))


def test_names_are_saved(tmp_path, scenes, named, numbered):
    for ranker in (named, numbered):
        ranker.save(tmp_path / "m.safetensors")
        back = slatewise.load(tmp_path / "m.safetensors")
        assert back.label_names_.tolist() == ranker.label_names_.tolist()
        assert back.rank(scenes.X[:5], 3).to_dict() == ranker.rank(scenes.X[:5], 3).to_dict()


@pytest.mark.parametrize("names", [np.array(NAMES[:7]), np.array([*NAMES[:7], "sky"]), np.arange(8) + 1.0])
def test_names_in_a_file_that_do_not_fit_are_refused(tmp_path, named, names):
    named.save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    state.arrays["label_names_"] = names
    write_model(tmp_path / "m", state)
    with pytest.raises(ModelFileError, match="expected"):
        slatewise.load(tmp_path / "m")
