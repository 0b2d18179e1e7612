"""SessionRanker on sessions and baskets: what it answers is the formula, in whatever form they come."""

import signal
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import slatewise
from slatewise import SessionCooccurrence, SessionRanker, datasets
from slatewise.core.errors import ModelFileError
from slatewise.data import Sessions
from slatewise.factors.offsets import N_KNOTS
from slatewise.factors.pairs import hold_out_owners
from slatewise.factors.stages import Mixed, best_mixture
from slatewise.persistence.file import read_model, write_model
from slatewise.sessions import Blend
from slatewise.sessions.blend import SessionBlend
from slatewise.sessions.problem import session_pairs
from slatewise.sessions.sparse_scores import DEPTH
from tests.factors.flat import make_session_ranker
from tests.interrupted_fits import KILLED, exit_code

SMALL = {"n_components": 6, "epochs": 3, "learning_rate": 0.3, "max_norm": 1.5, "n_jobs": 1}
N_ITEMS = 30
ASKED = [["i01", "i02", "i01"], ["i03"], ["i09", "i08", "i07", "i06", "i05", "i04", "i03", "i02", "i01"]]


def named(numbers):
    return [f"i{number:02d}" for number in numbers]


@pytest.fixture(scope="module")
def sessions():
    made = datasets.make_sessions(150, N_ITEMS, n_clusters=5, random_state=0).sessions
    return [named(one) for one in made]


@pytest.fixture(scope="module")
def ranker(sessions):
    return make_session_ranker(**SMALL, window=4, base=None).fit(sessions)


@pytest.fixture(scope="module")
def based(sessions):
    return make_session_ranker(**SMALL, window=4).fit(sessions)


@pytest.fixture(scope="module")
def counted(sessions):
    return make_session_ranker(**SMALL, window=4, base=SessionCooccurrence(window=3), validation_fraction=0.0).fit(
        sessions
    )


@pytest.fixture(scope="module")
def blended(sessions):
    return make_session_ranker(**SMALL, window=4, base=Blend(window=6)).fit(sessions)


@pytest.fixture(scope="module")
def baskets(sessions):
    return make_session_ranker(**SMALL, window=None).fit(sessions)


def slow_scores(ranker, asked, window):
    """The formula, from what was learned."""
    n, ids = ranker.n_components_, ranker.item_ids_.tolist()
    U, V = ranker.query_factors_.astype(float), ranker.item_factors_.astype(float)
    weights, repeats = ranker.age_weights_, ranker.repeat_weights_
    out = []
    for one in asked:
        held = [ids.index(item) for item in (one[-window:] if window else sorted(set(one)))]
        scale = 1.0 if window else max(len(held), 1) ** -0.5
        query = sum((scale * weights[age if window else 0] * U[item, :n] for age, item in enumerate(held[::-1])), 0.0)
        scores = V[:, :n] @ np.broadcast_to(query, n) + V[:, n]
        for age, item in enumerate(held[::-1]):
            scores[item] += repeats[age if window else 0]
        out.append(scores)
    return np.array(out) + base_scores(ranker, asked)


def base_scores(ranker, asked):
    """What the base says, by a line through knots."""
    if not hasattr(ranker, "base_"):
        return 0.0
    found, steps = ranker.base_.scores(asked, ranker.item_ids_), ranker.spline_steps_
    levels = np.log1p(9 * np.maximum(found, 0) / found.max(axis=1, keepdims=True)) / np.log(10)
    knots = np.interp(levels, np.linspace(0, 1, N_KNOTS), np.cumsum(steps.astype(float)))
    assert ((found > 0).sum(axis=1) <= DEPTH).all()
    return np.where(found > 0, knots, 0.0)


def check_lists(ranker, expected, **switches):
    found = ranker.rank(ASKED, k=7, **switches)
    order = np.argsort(-expected, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(found.ids, ranker.item_ids_[order])
    np.testing.assert_allclose(found.scores, np.take_along_axis(expected, order, axis=1), atol=1e-5)


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("name", "window"), [("ranker", 4), ("based", 4), ("counted", 4), ("blended", 4), ("baskets", None)]
)
def test_answers_are_those_of_the_formula(request, monkeypatch, name, window, indexed):
    if indexed:
        monkeypatch.setattr("slatewise.factors.ranking.FEWEST_INDEXED", 1)
    model = clone_of(request.getfixturevalue(name))
    expected = slow_scores(model, ASKED, window)
    np.testing.assert_allclose(model.scores(ASKED, model.item_ids_), expected, atol=1e-5)
    check_lists(model, expected)
    seen = np.array([[item in one for item in model.item_ids_] for one in ASKED])
    check_lists(model, np.where(seen, -np.inf, expected), exclude_seen=True)
    last = np.array([[item == one[-1] for item in model.item_ids_] for one in ASKED])
    check_lists(model, np.where(last, -np.inf, expected), exclude_seen="last")
    check_lists(model, np.where(last, -np.inf, expected), exclude=[[one[-1]] for one in ASKED])
    some = named(range(2, 30, 3))
    inside = np.isin(model.item_ids_, some)
    check_lists(model, np.where(inside, expected, -np.inf), candidates=some)
    own = np.random.default_rng(0).random(expected.shape) < 0.6
    check_lists(model, np.where(own, expected, -np.inf), candidates=csr_array(own))
    check_lists(model, np.where(own & ~seen, expected, -np.inf), candidates=csr_array(own), exclude_seen=True)
    parts = model.explain(ASKED, k=7)
    np.testing.assert_allclose(parts.score, model.rank(ASKED, k=7).scores, atol=1e-5)


def clone_of(ranker):
    """Return the same model without what it has made so far."""
    other = clone(ranker)
    for name, value in vars(ranker).items():
        if name.endswith("_"):
            setattr(other, name, value)
    return other


def test_few_candidates_make_short_lists(ranker):
    found = ranker.rank(ASKED, k=4, candidates=[["i01"], ["i05", "i06"], []])
    assert found[0].tolist() == ["i01"]
    assert [len(one) for one in found.lists()] == [1, 2, 0]
    with pytest.raises(ValueError, match="candidates: expected items for each of 3 queries, found 2"):
        ranker.rank(ASKED, candidates=[["i01"], ["i02"]])
    with pytest.raises(ValueError, match="exclude_seen: expected True, False or 'last', found 'first'"):
        ranker.rank(ASKED, exclude_seen="first")


@pytest.mark.parametrize("name", ["ranker", "based"])
def test_one_session_has_the_list_it_has_among_many(request, name, sessions):
    ranker = request.getfixturevalue(name)
    together = ranker.rank(sessions, k=6)
    for number in (0, 7, 20):
        alone = ranker.rank([sessions[number]], k=6)
        np.testing.assert_array_equal(alone.ids[0], together.ids[number])
        np.testing.assert_allclose(alone.scores[0], together.scores[number], atol=1e-5)


def test_every_form_asks_the_same(ranker):
    frame = pandas.DataFrame({"session": ["x", "x", "y", "x"], "item": ["i01", "i02", "i03", "i01"]})
    expected = ranker.rank(ASKED[:2], k=4).ids
    for asked in (frame, Sessions.of(ASKED[:2]), [np.array(one) for one in ASKED[:2]]):
        np.testing.assert_array_equal(ranker.rank(asked, k=4).ids, expected)
    assert ranker.rank(frame, k=4).query_ids.tolist() == ["x", "y"]
    np.testing.assert_array_equal(ranker.rank("i03", k=4).ids, expected[1:])
    np.testing.assert_array_equal(ranker.rank(["i03"], k=4).ids, expected[1:])


def test_recall_of_what_came_next(ranker, sessions):
    prefixes = [one[:place] for one in sessions for place in range(1, len(one))]
    wanted = np.array([one[place] for one in sessions for place in range(1, len(one))])
    lists = ranker.rank(prefixes, k=10).ids
    for k, share in ranker.recall(sessions, ks=(1, 10)).items():
        assert share == pytest.approx((lists[:, :k] == wanted[:, None]).any(axis=1).mean())
    assert ranker.recall(prefixes, wanted, (10,)) == ranker.recall(sessions, ks=(10,))
    assert ranker.recall(Sessions.of(sessions).prefixes(), ks=(10,)) == ranker.recall(
        sessions, ks=(10,)
    )  # no beginnings of these
    hidden = ranker.rank(prefixes, k=10, exclude_seen=True)
    found = np.mean([item in one for item, one in zip(wanted, hidden.lists(), strict=True)])
    assert ranker.recall(sessions, ks=(10,), exclude_seen=True)[10] == pytest.approx(found)
    assert ranker.recall(sessions, ks=(10,), exclude=prefixes)[10] == pytest.approx(found)
    assert ranker.recall(prefixes, wanted, ks=(N_ITEMS,), exclude=[[item] for item in wanted]) == {N_ITEMS: 0.0}


def test_nothing_known_is_answered_by_bias_and_marked(ranker):
    with pytest.warns(UserWarning, match="queries: 2 of 4") as told:
        found = ranker.rank([["i01"], ["strange"], ["strange", "i02"], []], k=N_ITEMS, unknown="ignore")
    assert [str(one.message).partition(";")[0] for one in told] == [
        "queries: 2 of 4 ids were not seen in fit and are left out of their sessions",
        "queries: 2 of 4 have no item that fit saw and get the order of the biases",
    ]
    assert found.nothing_known.tolist() == [False, True, False, True]
    biases = ranker.item_factors_[:, ranker.n_components_]
    for row in (1, 3):
        np.testing.assert_array_equal(found.ids[row], ranker.item_ids_[np.argsort(-biases, kind="stable")])
    np.testing.assert_array_equal(found.ids[2], ranker.rank([["i02"]], k=N_ITEMS).ids[0])
    assert ranker.rank([["i01"]]).nothing_known is None
    with pytest.raises(ValueError, match="queries: expected ids seen in fit, found 'strange' at place 1 of query 1"):
        ranker.rank([["i01"], ["i02", "strange"]])


def test_items_after_which_nothing_came_say_nothing():
    ranker = make_session_ranker(**SMALL).fit([["a", "b"], ["a", "b"], ["c", "b"], ["b", "last"]])
    assert not ranker.query_factors_[ranker.item_ids_ == "last", : ranker.n_components_].any()


# --- training --------------------------------------------------------------------------------------------------------


def test_what_was_before_the_last_item_counts():
    """The next item is the one before the last: whoever sees the last alone can only guess."""
    rng = np.random.default_rng(0)
    sessions = [[f"a{a}", f"x{x}", f"b{a}"] for a, x in rng.integers(0, [8, 3], (400, 2))]
    asked, wanted = [one[:2] for one in sessions[300:]], [one[2] for one in sessions[300:]]
    found = {
        window: make_session_ranker(8, epochs=6, window=window, base=None)
        .fit(sessions[:300])
        .recall(asked, wanted, (1,))[1]
        for window in (1, 2)
    }
    assert found[2] > 0.9
    assert found[1] < 0.3


def test_what_comes_again_is_learned_and_so_is_what_never_does():
    rng = np.random.default_rng(0)
    again = [[int(a), int(b), int(a)] for a, b in rng.permuted(np.tile(np.arange(40), (300, 1)), axis=1)[:, :2]]
    ranker = make_session_ranker(4, epochs=6, window=3).fit(again)
    assert ranker.repeat_weights_[0] < 0 < ranker.repeat_weights_[1]
    assert ranker.recall([[5, 6], [7, 8]], [5, 7], (1,)) == {1: 1.0}


def test_weights_of_sessions(sessions):
    weights = np.arange(len(sessions)) % 2
    some = make_session_ranker(**SMALL).fit(sessions, sample_weight=weights)
    kept = [one for one, weight in zip(sessions, weights, strict=True) if weight]
    pairs, other = session_pairs(sessions, weights, 20), session_pairs(kept, None, 20)
    assert len(pairs.queries) == len(other.queries)
    np.testing.assert_array_equal(pairs.item_ids[pairs.items], other.item_ids[other.items])
    assert len(some.item_ids_) == len(pairs.item_ids)
    with pytest.raises(ValueError, match="sample_weight"):
        make_session_ranker(**SMALL).fit(sessions, sample_weight=np.ones(3))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"base": None},
        {"window": None},
        {"base": SessionCooccurrence(window=3)},
    ],
)
def test_forms_and_threads_change_no_bit(sessions, settings):
    frame = pandas.DataFrame(
        [(number, item) for number, one in enumerate(sessions) for item in one], columns=["session", "item"]
    )
    given = {**SMALL, "epochs": 2, **settings}
    one = make_session_ranker(**given).fit(sessions)
    for threads, data in ((2, Sessions.of(sessions)), (8, frame)):
        other = make_session_ranker(**{**given, "n_jobs": threads}).fit(data)
        np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
        np.testing.assert_array_equal(one.query_factors_, other.query_factors_)


def test_a_basket_has_no_order(sessions, baskets):
    rng = np.random.default_rng(0)
    shuffled = [[*rng.permutation(one).tolist(), one[0]] for one in sessions]
    other = make_session_ranker(**SMALL, window=None).fit([set(one) for one in shuffled])
    np.testing.assert_array_equal(baskets.item_factors_, other.item_factors_)
    assert baskets.age_weights_.tolist() == [1.0]
    again = baskets.rank([["i03", "i01", "i03"]], k=5)
    np.testing.assert_array_equal(again.scores, baskets.rank([["i01", "i03"]], k=5).scores)
    with pytest.raises(ValueError, match="items: expected one item per basket, found None"):
        baskets.recall(sessions)


def test_sessions_are_held_out_whole(sessions):
    pairs = session_pairs(sessions, None, 4)
    order = np.arange(len(sessions))[::-1]
    used, held = hold_out_owners(pairs, pairs.owners[pairs.queries], order, 0.2, 5)
    assert held is not None
    assert 0.15 < len(held.queries) / len(pairs.queries) < 0.3
    assert not set(pairs.owners[held.queries]) & set(pairs.owners[used.queries])


def test_auto_finds_steps(sessions):
    found = make_session_ranker(**{**SMALL, "learning_rate": "auto", "max_norm": "auto"}).fit(sessions)
    given = make_session_ranker(**{**SMALL, "learning_rate": found.learning_rate_, "max_norm": found.max_norm_}).fit(
        sessions
    )
    np.testing.assert_array_equal(found.query_factors_, given.query_factors_)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"base": None}, (0.6, 2.5)), ({"window": None}, (0.6, 2.5)), ({"base": SessionCooccurrence()}, (0.3, 1.5))],
)
def test_of_many_sessions_nothing_is_searched_for(sessions, monkeypatch, settings, expected):
    """A sum of items that is all there is wants larger norms than one on a base, or one of few sessions."""
    ranker = make_session_ranker(4, epochs=1, validation_fraction=0, **settings).fit(sessions)
    assert (ranker.learning_rate_, ranker.max_norm_) == (0.3, 1.5)
    monkeypatch.setattr("slatewise.sessions.problem.MOST_SEARCHED", 0)
    ranker = make_session_ranker(4, epochs=1, **settings).fit(sessions)
    assert (ranker.learning_rate_, ranker.max_norm_) == expected


def test_further_sessions(sessions):
    ranker = make_session_ranker(**SMALL, window=4).partial_fit(sessions)
    before, weights = clone_of(ranker), ranker.age_weights_
    ranker.partial_fit([["new", "i01"], ["i02", "newer"]])
    assert {"new", "newer"} < set(ranker.item_ids_)
    assert ranker.age_weights_[0] == 1.0
    np.testing.assert_allclose(ranker.age_weights_, weights, atol=0.1)
    old, untouched = np.isin(ranker.item_ids_, before.item_ids_), ~np.isin(ranker.item_ids_, ["i01", "i02", "new"])
    here = ranker.query_factors_[: len(old)][old & untouched]
    np.testing.assert_array_equal(here, before.query_factors_[: len(before.item_ids_)][untouched[old]])
    ranker.rank([["new", "i03"]], k=3)
    with pytest.raises(ValueError, match="window: expected 4, that of the tables to go on with, found 5"):
        ranker.set_params(window=5).partial_fit(sessions)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "sampled"}, "Factors.engine: expected 'blocked', 'gpu' or Blocked"),
        ({"negatives": 5}, "factors: expected negatives='all' for sessions"),
        ({"window": 0}, "window: expected a whole number from 1"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 to 0.99, found 1.0"),
    ],
)
def test_what_sessions_do_not_go_with(sessions, settings, message):
    with pytest.raises(ValueError, match=message):
        make_session_ranker(**{**SMALL, **settings}).fit(sessions)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([["a"], ["b"]], "sessions: expected one of two items at least, found none in 2"),
        ([[]], "sessions: expected items, found none in 1 sessions"),
        ([["a", "a"], ["a", "a"]], "items: expected at least two to rank, found 1"),
        ([["a", 1]], "sessions: expected ids, all whole numbers or all strings, found int and str"),
        ([[1.5, 2.5]], "sessions: expected ids, all whole numbers or all strings"),
        ([["a", "b"], "c"], "sessions: expected a list of ids in each place, found str in place 1"),
    ],
)
def test_bad_sessions_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        make_session_ranker(**SMALL).fit(given)


def test_sessions_without_items_are_left_out(sessions):
    with pytest.warns(UserWarning, match="sessions: 1 of 151 have no items and are left out"):
        make_session_ranker(**{**SMALL, "epochs": 1}).fit([*sessions, []])


def test_a_session_of_a_million_items(ranker, baskets):
    long = np.tile(ranker.item_ids_, 1_000_000 // N_ITEMS + 1)[:1_000_000]
    np.testing.assert_array_equal(ranker.rank([long]).ids, ranker.rank([long[-4:]]).ids)
    np.testing.assert_array_equal(baskets.rank([long]).ids, baskets.rank([long[:N_ITEMS]]).ids)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ranker", "based", "counted", "baskets"])
def test_saved_and_read_back(request, tmp_path, name):
    ranker = request.getfixturevalue(name)
    ranker.save(tmp_path / "model")
    for mmap in (False, True):
        back = slatewise.load(tmp_path / "model", mmap=mmap)
        assert getattr(back, "window_", None) == getattr(ranker, "window_", None)
        assert back.rank(ASKED).scores.tobytes() == ranker.rank(ASKED).scores.tobytes()
    state = read_model(tmp_path / "model")
    for change in ({"window_": 5}, {"window_": 0}, {"parts_": []}, {"weights_": [2.0]}):
        write_model(tmp_path / "other", replace(state, values={**state.values, **change}))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_killed_and_resumed_it_gives_the_same_bits(tmp_path):
    state = tmp_path / "state"
    estimator, data = KILLED["prefixes"]
    whole = clone(estimator).fit(*data())
    for epoch in (2, 3):
        assert exit_code("prefixes", state, epoch) == -signal.SIGKILL
    part = clone(estimator).fit(*data(), checkpoint=state)
    np.testing.assert_array_equal(whole.item_factors_, part.item_factors_)
    np.testing.assert_array_equal(whole.query_factors_, part.query_factors_)


def test_what_was_learned_from_is_told_apart(sessions):
    one, other = (session_pairs(sessions, None, window) for window in (4, 5))
    assert [part.tobytes() for part in one.arrays()] != [part.tobytes() for part in other.arrays()]


# --- a base ----------------------------------------------------------------------------------------------------------


def test_weight_zero_is_the_base_alone(sessions, monkeypatch):
    monkeypatch.setattr("slatewise.factors.stages.WEIGHTS", ())
    ranker = make_session_ranker(**SMALL).fit(sessions)
    assert (ranker.parts_, ranker.weights_) == (["base"], [1.0])
    alone = SessionBlend().fit(sessions)
    found, expected = ranker.rank(ASKED, k=N_ITEMS), alone.scores(ASKED, ranker.item_ids_)
    for row, scores in enumerate(expected):
        known = int((scores > 0).sum())
        order = np.argsort(-scores, kind="stable")[:known]
        np.testing.assert_array_equal(found.ids[row, :known], ranker.item_ids_[order])
    factors = ranker.item_factors_.copy()
    ranker.partial_fit([["i01", "new"]])
    np.testing.assert_array_equal(ranker.item_factors_[:N_ITEMS], factors)
    assert ranker.scores([["i01"]], ["new"])[0, 0] > 1  # the base has learned it


def test_no_weight_is_no_base(sessions, monkeypatch, tmp_path):
    monkeypatch.setattr("slatewise.factors.stages.WEIGHTS", (None,))
    monkeypatch.setattr("slatewise.factors.stages.reached", lambda cascade, held, executor: next(figures))
    figures = iter([np.zeros(9), np.ones(9)])
    ranker = make_session_ranker(**SMALL, window=4).fit(sessions)
    assert not hasattr(ranker, "base_")
    assert (ranker.parts_, ranker.weights_) == (["factors"], [1.0])
    expected = slow_scores(ranker, ASKED, 4)
    check_lists(ranker, expected)
    ranker.save(tmp_path / "model")
    check_lists(slatewise.load(tmp_path / "model"), expected)


def judged(weight, places):
    """What is reached where pairs have their item at the places given, and the others nowhere, as at -1."""
    gains, places = np.zeros(400), np.array(places)
    gains[: len(places)] = np.where(places < 0, 0.0, 1 / np.log2(np.abs(places) + 2.0))
    return Mixed(weight, (None, None), gains)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (([3] * 200, [2] * 200, [1] * 200, [0] * 180), 0.5),  # recall is not to fall
        (([3] * 200, [0] * 197 + [-1] * 3 + [0, 0], [0] * 200, [0] * 200), 0.1),  # by more than may be chance
        (([3] * 200, [4] * 210, [6] * 220, [9] * 230), 0.0),  # and what is found is to be further up
        (([3] * 200, [1] * 200, [0] * 200, [0] * 200), 0.5),
        (([3] * 200, [0] * 150 + [2] * 50, [0] * 200, [0] * 200), 0.1),  # half of the gain is enough
    ],
)
def test_the_rule_of_choice(places, expected):
    assert best_mixture(*map(judged, (0, 0.1, 0.5, 1.0), places)).weight == expected


def test_further_sessions_with_a_base(sessions):
    ranker = make_session_ranker(**SMALL, window=4, validation_fraction=0.0).fit(sessions[:100])
    before = clone_of(ranker)
    ranker.partial_fit([*sessions[100:], ["new", "i01"], ["i02", "new"]])
    assert ranker.n_epochs_ == before.n_epochs_ + 1
    n, old = ranker.n_components_, np.isin(ranker.item_ids_, before.item_ids_)
    assert not np.array_equal(ranker.item_factors_[old, :n], before.item_factors_[:, :n])
    expected = SessionBlend(window=4).fit(sessions[:100])
    expected.partial_fit([*sessions[100:], ["new", "i01"], ["i02", "new"]])
    np.testing.assert_array_equal(ranker.base_.rank(ASKED).scores, expected.rank(ASKED).scores)
    np.testing.assert_allclose(ranker.scores(ASKED, ranker.item_ids_), slow_scores(ranker, ASKED, 4), atol=1e-5)


def test_without_factors_it_is_the_base(sessions, tmp_path):
    ranker = SessionRanker(None, window=6).fit(sessions[:100])
    alone = SessionBlend(window=6).fit(sessions[:100])
    np.testing.assert_array_equal(ranker.rank(ASKED).scores, alone.rank(ASKED).scores)
    assert ranker.parts_ == ["base"]
    assert not hasattr(ranker, "item_factors_")
    ranker.save(tmp_path / "model")
    back = slatewise.load(tmp_path / "model")
    for one in (back, ranker, alone):
        one.partial_fit(sessions[100:])
    np.testing.assert_array_equal(ranker.rank(ASKED).scores, alone.rank(ASKED).scores)
    np.testing.assert_array_equal(back.rank(ASKED).scores, alone.rank(ASKED).scores)
    for refused in ({"sample_weight": np.ones(150)}, {"query_features": np.ones((150, 2))}):
        with pytest.raises(ValueError, match=f"{next(iter(refused))}: expected None without factors"):
            ranker.fit(sessions, **refused)
    with pytest.raises(ValueError, match="base: expected one without factors, found None"):
        SessionRanker(None, base=None).fit(sessions)


def test_sessions_sorted_by_id_warn(sessions):
    with pytest.warns(UserWarning, match="sessions: the items of .* are sorted by id"):
        make_session_ranker(**SMALL, base=None).fit([sorted(set(one)) for one in sessions])


def test_a_base_is_fitted_apart_from_the_one_given(sessions):
    given = SessionCooccurrence(window=3)
    ranker = make_session_ranker(**SMALL, base=given, validation_fraction=0.0).fit(sessions)
    assert not hasattr(given, "item_ids_")
    np.testing.assert_array_equal(ranker.base_.rank(ASKED).scores, clone(given).fit(sessions).rank(ASKED).scores)
    for wrong in ("neighbors", 3, make_session_ranker()):
        with pytest.raises(ValueError, match="base: expected 'blend' or Blend"):
            make_session_ranker(base=wrong).fit(sessions)


def test_a_base_that_has_parts_is_saved_and_goes_on(tmp_path, sessions, blended):
    ranker = clone_of(blended)
    ranker.save(tmp_path / "model")
    back = slatewise.load(tmp_path / "model")
    assert repr(back.base) == repr(ranker.base)
    np.testing.assert_array_equal(back.rank(ASKED, 9).scores, ranker.rank(ASKED, 9).scores)
    before = ranker.base_.rank(ASKED, 9).scores
    for one in (back, ranker):
        one.partial_fit([*sessions[:9], ["new", "i01"]])
    np.testing.assert_array_equal(back.rank([["new"]], 9).scores, ranker.rank([["new"]], 9).scores)
    np.testing.assert_array_equal(blended.base_.rank(ASKED, 9).scores, before)


def test_a_base_out_of_a_file(tmp_path, counted):
    counted.save(tmp_path / "model")
    back = slatewise.load(tmp_path / "model")
    assert repr(back.base) == repr(counted.base)
    state = read_model(tmp_path / "model")
    part = state.values["base_"]
    changes = (
        {"base_": None},
        {"base_": 3},
        {"base_": {**part, "estimator": "LatentRanker"}},
        {"base_": {**part, "estimator": "SessionNeighbors"}},
        {"base_": {**part, "version": 9}},
        {"base_": {**part, "params": {**part["params"], "window": -1}}},
        {"base_": {name: value for name, value in part.items() if name != "values"}},
        {"weights_": [1.0, -1.0]},
    )
    for change in changes:
        write_model(tmp_path / "other", replace(state, values={**state.values, **change}))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")
    for name in ("base_.item_ids_", "base_.pair_items_"):
        arrays = {**state.arrays, name: state.arrays[name][::-1].copy()}
        write_model(tmp_path / "other", replace(state, arrays=arrays))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")


def test_methods_that_need_factors_are_absent_without_them(sessions):
    need = {"explain", "export_index", "item_vectors", "query_vectors", "similar_items"}
    alone = SessionRanker(None)
    for ranker in (alone, alone.fit(sessions)):
        assert not need & set(dir(ranker))
        assert not any(hasattr(ranker, name) for name in need)
    assert need <= set(dir(SessionRanker()))
    assert need <= set(dir(SessionRanker))
