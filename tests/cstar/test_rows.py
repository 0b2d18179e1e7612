"""Rows of which not all labels are known."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import slatewise
from slatewise import CStarMarginRanker, CStarRanker, datasets
from slatewise.cstar.rows import split_unknown

quick = partial(CStarRanker, core=2, C=0.3)
SCENES = datasets.make_label_scenes(300, n_labels=6, n_groups=1, random_state=1)
HIDDEN = np.random.default_rng(0).random(SCENES.Y.shape) < 0.3
NOT_KNOWN = "y: .* labels are not known: .*the likelihood of the others is not convex, and lower_bound_ is -inf"


def partly(Y=SCENES.Y, hidden=HIDDEN, mark=np.nan):
    return np.where(hidden, mark, Y.astype(float))


FORMS = {
    "nan": partly(),
    "-1": partly(mark=-1),
    "whole numbers": partly(mark=-1).astype(int),
    "lists": partly(mark=-1).tolist(),
    "a frame": pd.DataFrame(partly()),
    "a frame of integers": pd.DataFrame(partly()).astype("Int64"),
    "objects": np.where(HIDDEN, None, SCENES.Y.astype(object)),
    "sparse": csr_array(partly(mark=-1)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form):
    labels, unknown = split_unknown(FORMS[form])
    np.testing.assert_array_equal(unknown, HIDDEN)
    np.testing.assert_array_equal(labels, np.where(HIDDEN, 0, SCENES.Y))


@pytest.mark.parametrize(
    "y",
    [
        SCENES.Y,
        csr_array(SCENES.Y),
        [-1, 0, 1],
        np.array([[-1], [1]]),
        ["sea", "sky"],
        [["sea"], ["sky", "sun"]],
        [[1, 2], [3]],
        np.array([["a", None]], dtype=object),
        SCENES.Y > 0,
        None,
    ],
    ids=lambda y: type(y).__name__,
)
def test_what_is_complete_or_no_matrix_stays_as_it_is(y):
    assert split_unknown(y) == (y, None)


@pytest.fixture(scope="module")
def ranker():
    with pytest.warns(UserWarning, match=NOT_KNOWN):
        return quick().fit(SCENES.X[:200], partly()[:200])


def test_what_is_not_known_is_not_looked_at(ranker):
    with pytest.warns(UserWarning, match=NOT_KNOWN):
        again = quick().fit(SCENES.X[:200], partly(mark=-1)[:200])
    np.testing.assert_array_equal(again.pair_, ranker.pair_)
    assert ranker.lower_bound_ == -np.inf
    assert ranker.n_skipped_ == 0
    complete = quick().fit(SCENES.X[:200], SCENES.Y[:200])
    assert complete.lower_bound_ > 0
    X, Y = SCENES.X[200:], SCENES.Y[200:]
    assert ranker.score(X, Y, count_known=False) > complete.score(X, Y, count_known=False) - 0.06


def test_a_frame_keeps_its_names():
    names = ["sky", "sea", "tree", "car", "road", "boat"]
    with pytest.warns(UserWarning, match=NOT_KNOWN):
        ranker = quick(core=["sea"]).fit(SCENES.X, pd.DataFrame(partly(), columns=names))
    assert ranker.label_names_.tolist() == names
    assert ranker.core_.tolist() == [1]
    found = ranker.predict_proba(SCENES.X[:2], known=[{"sky": 1}, {}])
    assert found[0, 0] == 1.0 > found[1, 0]


def test_it_is_saved(tmp_path, ranker):
    ranker.save(tmp_path / "m")
    back = slatewise.load(tmp_path / "m")
    np.testing.assert_array_equal(back.predict_proba(SCENES.X), ranker.predict_proba(SCENES.X))
    assert back.lower_bound_ == -np.inf


def test_rows_of_which_nothing_is_known_are_left_out():
    y = partly()
    y[:9] = np.nan
    with pytest.warns(UserWarning, match="9 rows without a known label are left out"):
        ranker = quick().fit(SCENES.X, y)
    with pytest.warns(UserWarning, match=NOT_KNOWN):
        rest = quick().fit(SCENES.X[9:], y[9:])
    assert ranker.n_skipped_ == 9
    np.testing.assert_array_equal(ranker.pair_, rest.pair_)


def test_volunteered_answers_count_as_not_known():
    # All labels are answered in half of the rows; in the others people volunteer some that apply.
    rng = np.random.default_rng(2)
    answered = np.repeat(rng.random((300, 1)) < 0.5, 6, axis=1)
    volunteered = ~answered & (SCENES.Y == 1) & (rng.random(answered.shape) < 0.7)
    y = np.where(answered | volunteered, SCENES.Y, -1)
    found = f"answered: {int(volunteered.sum())} of {int((y >= 0).sum())} known labels were volunteered"
    with pytest.warns(UserWarning, match=NOT_KNOWN), pytest.warns(UserWarning, match=found):
        right = quick().fit(SCENES.X, y, answered=answered)
    with pytest.warns(UserWarning, match=NOT_KNOWN):
        wrong = quick().fit(SCENES.X, y)
    truth = SCENES.Y.mean()
    assert abs(right.predict_proba(SCENES.X).mean() - truth) < 0.5 * (wrong.predict_proba(SCENES.X).mean() - truth)


def test_all_were_asked_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(SCENES.X, SCENES.Y, answered=np.ones(SCENES.Y.shape, dtype=bool))


def test_the_margin_ranker_takes_complete_labels_only():
    with pytest.raises(ValueError, match=r"y: expected 0 and 1, found row 0, label .* not known"):
        CStarMarginRanker(core=2, C=0.3).fit(SCENES.X, partly())


@pytest.mark.parametrize(
    ("y", "answered", "message"),
    [
        (np.full((300, 6), -1), None, "y: expected a row of which some label is known, found none"),
        (np.where(SCENES.Y == 1, 1, -1), None, "y: expected 0 for labels that do not apply, found only 1 and"),
        (SCENES.Y, np.ones((300, 5), dtype=bool), r"answered: expected .* shape \(300, 6\), found bool of shape"),
        (SCENES.Y, np.ones((300, 6)), "answered: expected a matrix of True and False"),
        (np.where(HIDDEN, -1, 2 * SCENES.Y), None, "y: expected 0 and 1, found 2"),
    ],
)
def test_what_cannot_be_learned_from_is_named(y, answered, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(SCENES.X, y, answered=answered)
