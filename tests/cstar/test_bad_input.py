"""What people bring by mistake: an error that names the argument and what was found, or an answer with a warning."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge

from slatewise import CStarMarginRanker, CStarRanker, datasets

SCENES = datasets.make_label_scenes(40, n_labels=4, n_groups=1, random_state=1)
X, Y = SCENES.X, SCENES.Y.astype(float)
NAMES = ["car", "road", "sea", "sky"]
SETS = [{name for name, there in zip(NAMES, row, strict=True) if there} for row in Y]
CLASSES = np.array(["high", "low", "mid"])[np.arange(40) % 3]
ALL = np.ones(Y.shape, dtype=bool)
HINGE = {"kind": CStarMarginRanker}
GIVEN = {"base": "precomputed"}


def put(array, value, place=(3, 1)):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


def frame(values=Y, columns=NAMES):
    return pd.DataFrame(values, columns=columns)


class FailsToFit(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck")


class SaysNoScores(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self


def quick(kind=CStarRanker, **settings):
    return kind(**{"core": 1, "C": 0.3, **settings})


FITS = {
    # name: (settings, X, y, other arguments, message)
    "-2": ({}, X, put(Y, -2), {}, r"y: expected 0 and 1, found -2.0 in row 3, column 1$"),
    "0.5": ({}, X, put(Y, 0.5), {}, r"y: expected 0 and 1, found 0.5 in row 3, column 1$"),
    "0.5 beside -1": ({}, X, put(put(Y, 0.5), -1, (0, 0)), {}, r"y: expected 0 and 1, found 0.5 in row 3, column 1$"),
    "infinity": ({}, X, put(Y, np.inf), {}, r"y: expected 0 and 1, found inf in row 3, column 1 \(NaN and inf"),
    "sparse -2": ({}, X, csr_array(put(Y, -2)), {}, "y: expected 0 and 1, found -2.0 in row 3, column 1"),
    "NaN, max-margin": (HINGE, X, put(Y, np.nan), {}, "y: expected 0 and 1, found row 3, label 1 not known"),
    "complex": ({}, X, Y.astype(complex), {}, "y: expected 0 and 1, found dtype complex128"),
    "three dimensions": ({}, X, Y[:, :, None], {}, r"y: expected \(40, labels\) or \(40,\), found shape \(40, 4, 1\)"),
    "none": ({}, X, None, {}, "y: expected one row of labels per row of X, found None"),
    "a row too few": ({}, X, Y[:-1], {}, r"y: expected \(40, labels\) or \(40,\), found shape \(39, 4\)"),
    "a set too few": ({}, X, SETS[:-1], {}, "y: expected names for 40 rows, found 39"),
    "one label": ({}, X, Y[:, :1], {}, r"y: expected at least two labels to rank, found 1"),
    "one name": ({}, X, [["sky"]] * 40, {}, "y: expected at least two labels to rank, found 1"),
    "one class": ({}, X, ["sky"] * 40, {}, "y: expected at least two labels to rank, found 1"),
    "no label at all": ({}, X, np.zeros(Y.shape), {}, "y: expected a row with a relevant label, found none"),
    "none, max-margin": (HINGE, X, np.zeros(Y.shape), {}, "y: expected a row with a relevant label, found none"),
    "empty sets": ({}, X, [set()] * 40, {"label_names": NAMES}, "y: expected a row with a relevant label, found none"),
    "nothing known": ({}, X, np.full(Y.shape, -1), {}, "y: expected a row of which some label is known, found none"),
    "only yes": ({}, X, np.where(Y > 0, 1, np.nan), {}, "y: expected 0 for labels that do not apply, found only 1 and"),
    "none answered": ({}, X, Y, {"answered": ~ALL}, "y: expected a row of which some label is known, found none"),
    "mask, shape": ({}, X, Y, {"answered": ALL[:, 1:]}, r"answered: expected .* \(40, 4\), found bool of shape"),
    "mask, numbers": ({}, X, Y, {"answered": Y}, "answered: expected a matrix of True and False, .* found float64 of"),
    "mask, text": ({}, X, Y, {"answered": "yes"}, "answered: expected a matrix of True and False, .* found <U3 of"),
    "mask, ragged": ({}, X, Y, {"answered": [[True], []]}, "answered: expected .* found lists of different lengths"),
    "mask, sparse": ({}, X, Y, {"answered": csr_array(ALL)}, "answered: expected .* found csr_array"),
    "mask, columns": (
        {},
        X,
        frame(),
        {"answered": frame(ALL, ["a", *NAMES[1:]])},
        "answered: expected the columns that fit saw, found 'a' too and none called 'car'",
    ),
    "mask, classes": ({}, X, CLASSES, {"answered": ALL[:, :3]}, "answered: expected None with one class per row,"),
    "sets and texts": ({}, X, [["sky"], "sea"] * 20, {}, "y: expected a list, tuple or set of names .* found 'sea'"),
    "sets and None": ({}, X, [{"sky"}, None] * 20, {}, "y: expected a list, tuple or set of names .* found None in"),
    "numbers in sets": ({}, X, [{"sky", 1}, {"sea"}] * 20, {}, "y: expected names that are texts, .* found 1 in row 0"),
    "blanks": ({}, X, [("sky ",), ("sea",)] * 20, {}, "y: expected names .* without blanks .* found 'sky ' in row 0"),
    "empty name": ({}, X, [["sky", ""], ["sea"]] * 20, {}, "y: expected names .* not empty .* found '' in row 0"),
    "twice in a row": ({}, X, [["sky", "sky"], ["sea"]] * 20, {}, "y: expected every name once per row, found 'sky'"),
    "mappings": ({}, X, [{"sky": 1}] * 40, {}, r"y: expected 0/1 labels .* found \{'sky': 1\} in row 0$"),
    "frame, same columns": ({}, X, frame(columns=["a", "b", "a", "c"]), {}, "y: expected every column name once"),
    "the same, with NaN": ({}, X, frame(put(Y, np.nan), ["a", "b", "a", "c"]), {}, "y: expected every column name"),
    "frame of texts": ({}, X, frame(np.where(Y > 0, "yes", "no")), {}, r"y: expected 0/1 labels .* found \['no', "),
    "separator, numbers": ({}, X, Y, {"separator": "|"}, "separator: expected one text per row in y, found something"),
    "separator, sets": ({}, X, SETS, {"separator": "|"}, "y: expected a text of names in every row, for separator,"),
    "separator, NaN": ({}, X, ["a|b", np.nan] * 20, {"separator": "|"}, "y: expected a text of names .* found nan in"),
    "separator, empty": ({}, X, ["a|b", "c"] * 20, {"separator": ""}, "separator: expected a text that is not empty,"),
    "separator, number": ({}, X, ["a|b", "c"] * 20, {"separator": 3}, "separator: expected a text .* found 3"),
    "separator at the end": ({}, X, ["a|b|", "c"] * 20, {"separator": "|"}, r"y: expected names .* found '' in row 0"),
    "no separator": ({}, X, ["a|b", "c"] * 20, {}, r"found 'a\|b' in row 0; separator='\|' cuts such texts into names"),
    "class is NaN": ({}, X, put(np.arange(40) % 3, np.nan, 3), {}, r"y: expected one class per row, found nan .* in"),
    "class is None": ({}, X, ["a", None] * 20, {}, "y: expected classes of one type, found NoneType and str"),
    "continuous": ({}, X, np.linspace(0, 1, 40), {}, "y: expected classes or 0/1 labels, found continuous numbers"),
    "names, too few": ({}, X, Y, {"label_names": NAMES[1:]}, "label_names: expected 4 strings, found"),
    "names, again": ({}, X, Y, {"label_names": ["a", "b", "a", "c"]}, "label_names: expected every name once, found"),
    "names, numbers": ({}, X, Y, {"label_names": [1, 2, 3, 4]}, "label_names: expected 4 strings, found"),
    "names, classes": ({}, X, CLASSES, {"label_names": NAMES[1:]}, "label_names: expected None with one class per row"),
    "names, others in y": ({}, X, SETS, {"label_names": NAMES[1:]}, "y: expected the labels .* found 'car', first in"),
    "weights 0": ({}, X, Y, {"sample_weight": 0.0}, "y: expected a row with a relevant label, found none whose"),
    "weights < 0": ({}, X, Y, {"sample_weight": -np.ones(40)}, "sample_weight: expected finite numbers >= 0, found -1"),
    "weights NaN": ({}, X, Y, {"sample_weight": put(np.ones(40), np.nan, 2)}, "sample_weight: expected .* nan in row"),
    "weights too few": ({}, X, Y, {"sample_weight": [1.0]}, r"sample_weight: expected one weight per row, shape"),
    "X, NaN": ({}, put(X, np.nan), Y, {}, "X contains NaN"),
    "X, infinity": ({}, put(X, np.inf), Y, {}, "X contains infinity"),
    "X, huge": ({}, put(X, 1e60), Y, {}, r"X: expected at most 1e\+50 in size, found 1e\+60 at \[3, 1\]"),
    "X, sparse NaN": ({}, csr_array(put(X, np.nan)), Y, {}, "X: expected finite numbers, found nan at row 3, column 1"),
    "X, sparse infinity": ({}, csr_array(put(X, np.inf)), Y, {}, "X: expected finite numbers, found inf at row 3,"),
    "X, no rows": ({}, X[:0], Y[:0], {}, r"0 sample\(s\)"),
    "X, no columns": ({}, X[:, :0], Y, {}, r"0 feature\(s\)"),
    "base, regressor": ({"base": Ridge()}, X, Y, {}, "base: expected a classifier, found Ridge"),
    "base, a class": ({"base": LogisticRegression}, X, Y, {}, "base: expected None or one of svc, precomputed or a"),
    "base, a name": ({"base": "logistic"}, X, Y, {}, "base: expected None or one of svc, precomputed or a .* found"),
    "base, no scores": ({"base": SaysNoScores()}, X, Y, {}, "base: expected a classifier with predict_proba or"),
    "C_pair, C auto": ({"C": "auto", "C_pair": 2.0}, X, Y, {}, "C_pair: expected None with C='auto'"),
    "core, strange": ({"core": ["tree"]}, X, SETS, {}, "core: expected names of labels that fit saw, found 'tree'"),
    "core, twice": ({"core": ["sky", "sky"]}, X, SETS, {}, "core: expected each item once, found 3 again"),
    "core, too many": ({"core": 5}, X, Y, {}, "core: expected 'auto' or a number from 0 to 4 labels, found 5"),
    "core, too large": ({"core": 11}, X, np.tile(Y, 3), {}, "core: expected at most 10 .* found 11"),
    "log-odds > 745": (GIVEN, 800.0 * (2 * Y - 1), Y, {}, "X: expected log-odds from -745 to 745, found -800 to 800"),
    "scores, shape": (GIVEN, X, Y, {}, r"X: expected one given score per label, shape \(40, 4\), found \(40, 8\)"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:answered. 160 of 160 known labels were volunteered")
@pytest.mark.parametrize("name", FITS)
def test_fit_refuses(name):
    settings, rows, y, others, message = FITS[name]
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(rows, y, **others)


@pytest.mark.parametrize(("base", "rows"), [("svc", csr_array(X)), ("precomputed", csr_array(Y))])
def test_sparse_rows_where_none_are_taken(base, rows):
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        quick(base=base).fit(rows, Y)


def test_a_classifier_that_fails_says_so_itself_and_where():
    with pytest.raises(RuntimeError, match="no luck") as caught:
        quick(base=FailsToFit()).fit(X, Y)
    assert "base: FailsToFit failed on 32 rows, of which " in caught.value.__notes__[0]


WARNED = {
    # name: (settings, X, y, message)
    "not known": ({}, X, put(Y, np.nan), "y: 1 of 160 labels are not known: the likelihood of the others is not"),
    "known nowhere": ({}, X, put(Y, -1, (slice(None), 1)), "1 labels are known in no row and stay at even odds"),
    "one row": ({}, X[:1], [[1, 0, 0, 0]], "base: expected at least 5 rows for 5 folds, found 1 different ones:"),
    "two rows": ({}, X[:2], [[1, 0, 0, 0], [0, 1, 0, 1]], "base: expected .* found 2 different ones: as many folds"),
    "the same row": ({}, X[[0] * 9], Y[[0] * 9] + [1, 0, 0, 0] > 0, "base: expected .* found 1 different ones"),
    "probabilities": (GIVEN, 0.2 + 0.6 * Y, Y, r"X: expected log-odds .* 0.2 to 0.8: log\(p / \(1 - p\)\) if they"),
    "all equally likely": (GIVEN, np.full(Y.shape, 5.0), Y, "X: expected log-odds .* all labels are equally likely"),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_fit_warns_and_answers(name):
    settings, rows, y, message = WARNED[name]
    with pytest.warns(UserWarning, match=message) as caught:
        ranker = quick(**settings).fit(rows, y)
    assert len(caught) == 1
    chance = ranker.predict_proba(rows)
    assert ((chance > 0) & (chance < 1)).all()


SILENT = {
    # name: (X, y): taken as they are
    "a label always on": (X, np.column_stack([Y, np.ones(40)])),
    "a label never on": (X, np.column_stack([Y, np.zeros(40)])),
    "all labels always on": (X, np.ones(Y.shape)),
    "constant features": (np.ones((40, 3)), Y),
    "no features but zeros": (csr_array((40, 3)), Y),
    "a class of one row": (X, ["a"] * 39 + ["b"]),
    "columns that are no texts": (X, frame(columns=[1, 2, 3, "sky"])),
    "booleans": (X > 0, frame(Y > 0)),
    "tuples": (X, [tuple(row) for row in SETS]),
}


@pytest.mark.parametrize("name", SILENT)
def test_fit_takes(name):
    rows, y = SILENT[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = quick().fit(rows, y)
        chance = ranker.predict_proba(rows)
    assert np.isfinite(chance).all()
    assert (ranker.predict_count(rows) >= 0).all()


def test_rows_of_weight_0_and_columns_in_another_order():
    weight = np.arange(40) % 2
    some, rest = quick().fit(X, Y, sample_weight=weight), quick().fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(some.pair_, rest.pair_)
    assert some.n_skipped_ == 20
    mask = ALL.copy()
    mask[:20, 3] = False
    fits = []
    for columns in (NAMES, NAMES[::-1]):
        with pytest.warns(UserWarning, match="20 of 160"):
            fits.append(quick().fit(X, frame(), answered=frame(mask)[columns]))
    np.testing.assert_array_equal(fits[0].pair_, fits[1].pair_)


@pytest.fixture(scope="module")
def ranker():
    return quick().fit(X, Y, label_names=NAMES)


@pytest.fixture(scope="module")
def given_k():
    return quick(CStarMarginRanker).fit(X, Y, label_names=NAMES)


ROWS = X[:2]
OPEN = np.full((2, 4), -1.0)
TOO_MANY, TOO_FEW = [[1, 1, 0, -1], [-1] * 4], [[0, 0, -1, -1], [-1] * 4]
CALLS = {
    # name: (call, message)
    "shape": (lambda r: r.rank(ROWS, known=OPEN[:, 1:]), r"known: expected .* \(2, 4\), found \(2, 3\)"),
    "2": (lambda r: r.rank(ROWS, known=put(OPEN, 2, (0, 1))), "known: expected -1, 0 or 1, found 2.0 at row 0, item 1"),
    "0.5": (lambda r: r.predict_proba(ROWS, put(OPEN, 0.5, (0, 1))), "known: expected -1, 0 or 1, found 0.5 at row 0"),
    "NaN": (lambda r: r.next_question(ROWS, put(OPEN, np.nan, (0, 1))), "known: expected -1, 0 or 1, found nan at"),
    "text": (lambda r: r.rank(ROWS, known="sky"), "known: expected numbers, found dtype"),
    "strange name": (lambda r: r.rank(ROWS, known=[{"tree": 1}, {}]), "known: expected names .* found 'tree' in row 0"),
    "strange column": (lambda r: r.rank(ROWS, known=frame([[1], [0]], ["tree"])), "known: expected names .* 'tree'"),
    "yes and no": (lambda r: r.rank(ROWS, known=frame([[1, 0]] * 2, ["sky", "sky"])), "known: expected every column"),
    "a row too few": (lambda r: r.rank(ROWS, known=[{"sky": 1}]), "known: expected answers for each of 2 rows, found"),
    "answer": (lambda r: r.rank(ROWS, known=[{"sky": "yes"}, {}]), "known: expected -1, 0 or 1, found 'yes' of 'sky'"),
    "more than k": (lambda r: r.decision_function(ROWS, 1, TOO_MANY), "known: expected at most k = 1 items in, found"),
    "less than k": (lambda r: r.decision_function(ROWS, 3, TOO_FEW), "known: expected at least k = 3 items not out"),
    "k too large": (lambda r: r.rank(ROWS, 9), "k: expected 0 to 4, the number of items, found 9 at row 0"),
    "k below 0": (lambda r: r.rank(ROWS, -1), "k: expected 0 to 4, the number of items, found -1 at row 0"),
    "k and a half": (lambda r: r.rank(ROWS, 1.5), "k: expected a whole number or one for each of 2 lists, found 1.5"),
    "k of other rows": (lambda r: r.rank(ROWS, [1, 2, 3]), "k: expected a whole number or one for each of 2 lists"),
    "decision": (lambda r: r.predict(ROWS, decision="best"), "decision: expected one of f1, subset, hamming, count,"),
    "decision, k": (lambda r: r.predict(ROWS, 1, "f1"), "decision: expected None if the number of labels is known"),
    "X, fewer columns": (lambda r: r.rank(X[:, 1:]), "X has 7 features, but CStarRanker is expecting 8"),
    "X, NaN": (lambda r: r.rank(put(X, np.nan)), "X contains NaN"),
    "X, sparse NaN": (lambda r: r.rank(csr_array(put(X, np.nan))), "X: expected finite numbers, found nan at row 3"),
    "score, not known": (lambda r: r.score(X, put(Y, -1)), "y: expected 0 and 1, found -1.0 in row 3, column 1"),
    "score, no label": (lambda r: r.score(X, 0 * Y), "y: expected a row of weight > 0 with a relevant label, found"),
    "score, strange": (lambda r: r.score(X, [{"tree"}] * 40), "y: expected the labels .* found 'tree', first in row 0"),
    "score, columns": (lambda r: r.score(X, frame()[NAMES[1:]]), "y: expected the columns that fit saw, found none"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_fitted_ranker_refuses(ranker, name):
    call, message = CALLS[name]
    with pytest.raises(ValueError, match=message):
        call(ranker)


def test_answers_too_many_are_refused_only_where_k_is_counted_on(ranker, given_k):
    known = [[1, 1, 1, 1], [0, 0, 0, 0]]
    np.testing.assert_array_equal(ranker.predict_proba(ROWS, known), known)
    assert ranker.next_question(ROWS, known).tolist() == [-1, -1]
    assert [len(one) for one in ranker.rank(ROWS, known=known).lists()] == [ranker.k_, 0]
    with pytest.raises(ValueError, match=f"known: expected at most k = {given_k.k_} items in, found 4 at row 0"):
        given_k.next_question(ROWS, known)


def test_features_beyond_all_sense_are_still_ranked(ranker):
    """Log-odds of a base end at 745."""
    assert np.isfinite(ranker.decision_function(np.full((1, 8), 1e49))).all()
