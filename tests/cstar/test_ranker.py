import os
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import slatewise
from slatewise import CStarMarginRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.cstar.margin import choice as margin_choice
from slatewise.cstar.margin.solvers import SOLVERS, Settings
from slatewise.cstar.margin.training import relevant_hinge
from slatewise.cstar.margin.unary import prepare_linear
from slatewise.kernels import Chi2, Intersection, Rbf
from slatewise.persistence.file import read_model, write_model

hinge = partial(CStarMarginRanker, C=1.0)


@parametrize_with_checks([hinge(), hinge(core=1)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def scenes():
    return datasets.make_label_scenes(240, n_labels=8, n_groups=1, random_state=1)


@pytest.fixture(scope="module")
def ranker(scenes):
    return hinge(core=3, C=3).fit(scenes.X[:160], scenes.Y[:160])


def best_by_enumeration(scores, pair, core, k, known=None):
    def value(items):
        total = scores[list(items)].sum()
        for i, j in combinations(items, 2):
            for a, c in enumerate(core):
                if c in (i, j):
                    total += pair[a, j if c == i else i]
                    break
        return total

    allowed = [
        items
        for items in combinations(range(len(scores)), k)
        if known is None or all((known[i] != 1 or i in items) and (known[i] != 0 or i not in items) for i in range(8))
    ]
    return max(allowed, key=value)


def test_rank_is_the_best_set(scenes, ranker):
    X = scenes.X[160:]
    scores = X @ ranker.coef_.T + ranker.intercept_
    for row, chosen in enumerate(ranker.rank(X, k=3).lists()):
        assert set(chosen) == set(best_by_enumeration(scores[row], ranker.pair_, ranker.core_, 3))


def test_known_labels_are_obeyed(scenes, ranker):
    X = scenes.X[160:170]
    known = np.full((10, 8), -1)
    known[:, 2], known[:, 5] = 1, 0
    scores = X @ ranker.coef_.T + ranker.intercept_
    for row, chosen in enumerate(ranker.rank(X, k=4, known=known).lists()):
        assert set(chosen) == set(best_by_enumeration(scores[row], ranker.pair_, ranker.core_, 4, known[row]))
    margins = ranker.decision_function(X, k=4, known=known)
    assert np.all(margins[:, 2] == np.inf)
    assert np.all(margins[:, 5] == -np.inf)


def test_decision_function_agrees_with_rank(scenes, ranker):
    X = scenes.X[160:]
    margins = ranker.decision_function(X, k=3)
    for row, chosen in zip(margins, ranker.rank(X, k=3).lists(), strict=True):
        assert set(np.flatnonzero(row > 0)) == set(chosen)


def test_k_per_row_gives_a_list(scenes, ranker):
    k = np.arange(10) % 4
    chosen = ranker.rank(scenes.X[:10], k=k)
    assert [len(row) for row in chosen.lists()] == k.tolist()


def test_score_is_break_even_precision(scenes, ranker):
    X, Y = scenes.X[160:], scenes.Y[160:]
    counts = Y.sum(axis=1)
    kept = counts > 0
    hits = [Y[row, chosen].mean() for row, chosen in enumerate(ranker.rank(X, k=counts).lists()) if counts[row]]
    assert ranker.score(X, Y) == pytest.approx(np.mean(hits))
    assert ranker.score(X, csr_array(Y)) == pytest.approx(np.mean(hits))
    weight = np.arange(len(X)) + 1.0
    assert ranker.score(X, Y, sample_weight=weight) == pytest.approx(np.average(hits, weights=weight[kept]))


def test_structure_helps_where_there_is_some(scenes):
    lists = datasets.make_interacting_lists(600, 12, 3, random_state=0)
    alone = hinge(core=0, C=30).fit(lists.X[:400], lists.Y[:400])
    joint = hinge(core=lists.core, C=30).fit(lists.X[:400], lists.Y[:400])
    assert joint.score(lists.X[400:], lists.Y[400:]) > alone.score(lists.X[400:], lists.Y[400:]) + 0.02


def test_questions_are_the_least_certain_unknown_labels(scenes, ranker):
    X = scenes.X[160:]
    known = np.full((len(X), 8), -1)
    question = ranker.next_question(X, known)
    margins = np.abs(ranker.decision_function(X, known=known))
    np.testing.assert_array_equal(question, margins.argmin(axis=1))
    known[:] = scenes.Y[160:]
    assert np.all(ranker.next_question(X, known, k=known.sum(axis=1)) == -1)


def test_explanations_add_up(scenes, ranker):
    X = scenes.X[160:180]
    why = ranker.explain(X, k=4)
    scores = X @ ranker.coef_.T + ranker.intercept_
    for row in range(20):
        inside = [int(label) for label in why.labels[row] if label in ranker.core_]
        among = sum(
            ranker.pair_[list(ranker.core_).index(a), b] for a, b in combinations(inside, 2)
        )  # a pair of core labels shows twice
        total = why.own[row].sum() + why.pairs[row].sum() - among
        best = best_by_enumeration(scores[row], ranker.pair_, ranker.core_, 4)
        worth = scores[row, list(best)].sum() + sum(
            next(
                (ranker.pair_[a, j if c == i else i] for a, c in enumerate(ranker.core_) if c in (i, j)),
                0.0,
            )
            for i, j in combinations(best, 2)
        )
        # Pairs of a core label with another one show once, at the other one, and once at the core label's own row.
        outer = sum(ranker.pair_[list(ranker.core_).index(c), i] for c in inside for i in best if i not in ranker.core_)
        assert total == pytest.approx(worth)
        assert outer == pytest.approx(
            sum(why.pairs[row, r].sum() for r, label in enumerate(why.labels[row]) if label not in ranker.core_)
        )


@pytest.mark.parametrize("solver", ["bcfw", "bundle"])
def test_every_convex_fit_is_certified(scenes, solver):
    ranker = hinge(core=2, C=1, solver=solver, max_iter=2000).fit(scenes.X, scenes.Y)
    assert 0 < ranker.lower_bound_ <= ranker.objective_
    assert ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_
    assert ranker.model_card_.converged


@pytest.mark.parametrize("kernel", ["rbf", "chi2", "intersection"])
def test_kernels_equal_their_precomputed_matrix(scenes, kernel):
    X = np.abs(scenes.X[:60])
    test = np.abs(scenes.X[60:80])
    matrix = {
        "rbf": lambda a, b: rbf_kernel(a, b, gamma=0.3),
        "chi2": lambda a, b: chi2_kernel(a, b, gamma=0.3),
        "intersection": lambda a, b: np.minimum(a[:, None], b).sum(axis=2),
    }[kernel]
    unary = {"rbf": Rbf(0.3), "chi2": Chi2(0.3), "intersection": Intersection()}[kernel]
    direct = hinge(unary, core=2, C=5, tol=1e-6).fit(X, scenes.Y[:60])
    given = hinge("precomputed", core=2, C=5, tol=1e-6).fit(matrix(X, X), scenes.Y[:60])
    assert direct.objective_ == pytest.approx(given.objective_, rel=2e-6)
    np.testing.assert_allclose(
        direct.decision_function(test), given.decision_function(matrix(test, X)), rtol=0, atol=0.02
    )


def test_a_shift_of_all_rows_changes_nothing(scenes):
    here = hinge(core=2).fit(scenes.X, scenes.Y)
    there = hinge(core=2).fit(scenes.X + 64.0, scenes.Y)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-3)
    assert there.score(scenes.X + 64.0, scenes.Y) == pytest.approx(here.score(scenes.X, scenes.Y), abs=0.01)


def test_a_linear_kernel_is_the_linear_model(scenes):
    kept = scenes.Y[:80].any(axis=1)  # the others are left out, and count neither for mean nor for variance
    X, Y = scenes.X[:80][kept], scenes.Y[:80][kept]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    d = X.shape[1]  # rows of a kernel are of length 1, those of linear features of the root of their number
    linear = hinge(core=0, C=2, tol=1e-5).fit(X, Y)
    kernel = hinge(core=0, C=2 * d, tol=1e-5, unary="precomputed").fit(X @ X.T, Y)
    assert kernel.objective_ / d == pytest.approx(linear.objective_, rel=1e-4)
    np.testing.assert_allclose(kernel.label_scores(X @ X.T), linear.label_scores(X), atol=0.02)


UNITS = {
    "linear": lambda X: X * np.array([1e-6, 1e6, 1.0, 1e-6, 1.0, 1e-3, 7.0, 1e-6]),
    "rbf": lambda X: 1e-6 * X,
    "chi2": lambda X: 1e-6 * X,
    "intersection": lambda X: 1e-6 * X,
    "precomputed": lambda X: 1e-6 * X,
    "scores": lambda X: 1e-6 * X,
}


@pytest.mark.parametrize("unary", UNITS)
def test_the_unit_of_X_does_not_matter(scenes, unary):
    X, Y = np.abs(scenes.X[:80]), scenes.Y[:80]
    if unary == "precomputed":
        X = X @ X.T
    if unary == "scores":
        X = Y + np.random.default_rng(0).normal(size=Y.shape)
    other = UNITS[unary](X)
    here, there = (hinge(unary, core=2, tol=1e-4).fit(rows, Y) for rows in (X, other))
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-4)
    np.testing.assert_allclose(there.decision_function(other), here.decision_function(X), atol=0.05)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_squares_that_leave_the_range_of_doubles_do_no_harm(scenes, scale):
    here, there = (hinge(core=2).fit(X, scenes.Y) for X in (scenes.X, scale * scenes.X))
    np.testing.assert_allclose(there.decision_function(scale * scenes.X), here.decision_function(scenes.X), atol=0.05)
    too_far = r"X: expected columns with a standard deviation from 1e-150 to 1e\+150, found"
    with pytest.raises(ValueError, match=too_far):
        hinge(core=2).fit(scenes.X * scale * scale, scenes.Y)


def test_a_constant_column_changes_nothing(scenes):
    constant = np.column_stack([scenes.X, np.full(240, 0.1)])  # whose mean is 0.1 apart from rounding
    here, there = (hinge(core=2).fit(X, scenes.Y) for X in (scenes.X, constant))
    np.testing.assert_allclose(there.decision_function(constant), here.decision_function(scenes.X), atol=0.05)


def test_few_components_are_an_approximation(scenes):
    full = hinge("rbf", core=2, C=5).fit(scenes.X, scenes.Y)
    few = hinge(Rbf(n_basis=30), core=2, C=5).fit(scenes.X, scenes.Y)
    assert len(few.basis_) == 30
    assert few.objective_ >= full.lower_bound_


def test_pretrained_scores_with_tiny_C_keep_their_order(scenes):
    rng = np.random.default_rng(0)
    given = scenes.Y + rng.normal(size=scenes.Y.shape)
    ranker = hinge(core=3, unary="scores", C=1e-9).fit(given, scenes.Y)
    order = np.argsort(-given, axis=1)[:, :3]
    assert [set(row) for row in ranker.rank(given, k=3).lists()] == [set(row) for row in order]


def test_auto_does_not_end_below_the_given_scores(scenes):
    rng = np.random.default_rng(0)
    given = scenes.Y + rng.normal(size=scenes.Y.shape)
    ranker = hinge(core=3, unary="scores", C="auto").fit(given[:160], scenes.Y[:160])
    base = hinge(core=0, unary="scores", C=1e-9).fit(given[:160], scenes.Y[:160])
    assert ranker.score(given[160:], scenes.Y[160:]) >= base.score(given[160:], scenes.Y[160:]) - 0.02


def test_inner_validation_does_not_see_the_unit_of_X(scenes, monkeypatch):
    monkeypatch.setattr(margin_choice, "STRENGTHS", (10.0,))
    kept = scenes.Y.any(axis=1)
    X, Y = scenes.X[kept][:90], scenes.Y[kept][:90].astype(float)
    units, ones = np.array([1e-6, 1e6, 1.0, 1e-6, 1.0, 1e-3, 7.0, 1e-6]), np.ones(90)
    choices = [
        margin_choice.choose(
            relevant_hinge(prepare_linear(rows, ones), Y, ones, np.array([0, 1])),
            SOLVERS["bcfw"],
            Settings(1.0, 1.0, 1e-2, 60, 0),
            (0.3,),
        )
        for rows in (X, X * units, np.repeat(X, 9, axis=1))
    ]
    assert choices[1][:2] == pytest.approx(choices[0][:2])
    assert choices[1].score == pytest.approx(choices[0].score, abs=0.02)
    # Each column nine times: a ninth of C, and as much as before for the pairs.
    np.testing.assert_allclose(choices[0].C, 9 * choices[2].C)
    np.testing.assert_allclose(choices[2].C / choices[2].rho, choices[0].C / choices[0].rho)
    assert choices[2].score == pytest.approx(choices[0].score, abs=0.02)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_fixed_k(scenes, k):
    ranker = hinge(core=2, C=3, k=k).fit(scenes.X, scenes.Y)
    assert ranker.rank(scenes.X[:5], k=k).ids.shape == (5, k)
    assert ranker.objective_ >= ranker.lower_bound_


def test_a_core_by_gain_is_no_worse_in_validation():
    lists = datasets.make_interacting_lists(400, 8, 3, n_core=2, strength=3.0, random_state=0)
    ranker = hinge(core=3, core_selection="gain", C=10).fit(lists.X, lists.Y)
    assert 1 <= len(ranker.core_) <= 3
    assert set(ranker.core_) & set(lists.core)


def test_sparse_labels_and_weights(scenes):
    weight = np.ones(240)
    weight[100:] = 0
    some = hinge(core=2).fit(scenes.X[:100], scenes.Y[:100])
    weighted = hinge(core=2).fit(scenes.X, csr_array(scenes.Y), sample_weight=weight)
    assert weighted.n_skipped_ == some.n_skipped_ + 140
    assert weighted.objective_ == pytest.approx(some.objective_, rel=2e-3)


def test_one_class_a_row():
    rng = np.random.default_rng(0)
    y = np.array(["low", "mid", "top"])[rng.integers(0, 3, 90)]
    X = rng.normal(size=(90, 2)) + np.array([[0, 0], [4, 0], [0, 4]])[np.searchsorted(["low", "mid", "top"], y)]
    ranker = hinge(core=0, C=10).fit(X, y)
    assert (ranker.predict(X) == y).mean() > 0.9
    assert ranker.score(X, y) == pytest.approx((ranker.predict(X) == y).mean())


@pytest.mark.parametrize("n_labels", [2, 4, 5, 8])
def test_the_default_core_is_what_the_labels_allow(scenes, n_labels):
    X, Y = scenes.X[:100], scenes.Y[:100, :n_labels]
    assert len(set(hinge(tol=0.1).fit(X, Y).core_.tolist())) == min(5, n_labels)
    if n_labels == 4:
        assert len(hinge(core_selection="gain", tol=0.1).fit(X, Y).core_) <= 4
    assert len(hinge(core=9, tol=0.1).fit(X, Y).core_) == n_labels


ROWS = 240
SEVERAL = {
    "a frame of names": (pd.DataFrame([["sea", "sky"]] * ROWS), r"found \['sea', 'sky'\] in row 0"),
    "a matrix of names": (np.array([["sea", "sky"]] * ROWS), r"found \['sea', 'sky'\] in row 0"),
    "sets of numbers": ([{0, 1}, {2}] * 120, "names that are texts, .*, found 0 in row 0"),
    "lists of numbers": ([[0, 1], [2]] * 120, r"found \[0, 1\] in row 0"),
    "the first row is plain": (["sea", {"sea", "sky"}] * 120, "set of names in every row .* found 'sea' in row 0"),
    "joined names": (["sea", "sea|sky"] * 120, r"found 'sea\|sky' in row 1; separator='\|' cuts such texts"),
    "joined bytes": ([b"sea", b"sea|sky"] * 120, r"found b'sea\|sky' in row 1"),
    "a series of joined names": (pd.Series(["sea|sky", "tree"] * 120), r"found 'sea\|sky' in row 0; separator="),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_rows_that_hold_several_of_something_else_are_refused(scenes, ranker, kind):
    y, message = SEVERAL[kind]
    for refuse in (hinge().fit, ranker.score):
        with pytest.raises(ValueError, match=f"y: expected .*{message}"):
            refuse(scenes.X, y)


@pytest.mark.parametrize(
    ("y", "found"), [(["sea", None], "NoneType and str"), (["sea", 1.5], "numbers and str"), ([None, None], "NoneType")]
)
def test_classes_of_several_types_are_refused(scenes, y, found):
    with pytest.raises(ValueError, match=f"y: expected classes of one type, found {found}"):
        hinge().fit(scenes.X, np.array(y * 120, dtype=object))


def test_plain_classes_stay_valid(scenes):
    number = np.arange(240) % 4
    names = np.array(["none", "sea", "sky", "both"])[number]
    for y in (names, names.tolist(), names.astype(object), pd.Series(names), pd.Series(names, dtype="category")):
        ranker = hinge().fit(scenes.X, y)
        assert ranker.classes_.tolist() == ["both", "none", "sea", "sky"]
        assert ranker.score(scenes.X, y) == pytest.approx(np.mean(ranker.predict(scenes.X) == names))
    assert hinge().fit(scenes.X, number.astype(object)).classes_.tolist() == [0, 1, 2, 3]
    assert hinge().fit(scenes.X, pd.DataFrame({"class": names})).classes_.tolist() == sorted(set(names))


@pytest.mark.parametrize("dtype", ["int8", "bool", "float", "Int64", "boolean", object])
def test_frames_of_labels(scenes, ranker, dtype):
    frame = pd.DataFrame(scenes.Y).astype(dtype)
    assert ranker.score(scenes.X, frame) == ranker.score(scenes.X, scenes.Y)


@pytest.fixture(scope="module")
def labelled(scenes):
    kept = scenes.Y.any(axis=1)
    return scenes.X[kept][:90], scenes.Y[kept][:90]


@pytest.mark.parametrize("ranker", [hinge(), make_pipeline(StandardScaler(), hinge())])
def test_cross_validated_predictions_are_those_of_the_folds(labelled, ranker):
    X, Y = labelled
    folds = list(KFold(3).split(X))
    for method in ("decision_function", "predict"):
        found = cross_val_predict(ranker, X, Y, cv=KFold(3), method=method)
        for train, test in folds:
            np.testing.assert_array_equal(found[test], getattr(clone(ranker).fit(X[train], Y[train]), method)(X[test]))
    scores = cross_val_score(ranker, X, Y, cv=KFold(3))
    assert scores == pytest.approx([clone(ranker).fit(X[a], Y[a]).score(X[b], Y[b]) for a, b in folds])


def test_cross_validated_predictions_of_classes(labelled):
    X, y = labelled[0], np.array(["sea", "sky", "tree"])[np.arange(90) % 3]
    found = cross_val_predict(hinge(), X, y, cv=3, method="decision_function")
    assert found.shape == (90, 3)
    assert set(cross_val_predict(hinge(), X, y, cv=3)) <= {"sea", "sky", "tree"}
    assert cross_val_predict(hinge(), X, y == "sea", cv=3, method="decision_function").shape == (90, 2)


def test_a_grid_search_refits_its_best(labelled):
    X, Y = labelled
    search = GridSearchCV(hinge(), {"core": [5, 0, [1, 2]], "C": [0.1, 1.0]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    best = hinge(**search.best_params_).fit(X, Y)
    np.testing.assert_array_equal(search.decision_function(X), best.decision_function(X))
    np.testing.assert_array_equal(clone(search.best_estimator_).fit(X, Y).predict(X), best.predict(X))


def test_labels_to_score_by_must_be_those_of_fit(scenes, ranker):
    for y, found in [
        (scenes.Y[:, :5], r"shape \(240, 5\)"),
        (np.column_stack([scenes.Y, scenes.Y]), r"shape \(240, 16\)"),
        (np.arange(240) % 8, "one class per row"),
    ]:
        with pytest.raises(ValueError, match=rf"y: expected 0/1 labels as in fit, shape \(240, 8\), found {found}"):
            ranker.score(scenes.X, y)


def test_number_of_labels_is_estimated(scenes, ranker):
    estimate = ranker.predict_count(scenes.X[160:])
    truth = scenes.Y[160:].sum(axis=1)
    assert np.abs(estimate - truth).mean() <= np.abs(ranker.k_ - truth).mean() + 0.05


def test_rows_without_labels_are_skipped_and_counted(scenes):
    Y = scenes.Y.copy()
    Y[:7] = 0
    ranker = hinge(core=2).fit(scenes.X, Y)
    rest = hinge(core=2).fit(scenes.X[7:], Y[7:])
    assert ranker.n_skipped_ == rest.n_skipped_ + 7
    np.testing.assert_array_equal(ranker.pair_, rest.pair_)


def test_weights_and_order_of_rows(scenes):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, 240)
    rows = rng.permutation(np.repeat(np.arange(240), weight))
    weighted = hinge(core=2, C="auto").fit(scenes.X, scenes.Y, sample_weight=weight)
    repeated = hinge(core=2, C="auto").fit(scenes.X[rows], scenes.Y[rows])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.pair_, repeated.pair_)


def test_a_label_never_seen_is_ranked_low(scenes):
    Y = np.column_stack([scenes.Y, np.zeros(240, dtype=int)])
    ranker = hinge(core=2, C=3).fit(scenes.X, Y)
    assert not np.any(ranker.rank(scenes.X, k=2).ids == 8)


BAD = [
    ({"core": -1}, {}, "core"),
    ({"core": [0, 0]}, {}, "core"),
    ({"core": [99]}, {}, "core"),
    ({"core": 2.5}, {}, "core"),
    ({"C": 0}, {}, "C: expected"),
    ({"C": "abc"}, {}, "C: expected"),
    ({"C": None}, {}, "C: expected"),
    ({"C_pair": "auto"}, {}, "C_pair: expected"),
    ({"tol": -1.0}, {}, "tol: expected"),
    ({"C_pair": -1.0}, {}, "C_pair"),
    ({"unary": "other"}, {}, "unary"),
    ({"C": "auto", "C_pair": 1.0}, {}, "C_pair: expected None with C='auto'"),
    ({"unary": "scores"}, {"y": np.eye(240, 5) + np.eye(240, 5, -235)}, "one given score per label"),
    ({"unary": "chi2"}, {}, "histogram"),
    ({"unary": "precomputed"}, {}, "symmetric"),
    ({"solver": "other"}, {}, "solver"),
    ({"core_selection": "other"}, {}, "core_selection"),
    ({"k": 9}, {}, "k: expected"),
    ({"k": 0}, {}, "k: expected"),
    ({}, {"y": np.full((240, 8), 2)}, "0 and 1"),
    ({}, {"y": np.zeros((240, 8))}, "relevant label"),
    ({}, {"y": np.zeros((3, 8))}, "inconsistent"),
    ({}, {"y": np.ones((240, 1))}, "two labels"),
    ({}, {"sample_weight": -np.ones(240)}, "sample_weight"),
    ({}, {"sample_weight": np.ones(3)}, "sample_weight"),
]


@pytest.mark.parametrize(("settings", "arguments", "message"), BAD)
def test_bad_input_to_fit(scenes, settings, arguments, message):
    with pytest.raises(ValueError, match=message):
        hinge(**settings).fit(scenes.X, **{"y": scenes.Y, **arguments})


def test_bad_input_to_rank(scenes, ranker):
    X = scenes.X[:2]
    yes = np.ones((2, 8), dtype=int)
    for arguments, message in [
        ({"k": 9}, "k: expected"),
        ({"k": -1}, "k: expected"),
        ({"k": 2.5}, "k: expected"),
        ({"k": [1, 2, 3]}, "k: expected"),
        ({"known": np.full((2, 8), 7)}, "known"),
        ({"known": np.full((2, 3), -1)}, "known"),
        ({"known": yes, "k": 3}, "known"),
        ({"known": 0 * yes, "k": 3}, "known"),
    ]:
        with pytest.raises(ValueError, match=message):
            ranker.rank(X, **arguments)


def test_saved_and_loaded_it_ranks_the_same(tmp_path, scenes):
    for number, settings in enumerate([{}, {"unary": "rbf"}, {"core": 0}, {"core": [1, 4]}]):
        ranker = hinge(**{"core": 2, **settings}).fit(scenes.X, scenes.Y)
        ranker.save(tmp_path / f"{number}.safetensors")
        back = slatewise.load(tmp_path / f"{number}.safetensors")
        np.testing.assert_array_equal(back.decision_function(scenes.X), ranker.decision_function(scenes.X))


@pytest.mark.parametrize(
    "change",
    [
        {"core_": np.array([0, 99])},
        {"pair_": np.full((2, 8), np.nan)},
        {"coef_": np.zeros((8, 3))},
        {"intercept_": np.zeros(3)},
        {"count_coef_": np.full(9, np.inf)},
        {"label_names_": np.arange(8) + 1},
        {"k_": 99},
        {"k_": "many"},
        {"gamma_": 1.0},
        {"basis_": np.zeros((2, 8))},
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path, scenes, change):
    hinge(core=2).fit(scenes.X, scenes.Y).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    arrays = {**state.arrays, **{name: value for name, value in change.items() if isinstance(value, np.ndarray)}}
    values = {**state.values, **{name: value for name, value in change.items() if name not in arrays}}
    write_model(tmp_path / "m", replace(state, arrays=arrays, values=values))
    with pytest.raises(ModelFileError):
        slatewise.load(tmp_path / "m")


def test_same_bits_with_any_number_of_threads(tmp_path, scenes):
    for threads in (1, 2):
        hinge(core=3, C=3, n_jobs=threads).fit(scenes.X, scenes.Y).save(tmp_path / str(threads))
    arrays = [read_model(tmp_path / str(threads)).arrays for threads in (1, 2)]
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name])


def test_callbacks_see_the_gap_close(scenes):
    rounds = []
    hinge(core=2, C=10).fit(scenes.X, scenes.Y, callbacks=[rounds.append])
    assert rounds[-1].gap <= 1e-3 <= rounds[0].gap


def test_a_checkpoint_of_other_data_is_refused(tmp_path, scenes):
    path = tmp_path / "state"

    def stop(round_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hinge(core=2).fit(scenes.X, scenes.Y, checkpoint=path, callbacks=[stop])
    with pytest.raises(ValueError, match="checkpoint"):
        hinge(core=2).fit(scenes.X[:100], scenes.Y[:100], checkpoint=path)
    assert os.path.exists(path)
    hinge(core=2).fit(scenes.X, scenes.Y, checkpoint=path)
    assert not os.path.exists(path)


def test_not_converged_is_a_warning(scenes):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        hinge(core=2, C=1000, tol=1e-8, max_iter=1).fit(scenes.X, scenes.Y)
