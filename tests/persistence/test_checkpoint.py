"""A fit that is killed and goes on ends at the same bits, wherever it was killed."""

import signal
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tests.interrupted_fits import FITS, exit_code, queries

from slatewise import BestFeatureRanker, CStarMarginRanker, MarginRanker, MatchingRanker, datasets, losses
from slatewise.matching import Slates
from slatewise.persistence import checkpoint as _checkpoint
from slatewise.persistence.file import read_model, write_model


def learned(estimator):
    return {name: getattr(estimator, name) for name in (*estimator._learned, "model_card_") if hasattr(estimator, name)}


def assert_same_bits(one, two):
    for name, value in learned(one).items():
        np.testing.assert_array_equal(value, learned(two)[name], err_msg=name)


@cache
def whole_fit(name):
    """A fit that nothing disturbs, and its rounds."""
    estimator, data = FITS[name]
    rounds = []
    return clone(estimator).fit(*data(), callbacks=[rounds.append]), rounds


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize(
    ("name", "stop_at"),
    [
        ("margin", 20),
        ("matching", 12),
        ("graphs", 9),
        ("labels", 2),
        ("labels, default", 4),
        ("labels, precomputed", 4),
        ("points", 20),
    ],
)
def test_killed_and_resumed_it_gives_the_same_bits(tmp_path, name, stop_at):
    state = tmp_path / "state"
    assert exit_code(name, state, stop_at) == -signal.SIGKILL
    estimator, data = FITS[name]
    once, whole = whole_fit(name)
    told, rest = [], []
    watch = [rest.append, lambda _: told.append(state.exists())]
    assert_same_bits(once, clone(estimator).fit(*data(), checkpoint=state, callbacks=watch))
    assert told[0]
    assert not state.exists()
    assert 0 < len(rest) < len(whole)
    assert rest == whole[-len(rest) :]


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("writes", [2, 12, 40])
def test_interrupted_anywhere_it_goes_on_to_the_same_bits(tmp_path, monkeypatch, name, writes):
    """Also while strengths and core labels are chosen, where no callback is called."""
    state, written = tmp_path / "state", []

    def write(path, arrays):
        write_model(path, arrays)
        written.append(path)
        if len(written) == writes:
            raise KeyboardInterrupt

    estimator, data = FITS[name]
    once, _ = whole_fit(name)
    monkeypatch.setattr(_checkpoint, "write_model", write)
    stopped = clone(estimator)
    try:
        stopped.fit(*data(), checkpoint=state)
    except KeyboardInterrupt:
        assert state.exists()
        written.append(state)  # only once
        stopped = clone(stopped).set_params(n_jobs=2).fit(*data(), checkpoint=state)
    assert not state.exists()
    assert_same_bits(once, stopped)


@pytest.mark.parametrize("name", FITS)
def test_interrupted_when_all_but_done_it_is_done(tmp_path, name):
    estimator, data = FITS[name]
    once, rounds = whole_fit(name)
    seen = []

    def stop_at_the_last(round_):
        seen.append(round_)
        if len(seen) == len(rounds):
            raise KeyboardInterrupt

    again, run = clone(estimator), {"checkpoint": tmp_path / "state", "callbacks": [stop_at_the_last]}
    with pytest.raises(KeyboardInterrupt):
        again.fit(*data(), **run)
    assert_same_bits(once, again.fit(*data(), **run))


def interrupted(estimator, path, data):
    def stop(round_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(estimator).fit(*data, checkpoint=path, callbacks=[stop])


def test_a_state_of_other_data_or_settings_is_refused(tmp_path):
    X, y, qid = queries()
    path = tmp_path / "state"
    interrupted(MarginRanker(), path, (X, y, qid))
    others = [
        (MarginRanker(), (2 * X, y, qid)),
        (MarginRanker(), (X, y, qid[::-1])),
        (MarginRanker(C=2.0), (X, y, qid)),
    ]
    for estimator, data in others:
        with pytest.raises(
            ValueError, match="checkpoint: expected the state of this data and these settings, found ano"
        ):
            estimator.fit(*data, checkpoint=path)
    assert path.exists()
    more = MarginRanker(max_iter=2000, n_jobs=1).fit(X, y, qid, checkpoint=path)  # may be others
    assert_same_bits(more, MarginRanker().fit(X, y, qid))


def test_lists_of_other_rows_are_other_data():
    X, y, _ = queries()
    halves = [np.arange(len(y)) // (len(y) // 2), np.arange(len(y)) % 2]
    one, two = (MarginRanker().fit(X, y, np.minimum(half, 1)).model_card_.data_sha256 for half in halves)
    assert one != two


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "state"
    interrupted(MarginRanker(), path, queries())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="state"):
        MarginRanker().fit(*queries(), checkpoint=path)


def altered(path, **changes):
    write_model(path, replace(read_model(path), **changes))


def test_a_state_of_another_version_is_refused_and_says_why(tmp_path):
    path, why = tmp_path / "state", ".+; a checkpoint is of one version of slatewise: remove the file or name another"
    interrupted(MarginRanker(), path, queries())
    before = read_model(path)
    altered(path, card=replace(before.card, library="slatewise 77.0.0"))
    with pytest.raises(ValueError, match="checkpoint: expected the state of a fit by .+, found one by .+77" + why):
        MarginRanker().fit(*queries(), checkpoint=path)
    assert path.exists()


def test_a_model_is_not_taken_for_a_state(tmp_path):
    path = tmp_path / "model"
    MarginRanker().fit(*queries()).save(path)
    with pytest.raises(ValueError, match=r"checkpoint: expected one, found a MarginRanker in .+; name another"):
        MarginRanker().fit(*queries(), checkpoint=path)
    assert path.exists()


def test_a_state_of_another_estimator_is_refused(tmp_path):
    path = tmp_path / "state"
    interrupted(MarginRanker(), path, queries())
    with pytest.raises(ValueError, match="checkpoint: expected the state of this data and these settings"):
        MatchingRanker(Slates(3, repeats=2)).fit(*queries(), checkpoint=path)


def test_a_file_holds_the_answers_alone(tmp_path):
    path = tmp_path / "state"
    interrupted(MarginRanker(), path, queries())
    saved = read_model(path)
    assert saved.estimator == "MarginRanker checkpoint"
    assert set(saved.arrays) == {"calls", "sizes", "results"}
    assert saved.arrays["sizes"].tolist() == [queries()[0].shape[1] + 1]


def test_settings_are_compared_in_all_their_digits_however_they_print(tmp_path):
    path, data = tmp_path / "state", queries()
    interrupted(MatchingRanker(Slates(3, position_weights=np.array([2.0, 1.0, 0.0]))), path, data)
    with np.printoptions(precision=1), pytest.raises(ValueError, match="checkpoint: expected the state of this data"):
        MatchingRanker(Slates(3, position_weights=[2.0, 1.0 + 1e-9, 0.0])).fit(*data, checkpoint=path)
    MatchingRanker(Slates(3, position_weights=[2, 1, 0])).fit(*data, checkpoint=path)  # the same in other words


def test_a_shorthand_is_the_object_that_it_stands_for(tmp_path):
    path = tmp_path / "state"
    interrupted(MarginRanker("map"), path, queries())
    with pytest.raises(ValueError, match="checkpoint: expected the state of this data and these settings"):
        MarginRanker(losses.MAP(threshold=1)).fit(*queries(), checkpoint=path)
    MarginRanker(losses.MAP()).fit(*queries(), checkpoint=path)
    interrupted(MarginRanker(losses.MAP(threshold=1)), path, queries())
    MarginRanker(losses.MAP(threshold=1.0)).fit(*queries(), checkpoint=path)


def test_a_state_that_other_rounds_of_validation_led_to_is_refused(tmp_path):
    scenes = datasets.make_label_scenes(n_rows=40, random_state=0)
    path = tmp_path / "state"
    interrupted(CStarMarginRanker(core=1, max_iter=2), path, (scenes.X, scenes.Y))
    ranker = CStarMarginRanker(core=1, max_iter=60)
    with pytest.raises(ValueError, match="checkpoint: expected the state of this data and these settings"):
        ranker.fit(scenes.X, scenes.Y, checkpoint=path)


@pytest.mark.parametrize("params", [{"k": 2}, {"solver": "subgradient"}])
def test_where_no_state_is_kept_a_checkpoint_is_refused(params, tmp_path):
    scenes = datasets.make_label_scenes(n_rows=40, random_state=0)
    ranker = CStarMarginRanker(core=1, **params)
    with pytest.raises(ValueError, match="checkpoint: expected None"):
        ranker.fit(scenes.X, scenes.Y, checkpoint=tmp_path / "state")


@pytest.mark.filterwarnings("ignore:all .* rows are one list")
def test_a_checkpoint_inside_a_search_is_refused_with_the_reason(tmp_path):
    X, y, _ = queries()
    search = GridSearchCV(BestFeatureRanker(), {"measure": ["ndcg@5"]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"checkpoint: expected None inside a search .+, where many fits would share"):
        search.fit(X, y, checkpoint=tmp_path / "state")


def test_a_path_that_is_none_is_refused():
    with pytest.raises(ValueError, match="checkpoint: expected None or a path, found 3"):
        MarginRanker().fit(*queries(), checkpoint=3)
