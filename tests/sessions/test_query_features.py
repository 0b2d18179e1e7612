"""SessionRanker with features of the sessions: the formula, its slopes, files, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy.sparse import coo_array, csr_array

import slatewise
from slatewise import datasets
from slatewise.core.errors import ModelFileError
from slatewise.core.running.executor import Executor
from slatewise.data import Sessions
from slatewise.factors import Blocked
from slatewise.factors.bags import AGE_WEIGHTS
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.scoring import Cascade
from slatewise.persistence.file import read_model, write_model
from slatewise.sessions.problem import session_pairs
from tests.factors.flat import make_session_ranker
from tests.factors.reference import adagrad, rank_weight
from tests.factors.test_bags import WINDOW, N, make, whole_block
from tests.sessions.test_ranker import ASKED, N_ITEMS, SMALL, named, slow_scores

D = 3
OF_ASKED = np.array([[1.0, 0.0, 0.0], [0.0, -0.5, 2.0], [0.0, 0.0, 0.0]])


@pytest.fixture(scope="module")
def sessions():
    made = datasets.make_sessions(150, N_ITEMS, n_clusters=5, random_state=0).sessions
    return [named(one) for one in made]


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, (150, D)).round(3) * (rng.random((150, D)) < 0.6)


KINDS = {
    "alone": {"window": 4, "base": None},
    "based": {"window": 4, "validation_fraction": 0.0},
    "baskets": {"window": None},
}


@pytest.fixture(scope="module")
def rankers(sessions, features):
    return {
        name: make_session_ranker(**SMALL, **one).fit(sessions, query_features=features) for name, one in KINDS.items()
    }


def slow(ranker, asked, rows):
    """The formula of sessions, and what features add to it."""
    n, n_items = ranker.n_components_, len(ranker.item_ids_)
    C, V = ranker.query_factors_[n_items : n_items + D, :n], ranker.item_factors_[:, :n]
    return slow_scores(ranker, asked, getattr(ranker, "window_", None)) + np.asarray(rows) @ C.astype(
        float
    ) @ V.T.astype(float)


# --- slopes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize(("ages", "longest"), [(WINDOW, WINDOW), (1, 6)])
def test_violators_are_counted_and_a_step_follows_the_slopes(ages, longest, based):
    n_items = 11
    factors, lists, pairs, reference = make(n_items, 20, ages, longest, based=based, n_features=D)
    vectors = factors.queries.vectors(np.arange(20))
    np.testing.assert_allclose(vectors[:, :N], [reference.vector(one) for one in lists], atol=1e-6)
    assert np.all(vectors[:, N] == 1)
    pushed = [reference.violators(bag, d) for bag, d in zip(lists, pairs.items, strict=True)]
    negatives = WholeCatalogue(most=n_items).prepare(factors, pairs, Executor(1))
    found = negatives.gradient(whole_block(pairs), vectors[pairs.queries], factors.items.values, rank_weights(n_items))
    up = np.zeros(20)
    np.add.at(up, found.items.sources, np.maximum(found.items.coefficients, 0))
    expected = [w * rank_weight(len(bad), n_items) for w, bad in zip(pairs.weights, pushed, strict=True)]
    np.testing.assert_allclose(up, expected, rtol=1e-5)
    data = lists, pairs.items, pairs.weights, pushed
    assert found.loss == pytest.approx(reference.objective(*data), rel=1e-5)
    U, C, V, w = (reference.gradient(part, *data) for part in (reference.U, reference.C, reference.V, reference.w))
    table = factors.queries.bags.table
    engine = BlockedEngine(WholeCatalogue(most=n_items), rank_weights(n_items), 1000, Executor(1))
    engine.epoch(factors, pairs, np.random.default_rng(0))
    columns = [(0, N, 0.3, 1.5)]
    for rows, before, slope in ((slice(0, n_items), reference.U, U), (slice(n_items, n_items + D), reference.C, C)):
        stepped, squares = adagrad(before, np.zeros((len(before), 1)), slope, columns)
        np.testing.assert_allclose(table.values[rows, :N], stepped, atol=1e-4)
        np.testing.assert_allclose(table.accumulators[rows], squares, rtol=1e-3, atol=1e-6)
    stepped = adagrad(reference.V, np.zeros((n_items, 1)), V, columns)[0]
    np.testing.assert_allclose(factors.items.values[:, :N], stepped, atol=1e-4)
    weights = np.maximum(reference.w + 0.1 * 0.3 * np.sign(w), 0)
    np.testing.assert_allclose(table.weights[AGE_WEIGHTS].values, np.append(1.0, weights[1:]), atol=1e-5)


def test_rows_of_features_stay_in_the_ball():
    factors, _, pairs, _ = make(11, 60, n_features=D)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(11), 8, Executor(1))
    for epoch in range(20):
        engine.epoch(factors, pairs, np.random.default_rng(epoch))
    lengths = np.linalg.norm(factors.queries.bags.table.values[11 : 11 + D, :N], axis=1)
    assert 1.0 < lengths.max() <= 1.5 * (1 + 1e-6)


@pytest.mark.parametrize("sizes", [{}, {"QUERIES_PER_BLOCK": 4}, {"ITEMS_PER_SHARE": 6}])
def test_lists_are_those_of_all_scores(monkeypatch, sizes):
    for name, size in sizes.items():
        monkeypatch.setattr(f"slatewise.factors.scoring.{name}", size)
    factors, lists, _, reference = make(23, 17, based=True, n_features=D)
    expected = np.array([reference.scores(one) for one in lists])
    found = Cascade((factors,)).top(np.arange(17), 5)
    np.testing.assert_array_equal(found.items, np.argsort(-expected, axis=1, kind="stable")[:, :5])


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("name", ["alone", "based", "baskets"])
def test_answers_are_those_of_the_formula(rankers, monkeypatch, name, indexed):
    if indexed:
        monkeypatch.setattr("slatewise.factors.ranking.FEWEST_INDEXED", 1)
    ranker = rankers[name]
    ranker._frozen = None
    expected = slow(ranker, ASKED, OF_ASKED)
    assert not np.allclose(expected[:2], slow(ranker, ASKED, 0 * OF_ASKED)[:2], atol=1e-3)
    for given in (OF_ASKED, OF_ASKED.tolist(), csr_array(OF_ASKED), pandas.DataFrame(OF_ASKED), coo_array(OF_ASKED)):
        np.testing.assert_allclose(ranker.scores(ASKED, ranker.item_ids_, query_features=given), expected, atol=1e-5)
    order = np.argsort(-expected, axis=1, kind="stable")[:, :7]
    found = ranker.rank(ASKED, k=7, query_features=OF_ASKED)
    np.testing.assert_array_equal(found.ids, ranker.item_ids_[order])
    np.testing.assert_allclose(found.scores, np.take_along_axis(expected, order, axis=1), atol=1e-5)
    np.testing.assert_allclose(ranker.explain(ASKED, 7, query_features=OF_ASKED).score, found.scores, atol=1e-5)
    zeros = ranker.scores(ASKED, ranker.item_ids_, query_features=csr_array(OF_ASKED.shape))
    np.testing.assert_allclose(zeros, slow_scores(ranker, ASKED, getattr(ranker, "window_", None)), atol=1e-5)
    with pytest.warns(UserWarning, match="query_features: fit had 3 of them and these 3 queries come without"):
        np.testing.assert_array_equal(ranker.scores(ASKED, ranker.item_ids_), zeros)


def test_vectors_have_them_too(rankers):
    alone = rankers["alone"]
    products = alone.query_vectors(ASKED, query_features=OF_ASKED) @ alone.item_vectors().T
    repeats = slow_scores(alone, ASKED, 4) - slow_scores_without_repeats(alone)
    np.testing.assert_allclose(products, slow(alone, ASKED, OF_ASKED) - repeats, atol=1e-5)


def slow_scores_without_repeats(ranker):
    return ranker.query_vectors(ASKED, query_features=0 * OF_ASKED) @ ranker.item_vectors().T


def test_recall_takes_a_row_per_session_or_per_query(rankers, sessions, features):
    ranker = rankers["alone"]
    prefixes = Sessions.of(sessions).prefixes()
    own, wanted = features[prefixes.sessions], prefixes.next_items
    lists = ranker.rank(prefixes, k=5, query_features=own).ids
    share = (lists == wanted[:, None]).any(axis=1).mean()
    assert ranker.recall(sessions, ks=(5,), query_features=features)[5] == pytest.approx(share)
    assert ranker.recall(prefixes, ks=(5,), query_features=csr_array(own))[5] == pytest.approx(share)
    assert ranker.recall(list(prefixes), wanted, (5,), query_features=own)[5] == pytest.approx(share)
    with pytest.raises(ValueError, match="query_features: expected 150 rows, one for each query, found 149"):
        ranker.recall(sessions, query_features=features[1:])


def test_features_alone_are_something_known(rankers):
    ranker = rankers["alone"]
    n, n_items = ranker.n_components_, len(ranker.item_ids_)
    with pytest.warns(UserWarning, match="queries: 1 of 3 have no item that fit saw and get the order of the biases"):
        found = ranker.rank([[], [], ["i01"]], N_ITEMS, query_features=[[2.0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert found.nothing_known.tolist() == [False, True, False]
    V = ranker.item_factors_.astype(float)
    expected = 2.0 * V[:, :n] @ ranker.query_factors_[n_items, :n] + V[:, n]
    np.testing.assert_array_equal(found.ids[0], ranker.item_ids_[np.argsort(-expected, kind="stable")])
    assert ranker.rank([[]], query_features=[[1.0, 0, 0]]).nothing_known is None


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [None, "blend"])
def test_what_a_user_likes_is_learned(base):
    """The next item is of the user's own kind: from the items alone nobody can tell which."""
    rng = np.random.default_rng(0)
    users, firsts = rng.integers(0, 6, 400), rng.integers(0, 4, 400)
    sessions = [[f"b{first}", f"a{user}"] for first, user in zip(firsts, users, strict=True)]
    ids, given, asked = np.eye(6)[users], slice(0, 300), slice(300, 400)
    questions, wanted = [one[:1] for one in sessions[asked]], [one[1] for one in sessions[asked]]
    settings = {"n_components": 8, "epochs": 8, "learning_rate": 0.3, "max_norm": 1.5, "base": base}
    plain = make_session_ranker(**settings).fit(sessions[given])
    known = make_session_ranker(**settings).fit(sessions[given], query_features=csr_array(ids[given]))
    assert plain.recall(questions, wanted, (1,))[1] < 0.35
    assert known.recall(questions, wanted, (1,), query_features=ids[asked])[1] > 0.9


@pytest.mark.parametrize("name", KINDS)
def test_forms_and_threads_change_no_bit(rankers, sessions, features, name):
    twice = csr_array(features / 2)
    parts = np.repeat(twice.data, 2), np.repeat(twice.indices, 2), 2 * twice.indptr
    for threads, given in ((2, csr_array(features)), (8, csr_array(parts, shape=features.shape))):
        other = make_session_ranker(**{**SMALL, **KINDS[name], "n_jobs": threads}).fit(sessions, query_features=given)
        np.testing.assert_array_equal(rankers[name].item_factors_, other.item_factors_)
        np.testing.assert_array_equal(rankers[name].query_factors_, other.query_factors_)


def test_a_feature_that_nobody_has_says_nothing(sessions, features):
    wider = make_session_ranker(**SMALL, **KINDS["alone"]).fit(
        sessions, query_features=np.pad(features, ((0, 0), (0, 1)))
    )
    assert wider.query_factors_[N_ITEMS : N_ITEMS + D].any(axis=1).all()
    assert not wider.query_factors_[N_ITEMS + D].any()
    assert wider.n_query_features_ == D + 1


def test_empty_sessions_take_their_rows_along(sessions, features, rankers):
    with pytest.warns(UserWarning, match="sessions: 2 of 152 have no items and are left out"):
        other = make_session_ranker(**SMALL, **KINDS["alone"]).fit(
            [[], *sessions[:9], [], *sessions[9:]], query_features=np.insert(features, [0, 9], 7.0, axis=0)
        )
    np.testing.assert_array_equal(other.query_factors_, rankers["alone"].query_factors_)


def test_hashes_tell_them_apart(sessions, features):
    given = [None, features, 2 * features, features[:, ::-1]]
    found = [session_pairs(sessions, None, 4, query_features=one).arrays() for one in given]
    assert len({b"".join(part.tobytes() for part in arrays) for arrays in found}) == len(given)


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path, sessions, features):
    class Stop(Exception):
        pass

    def stop(report):
        if report.epoch == 2:
            raise Stop

    settings = {**SMALL, "window": 4, "max_norm": "auto", "checkpoint": tmp_path / "state"}
    with pytest.raises(Stop):
        make_session_ranker(**settings, callbacks=[stop]).fit(sessions, query_features=features)
    part = make_session_ranker(**settings).fit(sessions, query_features=features)
    whole = make_session_ranker(**{**settings, "checkpoint": None}).fit(sessions, query_features=features)
    np.testing.assert_array_equal(part.query_factors_, whole.query_factors_)
    np.testing.assert_array_equal(part.item_factors_, whole.item_factors_)


def test_further_sessions(sessions, features):
    ranker = make_session_ranker(**SMALL, window=4).partial_fit(sessions, query_features=features)
    before = ranker.query_factors_[N_ITEMS : N_ITEMS + D].copy()
    assert before.any()
    ranker.partial_fit([["a new one", "i01"], ["i02", "i03"]], query_features=[[1.0, 0, 0], [0, 0, 0]])
    after = ranker.query_factors_[N_ITEMS + 1 : N_ITEMS + 1 + D]
    np.testing.assert_array_equal(after[1:], before[1:])
    assert not np.array_equal(after[0], before[0])
    expected = slow(ranker, ASKED, OF_ASKED)
    np.testing.assert_allclose(ranker.scores(ASKED, ranker.item_ids_, query_features=OF_ASKED), expected, atol=1e-5)
    for given, message in ((None, "expected 3 columns, as in fit, found None"), (features[:, :2], "found 2")):
        with pytest.raises(ValueError, match=f"query_features: .*{message}"):
            ranker.partial_fit(sessions, query_features=given)
    with pytest.raises(ValueError, match="query_features: expected None, as in fit, found 3"):
        make_session_ranker(**SMALL).partial_fit(sessions).partial_fit(sessions, query_features=features)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_saved_and_read_back(tmp_path, rankers, name):
    ranker = rankers[name]
    ranker.save(tmp_path / "model")
    expected = ranker.rank(ASKED, query_features=OF_ASKED).scores
    for mmap in (False, True):
        back = slatewise.load(tmp_path / "model", mmap=mmap)
        assert back.n_query_features_ == D
        np.testing.assert_array_equal(back.rank(ASKED, query_features=OF_ASKED).scores, expected)
    state = read_model(tmp_path / "model")
    window = getattr(ranker, "window_", 1)
    changes = (
        {"n_features_in_": 2},
        {"n_query_features_": D + 1},
        {"n_query_features_": 0},
        {"n_query_features_": 3, "window_": window + 1},
        {"window_": 0},
    )
    for change in changes:
        write_model(tmp_path / "other", replace(state, values={**state.values, **change}))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")
    for missing in ("query_factors_", "query_steps_", "age_weights_", "repeat_weights_", "weight_steps_"):
        arrays = {**state.arrays, missing: np.delete(state.arrays[missing], 0, axis=0)}
        write_model(tmp_path / "other", replace(state, arrays=arrays))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")


def test_a_fit_that_fails_leaves_the_ranker_as_it_was(sessions, features):
    ranker = make_session_ranker(**SMALL, window=4).fit(sessions, query_features=features)
    before = ranker.rank(ASKED, query_features=OF_ASKED).scores
    with pytest.raises(ValueError, match="negatives"):
        ranker.set_params(factors__engine=Blocked(negatives=5)).fit(sessions)
    np.testing.assert_array_equal(ranker.rank(ASKED, query_features=OF_ASKED).scores, before)


# --- what is refused -------------------------------------------------------------------------------------------------


def huge(shape, value):
    out = np.zeros(shape)
    out[1, 2] = value
    return out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((2, D)), "expected 3 rows, one for each query, found 2"),
        (np.zeros((3, 2)), "expected 3 columns, as in fit, found 2"),
        (csr_array((3, 4)), "expected 3 columns, as in fit, found 4"),
        (np.zeros(3), "expected"),
        (np.zeros((3, D, 1)), "expected"),
        (huge((3, D), np.nan), "expected finite numbers, found nan at row 1, column 2"),
        (huge((3, D), -np.inf), "expected finite numbers, found -inf at row 1, column 2"),
        (huge((3, D), 1e300), r"expected finite float32 numbers, found 1e\+300 at row 1, column 2"),
        (csr_array(huge((3, D), np.nan)), "expected finite numbers, found nan"),
        (csr_array(huge((3, D), 1e300)), r"expected finite float32 numbers, found 1e\+300 at row 1, column 2"),
        ([["a", "b", "c"]] * 3, "expected"),
        (np.full((3, D), 1j), "expected"),
        ("abc", "expected"),
    ],
)
def test_bad_features_are_named(rankers, sessions, given, message):
    with pytest.raises(ValueError, match=f"query_features: .*{message}"):
        rankers["alone"].rank(ASKED, query_features=given)
    if "columns" not in message:
        with pytest.raises(ValueError, match=f"query_features: .*{message}"):
            make_session_ranker(**SMALL).fit(ASKED, query_features=given)


def test_where_they_mean_nothing_they_are_refused(sessions, features):
    with pytest.raises(ValueError, match="query_features: expected one column at least, found 0"):
        make_session_ranker(**SMALL).fit(sessions, query_features=np.zeros((150, 0)))
    plain = make_session_ranker(**SMALL).fit(sessions)
    for ask in (plain.rank, plain.recall, plain.explain, plain.query_vectors):
        with pytest.raises(ValueError, match="query_features: expected None where fit had none, found some"):
            ask(sessions, query_features=features)
