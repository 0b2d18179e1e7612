"""CStarRanker: base scores, and the likelihood of sets of any size, checked by enumeration."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import slatewise
from slatewise import CStarMarginRanker, CStarRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.labeling import GivenLogOdds, Uncertainty, calibrate, simulate
from slatewise.persistence.file import read_model, write_model

quick = partial(CStarRanker, core=2, C=0.3)


@pytest.mark.filterwarnings("ignore:base. expected at least 5 rows")
@parametrize_with_checks([CStarRanker(), quick(base="svc")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def scenes():
    return datasets.make_label_scenes(300, n_labels=6, n_groups=1, random_state=1)


@pytest.fixture(scope="module")
def ranker(scenes):
    return CStarRanker().fit(scenes.X[:200], scenes.Y[:200])


def enumerated(ranker, scores, known=None, k=None):
    """All sets that agree with the known labels, and their probabilities; by the terms of a known k."""
    pair = ranker.pair_
    if k is not None:
        scores, pair = (
            ranker.known_count_terms_[0] * scores + ranker.known_count_terms_[1],
            ranker.known_count_terms_[2:],
        )
    sets = np.array(list(product((0, 1), repeat=len(scores))))
    f = sets @ scores
    for place, c in enumerate(ranker.core_):
        for j in range(len(scores)):
            earlier = j in ranker.core_ and list(ranker.core_).index(j) <= place
            f = f + (0.0 if earlier else pair[place, j]) * sets[:, c] * sets[:, j]
    fits = np.ones(len(sets), dtype=bool) if known is None else ((known < 0) | (sets == known)).all(axis=1)
    fits &= True if k is None else sets.sum(axis=1) == k
    weight = np.where(fits, np.exp(f - f.max()), 0.0)
    return sets, weight / weight.sum()


KNOWN = np.array([-1, 1, -1, 0, -1, -1])


@pytest.mark.parametrize("known", [None, KNOWN])
def test_probabilities_are_those_of_all_sets(scenes, ranker, known):
    X = scenes.X[200:220]
    tiled = None if known is None else np.tile(known, (20, 1))
    found = ranker.predict_proba(X, tiled)
    for row, scores in enumerate(ranker.label_scores(X)):
        sets, chance = enumerated(ranker, scores, known)
        np.testing.assert_allclose(found[row], chance @ sets, atol=1e-12)
    assert len(ranker.core_) >= 2  # by default the structure is found


def test_a_known_number_of_labels_is_a_condition(scenes, ranker):
    X = scenes.X[200:210]
    found = ranker.decision_function(X, k=2, known=np.tile(KNOWN, (10, 1)))
    for row, scores in enumerate(ranker.label_scores(X)):
        sets, chance = enumerated(ranker, scores, KNOWN, 2)
        p = (chance @ sets)[KNOWN < 0]
        np.testing.assert_allclose(found[row, KNOWN < 0], np.log(p) - np.log1p(-p), atol=1e-6)


def f1(one, other):
    total = one.sum(axis=-1) + other.sum(axis=-1)
    return np.where(total == 0, 1.0, 2.0 * (one * other).sum(axis=-1) / np.maximum(total, 1))


def test_decisions_are_best_for_what_they_are_named_after(scenes, ranker):
    X = scenes.X[200:220]
    found = {name: ranker.predict(X, decision=name) for name in ("f1", "subset", "hamming", "count")}
    np.testing.assert_array_equal(ranker.predict(X), found["f1"])
    for row, scores in enumerate(ranker.label_scores(X)):
        sets, chance = enumerated(ranker, scores)
        expected = np.array([chance @ f1(sets, one) for one in sets])
        assert chance @ f1(sets, found["f1"][row]) == pytest.approx(expected.max())
        np.testing.assert_array_equal(found["subset"][row], sets[chance.argmax()])
        np.testing.assert_array_equal(found["hamming"][row], chance @ sets > 0.5)
        assert found["count"][row].sum() == np.rint(chance @ sets.sum(axis=1))
    np.testing.assert_array_equal(ranker.predict_count(X), found["count"].sum(axis=1))
    np.testing.assert_array_equal(ranker.predict(X, k=2).sum(axis=1), 2)
    with pytest.raises(ValueError, match="decision: expected one of f1, subset, hamming, count, found 'best'"):
        ranker.predict(X, decision="best")
    with pytest.raises(ValueError, match="decision: expected None if the number of labels is known"):
        ranker.predict(X, k=2, decision="f1")


def test_lists_are_cut_and_no_answer_is_one_too_many(scenes, ranker):
    X = scenes.X[200:204]
    whole, two = ranker.rank(X, k=6), ranker.rank(X, k=2)
    np.testing.assert_array_equal(whole.ids[:, :2], two.ids)
    np.testing.assert_array_equal(whole.scores, -np.sort(-ranker.decision_function(X), axis=1))
    assert ranker.rank(X).ids.shape == (4, ranker.k_)
    known = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [-1, -1, 1, -1, -1, -1]])
    lists = ranker.rank(X, k=2, known=known).lists()
    assert [len(one) for one in lists] == [2, 0, 2, 2]
    assert set(lists[2]) <= {0, 1, 2}
    assert lists[3][0] == 2
    assert ranker.next_question(X, known).tolist()[:3] == [-1, -1, -1]
    margins = ranker.decision_function(X, known=known)
    assert np.isfinite(margins[3, known[3] < 0]).all()
    assert ranker.next_question(X, known)[3] == np.argmin(np.abs(margins[3]))
    assert ranker.explain(X[2:], k=4, known=known[2:]).labels.shape == (2, 3)
    with pytest.raises(ValueError, match="known: expected at most k = 2"):
        ranker.decision_function(X, k=2, known=known)


def test_scores_with_a_known_and_an_unknown_number_of_labels(scenes, ranker):
    X, Y = scenes.X[200:], scenes.Y[200:]
    counts = Y.sum(axis=1)
    for count_known, margins in ((True, ranker.decision_function(X, counts)), (False, ranker.decision_function(X))):
        order = np.argsort(-margins, axis=1, kind="stable")
        hits = [Y[row, order[row, :count]].mean() for row, count in enumerate(counts) if count]
        assert ranker.score(X, Y, count_known=count_known) == pytest.approx(np.mean(hits))
    hinge = CStarMarginRanker(core=2, C=1.0).fit(scenes.X[:200], scenes.Y[:200])
    assert 0 < hinge.score(X, Y, count_known=False) <= 1
    assert not hasattr(hinge, "predict_proba")


def test_structure_and_answers_help(scenes, ranker):
    X, Y = scenes.X[200:], scenes.Y[200:]
    alone = CStarRanker(core=0).fit(scenes.X[:200], scenes.Y[:200])
    assert ranker.score(X, Y) > alone.score(X, Y)
    joint = simulate(ranker, X, Y, questions=(0, 2)).mean()
    base = simulate(GivenLogOdds(6), alone.label_scores(X), Y, Uncertainty(), questions=(0, 2)).mean()
    assert joint[0] == pytest.approx(ranker.score(X, Y, count_known=False))
    assert joint[2] > base[2]
    assert simulate(ranker, X, Y, questions=(0,), count_known=True).mean()[0] == pytest.approx(ranker.score(X, Y))
    sure = calibrate(ranker, X, Y).of(ranker, X)
    assert np.abs(sure.mean(axis=0) - Y.mean(axis=0)).max() < 0.15


def test_one_class_per_row(scenes):
    y = np.array(["low", "mid", "top"])[np.digitize(scenes.X[:, 0], [-0.4, 0.4])]
    ranker = quick().fit(scenes.X[:200], y[:200])
    chance = ranker.predict_proba(scenes.X[200:])
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(ranker.predict(scenes.X[200:]), ranker.classes_[chance.argmax(axis=1)])
    np.testing.assert_array_equal(ranker.rank(scenes.X[200:], 1).ids[:, 0], ranker.predict(scenes.X[200:]))
    assert ranker.score(scenes.X[200:], y[200:]) == (ranker.predict(scenes.X[200:]) == y[200:]).mean()
    known = np.full((100, 3), -1)
    known[:, :2] = 1  # two classes at once: not possible, and no error
    assert (ranker.decision_function(scenes.X[200:], known=known)[:, 2] == -np.inf).all()


def test_any_base(scenes):
    X, Y = scenes.X[:200], scenes.Y[:200]
    for base in ("svc", LogisticRegression(), RandomForestClassifier(20, random_state=0)):
        found = quick(base=base).fit(X, Y)
        assert found.score(scenes.X[200:], scenes.Y[200:]) > 0.5
        again = clone(found).fit(X, Y)
        np.testing.assert_array_equal(again.label_scores(X), found.label_scores(X))


def test_sparse_rows(scenes):
    X = np.where(np.abs(scenes.X) < 0.5, 0.0, scenes.X)
    ranker = quick().fit(csr_array(X[:200]), scenes.Y[:200])
    np.testing.assert_allclose(ranker.label_scores(csr_array(X)), ranker.label_scores(X), atol=1e-9)
    weight = np.arange(200) % 3
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(200), weight))
    weighted = quick().fit(csr_array(X[:200]), scenes.Y[:200], sample_weight=weight)
    repeated = quick().fit(csr_array(X[rows]), scenes.Y[rows])
    np.testing.assert_array_equal(weighted.pair_, repeated.pair_)
    np.testing.assert_array_equal(weighted.base_coef_, repeated.base_coef_)
    for dense in (quick(base="svc"), CStarMarginRanker()):
        with pytest.raises(TypeError, match=r"(?i)sparse"):
            dense.fit(csr_array(X), scenes.Y)


def test_files(tmp_path, scenes, ranker):
    for number, one in enumerate([ranker, quick(base="svc").fit(scenes.X[:200], scenes.Y[:200])]):
        one.save(tmp_path / f"{number}")
        for mmap in (False, True):
            back = slatewise.load(tmp_path / f"{number}", mmap=mmap)
            np.testing.assert_array_equal(back.predict_proba(scenes.X), one.predict_proba(scenes.X))
            np.testing.assert_array_equal(back.predict(scenes.X), one.predict(scenes.X))
    own = quick(base=LogisticRegression()).fit(scenes.X, scenes.Y)
    with pytest.raises(ModelFileError, match="base: expected None, 'svc' or 'precomputed' to save, found Log"):
        own.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_same_bits_with_any_number_of_threads(tmp_path, scenes):
    for threads in (1, 2):
        CStarRanker(n_jobs=threads).fit(scenes.X, scenes.Y).save(tmp_path / str(threads))
    one, two = (read_model(tmp_path / str(threads)).arrays for threads in (1, 2))
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])


def test_many_labels_by_parts(tmp_path, monkeypatch):
    """Base scores by parts, a choice by frequent labels, rows by chunks: nearly the same model, with any threads."""
    scenes = datasets.make_label_scenes(300, n_labels=14, random_state=1)
    X, Y = scenes.X[:200], scenes.Y[:200]
    whole = CStarRanker().fit(X, Y)
    for name, most in {
        "base.classifiers.MANY": 5,
        "base.logistic._LABELS_PER_BLOCK": 3,
        "likelihood.choice._MOST_LABELS": 9,
        "likelihood.objective._ENTRIES": 500,
    }.items():
        monkeypatch.setattr(f"slatewise.cstar.{name}", most)
    for threads in (1, 2):
        CStarRanker(n_jobs=threads).fit(X, Y).save(tmp_path / str(threads))
    one, two = (read_model(tmp_path / str(threads)).arrays for threads in (1, 2))
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])
    parts = slatewise.load(tmp_path / "1")
    assert parts.base_coef_.dtype == np.float32
    assert set(parts.core_) <= set(np.argsort(-Y.sum(axis=0), kind="stable")[:9])
    assert parts.score(scenes.X[200:], scenes.Y[200:]) > whole.score(scenes.X[200:], scenes.Y[200:]) - 0.05
    rare = int(np.argmin(Y.sum(axis=0)))
    assert CStarRanker(core=[rare]).fit(X, Y).core_.tolist() == [rare]


def test_weights_and_order_of_rows(scenes):
    weight = np.random.default_rng(0).integers(0, 3, 300)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(300), weight))
    weighted = quick().fit(scenes.X, scenes.Y, sample_weight=weight)
    repeated = quick().fit(scenes.X[rows], scenes.Y[rows])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.pair_, repeated.pair_)
    assert weighted.n_skipped_ == (weight == 0).sum()


def test_the_unit_of_a_column_does_not_matter(scenes):
    units = 10.0 ** np.arange(scenes.X.shape[1])
    here, there = (quick().fit(X, scenes.Y).score(X, scenes.Y) for X in (scenes.X, scenes.X * units + 3.0 * units))
    assert there == pytest.approx(here, abs=0.02)


def test_labels_that_are_always_on_or_off(scenes):
    Y = np.column_stack([scenes.Y, np.ones(300), np.zeros(300)])
    chance = CStarRanker().fit(scenes.X, Y).predict_proba(scenes.X)
    assert (chance[:, 6] > 0.99).all()
    assert (chance[:, 7] < 0.01).all()


@pytest.mark.filterwarnings("ignore:base. expected at least 5 rows")
@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_few_rows(scenes, n):
    kept = np.flatnonzero(scenes.Y.any(axis=1))[:n]
    ranker = CStarRanker().fit(scenes.X[kept], scenes.Y[kept])
    assert np.isfinite(ranker.predict_proba(scenes.X)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": "svm"}, "base: expected None or one of svc, precomputed or a classifier with fit .* found 'svm'"),
        ({"base": LogisticRegression}, "base: expected None or one of svc, precomputed or a classifier"),
        ({"base": "precomputed"}, "X: expected one given score per label"),
        ({"core": 7}, "core: expected 'auto' or a number from 0 to 6 labels, found 7"),
        ({"core": [0, 9]}, "core"),
    ],
)
def test_what_makes_no_sense_is_named(scenes, settings, message):
    with pytest.raises(ValueError, match=message):
        CStarRanker(**settings).fit(scenes.X, scenes.Y)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        (None, {"basis_": np.zeros((3, 8)), "gamma_": 1.0}),
        (None, {"base_coef_": None}),
        (None, {"base_coef_": np.zeros((6, 5))}),
        ("svc", {"gamma_": None}),
        ("svc", {"basis_": np.zeros((3, 5))}),
        ("precomputed", {"base_coef_": np.zeros((6, 6)), "base_intercept_": np.zeros(6)}),
        ("precomputed", {"n_features_in_": 7}),
        (None, {"core_": np.arange(12) % 6}),
    ],
)
def test_a_file_has_what_its_base_has_and_nothing_else(tmp_path, scenes, base, change):
    X = scenes.Y - 0.5 + np.random.default_rng(0).normal(size=scenes.Y.shape) if base == "precomputed" else scenes.X
    quick(base=base).fit(X, scenes.Y).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    gone = {name for name, value in change.items() if value is None}
    parts = {**state.values, **state.arrays, **change}
    arrays = {name: value for name, value in parts.items() if isinstance(value, np.ndarray) and name not in gone}
    values = {name: value for name, value in parts.items() if name not in arrays and name not in gone}
    write_model(tmp_path / "m", replace(state, arrays=arrays, values=values))
    with pytest.raises(ModelFileError, match=f"({'|'.join(change)}|pair_).*: expected"):
        slatewise.load(tmp_path / "m")
