"""What all rankers of sessions promise: every form of query, every switch, more sessions later, files, threads."""

import copy
import doctest
import pickle
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import slatewise
from slatewise import SessionCooccurrence, SessionNeighbors, datasets
from slatewise.core.errors import ModelFileError
from slatewise.data import Sessions
from slatewise.sessions.blend import SessionBlend

RANKERS = [SessionNeighbors, SessionCooccurrence, SessionBlend]
LOG = datasets.make_sessions(900, 70, n_clusters=7, random_state=0).sessions
QUERIES = [items.tolist() for items in datasets.make_sessions(40, 50, n_clusters=7, random_state=5).sessions]
NUMBERS = {"decay": 0.8, "last_weight": 0.5, "repeat_weight": 2.0}
FIXED = {SessionNeighbors: NUMBERS, SessionCooccurrence: NUMBERS, SessionBlend: {}}
SETTLED = {
    SessionNeighbors: {**NUMBERS, "reach": 3.0, "k": 20},
    SessionCooccurrence: {**NUMBERS, "backward": 0.5, "row_power": 0.5},
}


def names(sessions):
    return [[f"item {number}" for number in items] for items in sessions]


@pytest.fixture(scope="module", params=RANKERS, ids=lambda ranker: ranker.__name__)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def ranker(kind):
    return kind(**FIXED[kind]).fit(LOG)


def learned(ranker):
    return {name: getattr(ranker, name) for name in ranker._learned}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
        assert np.asarray(value).dtype == np.asarray(other[name]).dtype, name


# --- queries ---------------------------------------------------------------------------------------------------------


def test_every_form_of_the_same_sessions_has_the_same_answer(ranker):
    expected = ranker.rank(QUERIES, 6)
    events = pandas.DataFrame(
        {"session": np.repeat(np.arange(40), [len(query) for query in QUERIES]), "item": np.concatenate(QUERIES)}
    )
    for form in (Sessions.of(QUERIES), [tuple(query) for query in QUERIES], events, [np.array(q) for q in QUERIES]):
        found = ranker.rank(form, 6)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.scores, expected.scores)
    assert expected.query_ids.tolist() == list(range(40))
    assert expected.nothing_known is None
    one = ranker.rank(7, 3)
    assert one.query_ids.tolist() == [7]
    np.testing.assert_array_equal(one.ids, ranker.rank([[7]], 3).ids)
    np.testing.assert_array_equal(ranker.rank([7, 9], 3).ids, ranker.rank([[7], [9]], 3).ids)
    assert len(ranker.rank([], 3)) == 0


def test_rankings_do_not_depend_on_other_queries(ranker):
    together = ranker.rank(QUERIES, 8)
    for place in (0, 17, 39):
        alone = ranker.rank([QUERIES[place]], 8)
        np.testing.assert_array_equal(alone.ids[0], together.ids[place])
        np.testing.assert_array_equal(alone.scores[0], together.scores[place])


def test_scores_are_what_rank_sorts_by(ranker):
    found, every = ranker.rank(QUERIES, 70), ranker.scores(QUERIES, ranker.item_ids_)
    np.testing.assert_array_equal(found.scores, -np.sort(-every, axis=1))
    order = np.lexsort((np.broadcast_to(ranker.item_ids_, every.shape), -every), axis=1)
    np.testing.assert_array_equal(found.ids, ranker.item_ids_[order])
    with pytest.warns(UserWarning, match="items: 1 of 2 ids were not seen in fit and have the score -inf"):
        assert ranker.scores([[1]], [1, 999], unknown="ignore")[0, 1] == -np.inf


def test_nothing_known_is_answered_by_popularity_and_marked(ranker):
    popular = np.bincount(np.concatenate([np.unique(items) for items in LOG]))
    most = np.lexsort((np.arange(len(popular)), -popular))[:4]
    with pytest.warns(UserWarning, match="queries: 1 of 2 have no item that fit saw and get the most popular items"):
        found = ranker.rank([[1, 2], []], 4)
    assert found.nothing_known.tolist() == [False, True]
    assert found.top(2).nothing_known.tolist() == [False, True]
    np.testing.assert_array_equal(found.ids[1], most)
    np.testing.assert_allclose(found.scores[1], popular[most] / 900 - 1)
    with pytest.warns(UserWarning, match="queries: ") as caught:
        found = ranker.rank([[999], [1, 999]], 4, unknown="ignore")
    assert [str(one.message).split(";")[0] for one in caught] == [
        "queries: 2 of 3 ids were not seen in fit and are left out of their sessions",
        "queries: 1 of 2 have no item that fit saw and get the most popular items",
    ]
    np.testing.assert_array_equal(found.ids, [most, ranker.rank([[1]], 4).ids[0]])
    with pytest.raises(ValueError, match="queries: expected ids seen in fit, found 999 at place 1 of query 0"):
        ranker.rank([[1, 999]], 4)


# --- switches --------------------------------------------------------------------------------------------------------


def without(ranker, hidden, k, only=None):
    """Filter the whole list by hand."""
    every = ranker.rank(QUERIES, 70)
    keep = [
        [place for place, item in enumerate(row) if item not in hide and (only is None or item in only[number])][:k]
        for number, (row, hide) in enumerate(zip(every.ids.tolist(), hidden, strict=True))
    ]
    rows = zip(every.ids, every.scores, keep, strict=True)
    return [(ids[places].tolist(), scores[places].tolist()) for ids, scores, places in rows]


def listed(found):
    return [(found[place].tolist(), found.list_scores(place).tolist()) for place in range(len(found))]


def test_what_is_hidden_is_not_shown(ranker):
    nothing = [[] for _ in QUERIES]
    assert listed(ranker.rank(QUERIES, 9)) == without(ranker, nothing, 9)
    assert listed(ranker.rank(QUERIES, 9, exclude_seen=True)) == without(ranker, QUERIES, 9)
    assert listed(ranker.rank(QUERIES, 9, exclude_seen="last")) == without(ranker, [q[-1:] for q in QUERIES], 9)
    others = [[number, 0, 3] for number in range(40)]
    both = [seen + more for seen, more in zip(QUERIES, others, strict=True)]
    assert listed(ranker.rank(QUERIES, 9, exclude=others, exclude_seen=True)) == without(ranker, both, 9)
    matrix = csr_array((np.ones(120), (np.repeat(np.arange(40), 3), np.ravel(others))), shape=(40, 70))
    assert listed(ranker.rank(QUERIES, 9, exclude=matrix)) == without(ranker, others, 9)


def test_only_candidates_are_shown(ranker):
    nothing = [[] for _ in QUERIES]
    some = list(range(0, 70, 3))
    assert listed(ranker.rank(QUERIES, 9, candidates=some)) == without(ranker, nothing, 9, [some] * 40)
    own = [[number, number + 1, 5] for number in range(40)]
    assert listed(ranker.rank(QUERIES, 9, candidates=own)) == without(ranker, nothing, 9, own)
    found = ranker.rank(QUERIES, 9, candidates=own, exclude_seen=True)
    assert listed(found) == without(ranker, QUERIES, 9, own)
    assert found.offsets is not None


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"k": 0}, "k: expected a whole number from 1 to the 70 items there are, found 0"),
        ({"k": 71}, "k: expected a whole number from 1 to the 70 items there are, found 71"),
        ({"exclude_seen": 1.5}, "exclude_seen: expected True, False or 'last', found 1.5"),
        ({"unknown": "drop"}, "unknown: expected 'error' or 'ignore', found 'drop'"),
        ({"candidates": [["a"]] * 40}, "candidates: expected ids as in fit, whole numbers"),
    ],
)
def test_switches_that_cannot_be(ranker, switch, message):
    with pytest.raises(ValueError, match=message):
        ranker.rank(QUERIES, **switch)


def test_recall_is_that_of_the_lists(ranker):
    prefixes = Sessions.of(QUERIES).prefixes()
    found = ranker.rank(prefixes, 20, exclude_seen="last").ids
    hits = found == prefixes.next_items[:, None]
    expected = {k: pytest.approx(hits[:, :k].any(axis=1).mean()) for k in (1, 20)}
    assert ranker.recall(prefixes, ks=[1, 20], exclude_seen="last") == expected
    assert ranker.recall(list(prefixes), prefixes.next_items, [1, 20], exclude_seen="last") == expected
    assert ranker.recall([[1]], [2], [200])[200] == 1.0
    assert ranker.recall(QUERIES, ks=[1, 20], exclude_seen="last") == expected
    with pytest.raises(ValueError, match="sessions: expected a list of ids in each place, found int"):
        ranker.recall([1, 2])
    with pytest.warns(UserWarning, match="count as not found"):
        assert ranker.recall([[1]], [999], [70], unknown="ignore") == {70: 0.0}


# --- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SETTLED)
@pytest.mark.parametrize("cuts", [[450], [1, 2, 899]])
def test_sessions_that_come_later_are_learned_as_if_they_had_been_there(kind, cuts):
    """Names become longer, and sort between those that were there."""
    sessions, queries = names(LOG), names(QUERIES)
    whole, parts = kind(**SETTLED[kind]).fit(sessions), kind(**SETTLED[kind])
    for start, end in zip([0, *cuts], [*cuts, len(sessions)], strict=True):
        parts.partial_fit(sessions[start:end])
    assert_same(learned(parts), learned(whole))
    assert (parts.model_card_.n_lists, parts.model_card_.n_rows) == (900, whole.model_card_.n_rows)
    one, other = parts.rank(queries, 12, exclude_seen=True), whole.rank(queries, 12, exclude_seen=True)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_auto_stays_as_fit_found_it(kind):
    ranker = kind().fit(LOG)
    found = {name: getattr(ranker, f"{name}_") for name, value in ranker.get_params().items() if value == "auto"}
    ranker.partial_fit(LOG[::-1])
    assert {name: getattr(ranker, f"{name}_") for name in found} == found


def test_ids_of_another_kind_cannot_come_later(kind):
    ranker = kind(**FIXED[kind]).fit([[1, 2]])
    with pytest.raises(ValueError, match="sessions: expected ids as in fit, whole numbers, found dtype <U1"):
        ranker.partial_fit([["a", "b"]])


@pytest.mark.parametrize("kind", SETTLED)
def test_settings_that_are_numbers_count_as_they_are_when_sessions_come(kind):
    ranker = kind(**FIXED[kind]).fit(LOG[:50]).set_params(decay=0.3).partial_fit(LOG[50:60])
    assert ranker.decay_ == 0.3


def test_any_number_of_threads_has_the_same_bits(kind):
    sessions = datasets.make_sessions(1000, 120, random_state=1).sessions
    queries = sessions.prefixes()  # of several blocks
    one, eight = (kind(n_jobs=n).fit(sessions) for n in (1, 8))
    assert_same(learned(one), learned(eight))
    found = one.rank(queries, 10), eight.rank(queries, 10)
    np.testing.assert_array_equal(found[0].ids, found[1].ids)
    np.testing.assert_array_equal(found[0].scores, found[1].scores)


@pytest.mark.parametrize(
    ("sessions", "message"),
    [
        ([["a", 1]], "sessions: expected ids, all whole numbers or all strings, found int and str"),
        ([[], []], "sessions: expected items, found none in 2 sessions"),
        ([], "sessions: expected items, found none in 0 sessions"),
        (["a", "b"], "sessions: expected a list of ids in each place, found str in place 0"),
        (None, "sessions: expected a list of lists of ids, found NoneType"),
        (Sessions(np.array([1.5, 2.0]), np.array([0, 2])), "sessions: expected ids"),
    ],
)
def test_what_is_no_sessions_is_refused(kind, sessions, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(sessions)


def test_empty_sessions_are_left_out_with_a_warning(kind):
    with pytest.warns(UserWarning, match="sessions: 2 of 4 have no items and are left out; the first: session 1"):
        ranker = kind(**FIXED[kind]).fit([["a", "b"], [], ["b"], []])
    assert ranker.model_card_.n_lists == 2


def test_rank_needs_a_fit(kind):
    for ask in (lambda: kind().rank([[1]]), lambda: kind().scores([[1]], [1]), lambda: kind().recall([[1]], [1])):
        with pytest.raises(NotFittedError):
            ask()


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("as_names", [False, True])
def test_a_file_gives_the_same_answers(kind, tmp_path, mmap, as_names):
    sessions, queries = (names(LOG), names(QUERIES)) if as_names else (LOG, QUERIES)
    ranker = kind().fit(sessions)
    ranker.save(tmp_path / "model.safetensors")
    again = slatewise.load(tmp_path / "model.safetensors", mmap=mmap)
    assert type(again) is kind
    assert_same(learned(ranker), learned(again))
    np.testing.assert_array_equal(again.rank(queries, 9).ids, ranker.rank(queries, 9).ids)
    more = sessions[:20]
    np.testing.assert_array_equal(
        again.partial_fit(more).rank(queries, 9).scores, copy.deepcopy(ranker).partial_fit(more).rank(queries, 9).scores
    )


def test_copies_leave_out_what_is_made_of_the_rest(ranker):
    ranker.rank(QUERIES, 3)
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        assert "_predictor" not in vars(other)
        np.testing.assert_array_equal(other.rank(QUERIES, 3).ids, ranker.rank(QUERIES, 3).ids)


def test_an_altered_file_is_refused(ranker, tmp_path):
    path = tmp_path / "model.safetensors"
    ranker.save(path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        slatewise.load(path)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "recommend.rst"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert not failed
    assert tried > 15
