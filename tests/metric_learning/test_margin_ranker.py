import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.named_failures import WEIGHTS_OF_LISTS

import slatewise
from slatewise import MarginRanker, data, datasets, losses, metrics
from slatewise.core.errors import ModelFileError
from slatewise.core.groups import group_rows
from slatewise.core.numerics.result import ConvergenceWarning
from slatewise.datasets.records import RankingSet
from slatewise.estimators.lists import GradedLists
from slatewise.persistence.file import ModelState, read_model, write_model

LOSSES = ("map", "auc", "ndcg", "precision", "mrr")


def at_3(loss, **fields):
    """A loss that looks at three ranks, if it looks at some only."""
    fields |= {"k": 3} if loss in ("ndcg", "precision") else {}
    return {
        "map": losses.MAP,
        "auc": losses.AUC,
        "ndcg": losses.NDCG,
        "precision": losses.Precision,
        "mrr": losses.MRR,
    }[loss](**fields)


@parametrize_with_checks([MarginRanker()], expected_failed_checks=lambda estimator: WEIGHTS_OF_LISTS)
@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(300, 4)), rng.permutation(np.repeat(np.arange(30), 10))
    y = np.clip(np.round(X @ [1.0, -0.5, 0.0, 0.2] + 0.5 * rng.normal(size=300)), 0, 2)
    return X, y, qid


@pytest.mark.parametrize("loss", LOSSES)
def test_learns_and_certifies(rows, loss):
    X, y, qid = rows
    ranker = MarginRanker(at_3(loss), C=10.0).fit(X, y, qid)
    assert 0 <= ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_
    assert ranker.score(X, y, qid) > 0.85
    assert ranker.coef_[0] > ranker.coef_[3] > ranker.coef_[1]
    assert ranker.model_card_.converged
    assert ranker.model_card_.lower_bound == ranker.lower_bound_


def test_each_loss_is_best_at_its_own(rows):
    """The objective of a loss is smallest at its own optimum."""
    X, y, qid = rows
    fits = {loss: MarginRanker(at_3(loss, threshold=1.0), C=10.0, tol=1e-4).fit(X, y, qid) for loss in LOSSES}
    for loss, ranker in fits.items():
        hinge = ranker._hinge(GradedLists.of(X, y, group_rows(qid, len(y)), None))
        for other in fits.values():
            offset, gradient = hinge.cut(other.coef_)
            value = 0.5 * other.coef_ @ other.coef_ + 10.0 * (offset + gradient @ other.coef_)
            assert value >= ranker.lower_bound_ - 1e-9, loss


def test_order_of_rows_and_names_of_lists_do_not_matter(rows):
    X, y, qid = rows
    shuffle = np.random.default_rng(2).permutation(300)
    one = MarginRanker(C=3.0, tol=1e-6).fit(X, y, qid)
    two = MarginRanker(C=3.0, tol=1e-6).fit(X[shuffle], y[shuffle], [f"q{name}" for name in qid[shuffle]])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-2)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)


def test_adding_a_constant_to_a_list_changes_nothing(rows):
    X, y, qid = rows
    shift = np.random.default_rng(3).integers(-3, 4, (30, 4))[qid]
    one, two = (MarginRanker(C=3.0).fit(rows, y, qid) for rows in (X, X + shift))
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-3)


def test_lists_that_say_nothing_are_skipped_and_counted(rows):
    X, y, qid = rows
    whole = MarginRanker(C=3.0).fit(X, y, qid)
    extra = np.vstack([X, np.random.default_rng(4).normal(size=(7, 4))])
    with pytest.warns(UserWarning, match="3 of 33 lists are left out: 2 of relevant rows only, 1 of irrelevant rows"):
        more = MarginRanker(C=3.0).fit(extra, [*y, 0, 0, 0, 1, 1, 1, 1], [*qid, 90, 90, 90, 91, 91, 92, 92])
    assert more.n_skipped_ == whole.n_skipped_ + 3
    np.testing.assert_array_equal(more.coef_, whole.coef_)


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_threshold_says_what_is_relevant(rows):
    X, y, qid = rows
    graded, binary = (
        MarginRanker(losses.MAP(threshold=2.0)).fit(X, y, qid),
        MarginRanker().fit(X, (y >= 2).astype(int), qid),
    )
    np.testing.assert_array_equal(graded.coef_, binary.coef_)
    every_pair, one_step = MarginRanker("auc").fit(X, y, qid), MarginRanker(losses.AUC(threshold=1.0)).fit(X, y, qid)
    assert not np.array_equal(every_pair.coef_, one_step.coef_)
    scaled = MarginRanker("auc").fit(X, 0.1 * y - 5.0, qid)  # only the order of the grades counts
    np.testing.assert_array_equal(every_pair.coef_, scaled.coef_)


def test_auto_strength_is_chosen_and_reproducible(rows):
    X, y, qid = rows
    one, two = (MarginRanker(C="auto", random_state=3).fit(X, y, qid) for _ in range(2))
    assert one.C_ == two.C_ > 0
    np.testing.assert_array_equal(one.coef_, two.coef_)
    given = MarginRanker(C=one.C_).fit(X, y, qid)
    np.testing.assert_array_equal(one.coef_, given.coef_)


def test_auto_strength_does_not_see_where_a_list_lies(rows):
    X, y, qid = rows
    shift = 1e6 * np.random.default_rng(3).integers(-3, 4, (30, 4))[qid]
    one, two = (MarginRanker(C="auto").fit(some, y, qid) for some in (X, X + shift))
    np.testing.assert_allclose(one.C_, two.C_)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_one_list_cannot_choose_a_strength(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match="C: expected a number where there is one list to learn from, found 'auto'"):
        MarginRanker(C="auto").fit(X[qid == 0], y[qid == 0])


@pytest.mark.parametrize("C", [1, 1.0, "auto"])
def test_features_that_say_nothing_are_certified_at_once(rows, C):
    X, y, qid = rows
    with pytest.warns(UserWarning, match="nothing was learned"):
        ranker = MarginRanker(C=C).fit(np.full_like(X, 0.1), y, qid)
    assert ranker.model_card_.converged
    assert ranker.n_iter_ <= 2


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_the_scale_of_the_features_does_not_stop_training(scale):
    queries = datasets.make_queries(n_queries=12, random_state=0)
    ranker = MarginRanker(max_iter=250).fit(scale * queries.X, queries.y, queries.qid)
    assert 0 <= ranker.objective_ - ranker.lower_bound_ <= 1e-3 * ranker.objective_


def test_any_whole_number_of_ranks_is_taken(rows):
    one, two = (MarginRanker(losses.NDCG(k), C=10.0).fit(*rows) for k in (5, np.int64(5)))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_threads_do_not_change_a_bit(rows, monkeypatch):
    X, y, qid = rows
    monkeypatch.setattr("slatewise.metric_learning.margin_hinge.BLOCK_BYTES", 1000)
    one, two = (MarginRanker(C=3.0, n_jobs=n).fit(X, y, qid) for n in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()


def test_rounds_are_told_and_an_early_end_is_a_warning(rows):
    X, y, qid = rows
    rounds = []
    ranker = MarginRanker(C=100.0, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        ranker.fit(X, y, qid, callbacks=[rounds.append])
    assert [round_.round for round_ in rounds] == [1, 2]
    assert not ranker.model_card_.converged


def test_saved_and_loaded_it_predicts_the_same(tmp_path, rows):
    X, y, qid = rows
    ranker = MarginRanker("ndcg", C=3.0).fit(X, y, qid)
    ranker.save(tmp_path / "m.safetensors")
    back = slatewise.load(tmp_path / "m.safetensors")
    assert type(back) is MarginRanker
    assert back.get_params() == ranker.get_params()
    assert back.model_card_ == ranker.model_card_
    np.testing.assert_array_equal(back.predict(X), ranker.predict(X))


@pytest.mark.parametrize("coef", [np.zeros(3), np.array([1.0, np.nan, 0, 0])])
def test_a_file_with_other_weights_is_refused(tmp_path, rows, coef):
    X, y, qid = rows
    MarginRanker().fit(X, y, qid).save(tmp_path / "m")
    state = read_model(tmp_path / "m")
    parts = {name: getattr(state, name) for name in ("estimator", "params", "values", "card")}
    write_model(tmp_path / "m", ModelState(**parts, arrays={"coef_": coef}))
    with pytest.raises(ModelFileError, match="coef_"):
        slatewise.load(tmp_path / "m")


def test_in_a_pipeline_and_a_search(rows):
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), MarginRanker()),
            {"marginranker__C": [0.1, 10.0]},
            cv=GroupKFold(3),
            error_score="raise",
        )
        search.fit(X, y, qid=qid, groups=qid)
        assert search.score(X, y, qid=qid) > 0.85


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "MAP"}, "loss: expected 'map', 'auc', 'ndcg', 'precision', 'mrr' or MAP"),
        ({"loss": losses.KNN()}, r"loss: expected .+, found KNN\("),
        ({"C": 0.0}, "C: expected a finite number > 0"),
        ({"C": np.inf}, "C: expected a finite number > 0"),
        ({"C": "many"}, "C: expected a finite number > 0"),
        ({"tol": -1.0}, "tol: expected a finite number > 0"),
        ({"tol": "auto"}, "tol: expected a finite number > 0"),
        ({"max_iter": 0}, "max_iter: expected a whole number from 1"),
    ],
)
def test_bad_parameters_are_refused(rows, params, message):
    with pytest.raises(ValueError, match=message):
        MarginRanker(**params).fit(*rows)


@pytest.mark.parametrize("y", [[0, 0, 0], [2, 2, 2]])
@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_lists_of_one_class_are_refused(y):
    with pytest.raises(ValueError, match="y: expected a list with relevant and irrelevant rows"):
        MarginRanker().fit([[1.0], [2.0], [3.0]], y)


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_whole_numbers_and_constant_features_are_fine():
    X = [[1, 7], [2, 7], [3, 7], [4, 7]]
    ranker = MarginRanker(C=1).fit(X, [0, 0, 1, 1])
    assert ranker.coef_[0] > 0
    assert ranker.coef_[1] == 0
    with pytest.warns(UserWarning, match="nothing was learned"):
        flat = MarginRanker().fit(np.ones((4, 2)), [0, 0, 1, 1])
    np.testing.assert_array_equal(flat.coef_, 0)
    assert flat.objective_ == flat.lower_bound_ > 0


def test_more_features_than_rows():
    X = np.random.default_rng(0).normal(size=(6, 40))
    y, qid = [1, 0, 0, 1, 0, 0], [1, 1, 1, 2, 2, 2]
    ranker = MarginRanker(C=100.0).fit(X, y, qid)
    assert metrics.AP()(y, ranker.predict(X), qid) == 1.0


@pytest.mark.filterwarnings("ignore:.*lists are left out")
def test_svm_map_on_ohsumed_is_level_with_the_official_ranking_svm(shared_data):
    """The first fold, C chosen on its validation part; all five are in ``slatewise reproduce mlr``."""
    letor = datasets.load("ohsumed25", RankingSet)
    X, fold, measure = data.minmax_per_query(letor.X, letor.qid), letor.folds[0], metrics.preset("letor").AP()

    def quality(ranker, part):
        return measure(letor.y[part], ranker.predict(X[part]), letor.qid[part])

    rankers = [
        MarginRanker("map", C=C).fit(X[fold.train], letor.y[fold.train], letor.qid[fold.train])
        for C in (0.1, 1.0, 10.0, 100.0)
    ]
    chosen = max(rankers, key=lambda ranker: quality(ranker, fold.validation))
    official = next(run for run in datasets.load_official_runs("ohsumed25") if run.name == "RankSVM_fold1")
    assert quality(chosen, fold.test) > measure(official.relevance, official.scores, official.qid) - 0.02


def test_lists_without_information_are_warned_of_with_the_count_and_the_reason():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.array([0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1])
    match = "^4 of 6 lists are left out: 2 of relevant rows only, 2 of irrelevant rows only$"
    with pytest.warns(UserWarning, match=match):
        ranker = MarginRanker().fit(X, y, group=[2] * 6)
    assert ranker.n_skipped_ == 4
    with pytest.warns(UserWarning, match="^1 of 2 lists are left out: 1 of irrelevant rows only$"):  # also one alone
        assert MarginRanker().fit(X[:4], y[:4], group=[2, 2]).n_skipped_ == 1
    with pytest.warns(UserWarning, match="^1 of 2 lists are left out: 1 of a single relevance$"):
        assert MarginRanker("auc").fit(X[:4], [3, 1, 2, 2], group=[2, 2]).n_skipped_ == 1
