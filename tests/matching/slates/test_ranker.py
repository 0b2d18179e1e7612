from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.named_failures import WEIGHTS_OF_LISTS

import slatewise
from slatewise import MatchingRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.matching import AllSlates, Slates, WholeQueries
from slatewise.persistence.file import ModelState, read_model, write_model


@parametrize_with_checks(
    [
        MatchingRanker(Slates(repeats=1)),
        MatchingRanker(Slates(repeats=1), surrogate="max-margin"),
        MatchingRanker("whole"),
    ],
    expected_failed_checks=lambda estimator: WEIGHTS_OF_LISTS,
)
@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    queries = datasets.make_queries(n_queries=24, random_state=0)
    return queries.X, queries.y, queries.qid


SETTINGS = [
    {},
    {"slates__size": 4, "slates__position_weights": "rating"},
    {"slates__size": 3, "slates__position_weights": [1.0, 0.5, 0.0]},
    {"slates__size": 3, "slates__ties": "marginal", "slates__position_weights": "rating"},
    {"slates": AllSlates(2)},
    {"slates": "whole"},
    {"slates": WholeQueries("rating")},
    {"slates__size": 3, "surrogate": "max-margin"},
    {"slates": "whole", "surrogate": "max-margin", "l2": 0.1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_kind_of_fit_is_certified_and_learns(rows, settings):
    X, y, qid = rows
    ranker = MatchingRanker(Slates(repeats=2, share=0.1)).set_params(**settings).fit(X, y, qid=qid)
    # Nothing is drawn, or every repeat is solved to 1e-3: what is left of the gap is the mean theta's.
    drawn = isinstance(ranker.slates, Slates)
    assert 0 <= ranker.lower_bound_ <= ranker.objective_ <= (1.1 if drawn else 1 + 2e-3) * ranker.lower_bound_
    assert ranker.model_card_.converged
    assert ranker.score(X, y, qid) > 0.9
    assert ranker.loss(X, y, qid) > 0
    best = ranker.predict(X)
    for order in ranker.rank(X, qid):
        assert np.all(np.diff(best[order]) <= 0)


def test_pairs_are_logistic_regression_on_differences(rows):
    """In slates of two every slate is a pair: -log p = log(1 + exp(-(s_better - s_worse)))."""
    X, y, qid = rows
    ranker = MatchingRanker(AllSlates(2), l2=0.1, tol=1e-8).fit(X, y, qid=qid)
    pairs = np.array([X[i] - X[j] for i in range(len(y)) for j in np.flatnonzero((qid == qid[i]) & (y < y[i]))])
    reference = minimize(
        lambda w: np.logaddexp(0, -pairs @ w).mean() + 0.05 * w @ w, np.zeros(X.shape[1]), method="BFGS", tol=1e-9
    )
    np.testing.assert_allclose(ranker.coef_, reference.x, atol=1e-4)
    assert ranker.objective_ == pytest.approx(reference.fun, abs=1e-7)


def test_the_order_of_rows_does_not_matter_where_nothing_is_drawn(rows):
    X, y, qid = rows
    shuffle = np.random.default_rng(0).permutation(len(y))
    one = MatchingRanker("whole", tol=1e-10).fit(X, y, qid=qid)
    two = MatchingRanker("whole", tol=1e-10).fit(X[shuffle], y[shuffle], qid=qid[shuffle])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)


def test_a_seed_gives_the_same_bits_at_any_number_of_threads(rows):
    X, y, qid = rows
    for settings in ({}, {"surrogate": "max-margin"}, {"slates": "whole"}):
        fits = [
            MatchingRanker(Slates(repeats=2), random_state=3, n_jobs=n, l2=0.1).set_params(**settings).fit(X, y, qid)
            for n in (1, 2, 3)
        ]
        for other in fits[1:]:
            np.testing.assert_array_equal(fits[0].coef_, other.coef_)


def test_repeats_are_averaged(rows):
    X, y, qid = rows
    one = MatchingRanker(Slates(3, 0.02, 1), random_state=1).fit(X, y, qid)
    two = MatchingRanker(Slates(3, 0.02, 2), random_state=1).fit(X, y, qid)
    other = 2 * two.coef_ - one.coef_
    assert np.abs(other - one.coef_).max() > 1e-3


@pytest.mark.parametrize("surrogate", ["likelihood", "max-margin"])
def test_the_objective_is_that_of_the_mean_theta(rows, surrogate):
    """Theta far from every repeat's own has a far larger objective than the mean of their minima, the bound."""
    X, y, qid = rows
    ranker = MatchingRanker(Slates(3, 0.02, 4), random_state=1, l2=1e-3, surrogate=surrogate).fit(X, y, qid)
    assert ranker.objective_ > 1.01 * ranker.lower_bound_
    assert ranker.model_card_.converged
    one = MatchingRanker(Slates(3, 0.02, 1), random_state=1, surrogate=surrogate).fit(X, y, qid)
    assert 0 <= one.objective_ - one.lower_bound_ <= 1e-3 * one.objective_


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_the_scale_of_the_features_does_not_stop_the_cutting_planes(scale):
    queries = datasets.make_queries(n_queries=12, random_state=0)
    ranker = MatchingRanker(Slates(3, repeats=1), surrogate="max-margin", max_iter=250)
    ranker.fit(scale * queries.X, queries.y, queries.qid)
    assert 0 <= ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_


def test_auto_chooses_a_strength(rows):
    X, y, qid = rows
    ranker = MatchingRanker(Slates(3, 0.05, 1), l2="auto").fit(X, y, qid)
    fixed = MatchingRanker(Slates(3, 0.05, 1), l2=ranker.l2_).fit(X, y, qid)
    np.testing.assert_array_equal(ranker.coef_, fixed.coef_)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_one_list_cannot_choose_a_strength(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match="l2: expected a number where there is one list"):
        MatchingRanker(Slates(3), l2="auto").fit(X[qid == 0], y[qid == 0])


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_lists_without_a_slate_are_skipped_and_counted(rows):
    X, y, qid = rows
    y, qid = y.copy(), qid.copy()
    y[qid == 3] = 1
    whole = MatchingRanker(Slates(3, repeats=1)).fit(X, y, qid)
    without = MatchingRanker(Slates(3, repeats=1)).fit(X[qid != 3], y[qid != 3], qid[qid != 3])
    assert whole.n_skipped_ == without.n_skipped_ + 1
    np.testing.assert_array_equal(whole.coef_, without.coef_)
    sizes = np.bincount(qid)
    ratings = np.array([len(set(y[qid == q])) for q in range(24)])
    for size in (2, 4, 8):
        for missing, least in (("use", 2), ("skip", min(size, 5))):
            expected = ((sizes < size) | (ratings < least)).sum()
            ranker = MatchingRanker(Slates(size, 0.01, 1, missing=missing)).fit(X, y, qid)
            assert ranker.n_skipped_ == expected


def test_a_list_that_lacks_a_rating_is_used_with_those_it_has_unless_skipped():
    X = np.random.default_rng(0).normal(size=(12, 2))
    y = np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 1, 1, 1])
    qid = np.repeat([0, 1], 6)
    assert MatchingRanker(Slates(repeats=1)).fit(X, y, qid).n_skipped_ == 0
    assert MatchingRanker(Slates(2, repeats=1, missing="skip")).fit(X, y, qid).n_skipped_ == 0
    assert MatchingRanker("whole").fit(X, y, qid).n_skipped_ == 0
    match = r"1 of 2 lists are left out: 1 without 3 different ratings \(missing='skip'\)"
    with pytest.warns(UserWarning, match=match):
        skipped = MatchingRanker(Slates(repeats=1, missing="skip")).fit(X, y, qid)
    alone = MatchingRanker(Slates(repeats=1)).fit(X[:6], y[:6], group=[6])
    np.testing.assert_array_equal(skipped.coef_, alone.coef_)
    with pytest.raises(ValueError, match="y: expected a list with 3 different ratings, found at most 2"):
        MatchingRanker(Slates(3, missing="skip")).fit(X[:8], [0, 1, 0, 1, 2, 1, 2, 1], qid=np.repeat([0, 1], 4))


def test_what_is_left_out_is_warned_of_with_the_count_and_the_reason():
    X, y = np.random.default_rng(0).normal(size=(11, 2)), np.array([0, 1, 2, 0, 1, 1, 1, 0, 1, 2, 2])
    group = [3, 2, 2, 4]  # all there; two rows; a single rating; all there
    match = r"^2 of 4 lists are left out: 1 of a single rating, 1 of fewer than 3 rows$"
    with pytest.warns(UserWarning, match=match):
        ranker = MatchingRanker(Slates(repeats=1)).fit(X, y, group=group)
    assert ranker.n_skipped_ == 2
    with pytest.warns(UserWarning, match=match):
        ranker.loss(X, y, group=group)


def test_slates_of_a_list_that_lacks_a_rating_equal_enumeration():
    """Three of a list rated 0, 0, 1, 1: every three documents of both ratings, ties in the order that was drawn."""
    rng = np.random.default_rng(1)
    X, y, group = rng.normal(size=(7, 2)), np.array([0, 1, 2, 0, 0, 1, 1]), [3, 4]
    ranker = MatchingRanker(AllSlates(position_weights=[1.0, 0.5, 0.0])).fit(X, y, group=group)
    theta = ranker.coef_
    chosen = [(2, 1, 0)] + [rows for rows in combinations(range(3, 7), 3) if len(set(y[list(rows)])) == 2]
    assert len(chosen) == 5

    def cheapest_and_dearest(rows):
        """-log p of the best and the worst order of ties: which one was drawn is a matter of chance."""
        orders = [np.array(order) for order in permutations(rows)]
        weights = np.array([X[order] @ theta @ [1.0, 0.5, 0.0] for order in orders])
        right = [weight for order, weight in zip(orders, weights, strict=True) if (np.diff(y[order]) <= 0).all()]
        return np.logaddexp.reduce(weights) - np.array([max(right), min(right)])

    least, most = np.mean([cheapest_and_dearest(rows) for rows in chosen], axis=0) + 0.005 * theta @ theta
    assert least - 1e-9 <= ranker.objective_ <= most + 1e-9


@pytest.mark.parametrize("found", [np.random.default_rng(0).normal(size=120), np.tile(np.arange(30), 4)])
def test_many_grades_in_whole_lists_are_a_matter_of_y(found):
    X = np.random.default_rng(1).normal(size=(120, 2))
    message = r"y: expected at most about \d+ different relevance grades in a list of 30 rows.*found 30: round y"
    with pytest.raises(ValueError, match=message):
        MatchingRanker("whole").fit(X, found, group=[30] * 4)
    ranker = MatchingRanker("whole").fit(X, found > np.median(found), group=[30] * 4)
    assert ranker.loss(X, found > np.median(found), group=[30] * 4) > 0
    MatchingRanker("whole", surrogate="max-margin", tol=0.1).fit(X, found, group=[30] * 4)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_many_ratings_do_not_make_long_slates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    ranker = MatchingRanker(Slates(repeats=1)).fit(X, X[:, 0] + 0.1 * rng.normal(size=60))
    assert ranker.slate_size_ == 6
    assert ranker.coef_[0] > np.abs(ranker.coef_[1:]).max()


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_marginal_ties_warn_where_they_are_not_convex(rows):
    X, y, qid = rows
    with pytest.warns(UserWarning, match="not convex"):
        ranker = MatchingRanker(Slates(6, 0.02, 1, ties="marginal")).fit(X, y, qid)
    assert ranker.lower_bound_ == 0.0
    assert ranker.score(X, y, qid) > 0.9


@pytest.mark.parametrize("surrogate", ["likelihood", "max-margin"])
def test_stopping_early_is_a_warning(rows, surrogate):
    X, y, qid = rows
    with pytest.warns(ConvergenceWarning):
        ranker = MatchingRanker(Slates(3, repeats=1), max_iter=1, l2=1e-4, surrogate=surrogate).fit(X, y, qid)
    assert not ranker.model_card_.converged


@pytest.mark.parametrize("surrogate", ["likelihood", "max-margin"])
@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_features_that_say_nothing_give_zero(surrogate):
    ranker = MatchingRanker(Slates(repeats=1), surrogate=surrogate).fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(ranker.coef_, [0.0, 0.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slates": "some"}, r"slates: expected 'sampled', 'all', 'whole' or Slates\(...\), .* found 'some'"),
        ({"slates": 0.4}, "slates: expected 'sampled', "),
        ({"slates": Slates(19)}, "slates: expected a size of at most the 12 rows of the longest list, found 19"),
        ({"slates": Slates(3, position_weights=[2.0, 1.0])}, "Slates.position_weights: expected 3 finite numbers"),
        ({"slates": AllSlates(3, [0.0, 1.0, 2.0])}, "AllSlates.position_weights: expected numbers that fall"),
        ({"slates": Slates(3, position_weights=[1, 1, 1])}, "Slates.position_weights: expected numbers that fall"),
        ({"slates": WholeQueries([1.0, 0.0])}, "WholeQueries.rating_weights: expected 3 finite numbers"),
        ({"slates": Slates(ties="marginal"), "surrogate": "max-margin"}, "Slates.ties: expected 'random'"),
        ({"slates": AllSlates(ties="marginal"), "surrogate": "max-margin"}, "AllSlates.ties: expected 'random'"),
        ({"surrogate": "hinge"}, "surrogate: expected one of likelihood, max-margin"),
        ({"l2": 0}, "l2: expected a finite number > 0"),
        ({"l2": "best"}, "l2: expected a finite number > 0"),
        ({"tol": -1}, "tol: expected"),
        ({"max_iter": 0}, "max_iter: expected"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_refused(settings, message):
    X = np.random.default_rng(0).normal(size=(24, 2))
    with pytest.raises(ValueError, match=message):
        MatchingRanker(**settings).fit(X, np.tile([0, 1, 2], 8), qid=np.repeat([0, 1], 12))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("size", 2.5, "a whole number from 2 to 20 or None, found 2.5"),
        ("size", 1, "a whole number from 2 to 20 or None, found 1"),
        ("position_weights", "falling", "one of linear, rating or finite numbers, found 'falling'"),
        ("position_weights", [2.0, np.nan, 1.0], "one of linear, rating or finite numbers, found"),
        ("ties", "first", "one of random, marginal, found 'first'"),
        ("missing", "drop", "one of use, skip, found 'drop'"),
        ("share", 0, "a number > 0 and at most 1000, found 0"),
        ("repeats", 0, "a whole number from 1 to 1048576, found 0"),
    ],
)
def test_a_bad_field_is_refused_when_the_object_is_made(field, value, message):
    with pytest.raises(ValueError, match=rf"^Slates.{field}: expected {message}"):
        Slates(**{field: value})


def test_a_field_of_other_slates_names_those_that_have_it():
    assert MatchingRanker("all").set_params(slates__size=4).slates == AllSlates(4)
    with pytest.raises(
        ValueError, match="slates__repeats: expected a parameter of slates='sampled', found slates='all'"
    ):
        MatchingRanker("all").set_params(slates__repeats=2)
    with pytest.raises(ValueError, match="slates__size: expected a parameter of slates='sampled' or 'all', found"):
        MatchingRanker("whole").set_params(slates__size=2)


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_a_search_reaches_the_size_from_a_shorthand(rows):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            MatchingRanker(l2=0.1),
            {"slates__size": [2, 3], "slates__repeats": [1]},
            cv=GroupKFold(2),
            error_score="raise",
        )
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_estimator_.slates == Slates(size=search.best_estimator_.slate_size_, repeats=1)


def test_whole_queries_after_slates_have_no_size(rows):
    X, y, qid = rows
    ranker = MatchingRanker(Slates(3, repeats=1)).fit(X, y, qid)
    assert ranker.slate_size_ == 3
    assert not hasattr(ranker.set_params(slates="whole").fit(X, y, qid), "slate_size_")


def test_ratings_that_never_differ_are_refused():
    with pytest.raises(ValueError, match="y: expected a list with two different ratings, found one class"):
        MatchingRanker().fit(np.eye(4), [1, 1, 2, 2], qid=[0, 0, 1, 1])


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_ratings_too_far_apart_for_their_gain_are_refused():
    with pytest.raises(ValueError, match="y: expected ratings at most 500 apart"):
        MatchingRanker(surrogate="max-margin").fit(np.eye(2), [0, 2000])
    MatchingRanker(Slates(repeats=1)).fit(np.eye(2), [0, 2000])


def test_the_loss_of_ratings_never_seen_is_refused(rows):
    X, y, qid = rows
    ranker = MatchingRanker("whole").fit(X, y, qid)
    with pytest.raises(ValueError, match="y: expected ratings seen in fit, found 17"):
        ranker.loss(X, np.where(y == 0, 17, y), qid)
    with pytest.raises(NotFittedError):
        MatchingRanker().loss(X, y, qid)


@pytest.mark.parametrize(
    "slates",
    [Slates(3, position_weights=[2, 1, 0], repeats=1), AllSlates(2), "whole", WholeQueries(np.arange(5.0)[::-1])],
    ids=str,
)
def test_saved_and_loaded_it_predicts_the_same(tmp_path, rows, slates):
    X, y, qid = rows
    ranker = MatchingRanker(slates).fit(X, y, qid)
    ranker.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    assert type(back) is MatchingRanker
    assert back.get_params() == ranker.get_params()
    assert back.model_card_ == ranker.model_card_
    np.testing.assert_array_equal(back.predict(X), ranker.predict(X))
    assert back.loss(X, y, qid) == ranker.loss(X, y, qid)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coef_", np.zeros(3)),
        ("coef_", np.full(8, np.nan)),
        ("ratings_", np.array([1.0, 1.0])),
        ("slate_size_", 99),
        ("slate_size_", 4),
        ("slate_size_", "3"),
    ],
)
def test_a_file_with_other_content_is_refused(tmp_path, rows, name, value):
    X, y, qid = rows
    MatchingRanker(Slates(3, repeats=1)).fit(X, y, qid).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    arrays, values = dict(state.arrays), dict(state.values)
    (arrays if name in arrays else values)[name] = value
    write_model(tmp_path / "m", ModelState(state.estimator, state.params, values, arrays, state.card))
    with pytest.raises(ModelFileError, match=name):
        slatewise.load(tmp_path / "m")


def test_a_file_with_other_slates_than_it_learned_from_is_refused(tmp_path, rows):
    X, y, qid = rows
    ranker = MatchingRanker(Slates(3, repeats=1)).fit(X, y, qid)
    for slates, message in (
        ("whole", "slate_size_: expected None with slates='whole', found 3"),
        ({"type": "Slates", "size": 4}, "slate_size_: expected 4"),
        ({"type": "Slates", "size": 3, "position_weights": [1.0, 0.0]}, "Slates.position_weights: expected 3"),
        ({"type": "AllSlates", "repeats": 2}, "slates: expected 'sampled', "),
        ({"type": "Sample"}, "slates: expected 'sampled', "),
    ):
        ranker.save(tmp_path / "m")
        state = read_model(tmp_path / "m")
        write_model(tmp_path / "m", replace(state, params={**state.params, "slates": slates}))
        with pytest.raises(ModelFileError, match=message):
            slatewise.load(tmp_path / "m")
