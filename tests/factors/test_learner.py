"""Steps and norms that are searched for: the best of the trials, the bits of a fit that is told, kills in between."""

from dataclasses import astuple
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import slatewise
from slatewise import datasets
from slatewise.factors import learner
from slatewise.factors import stages as stages_module
from slatewise.factors.learner import GRIDS, TRIAL_EPOCHS
from slatewise.factors.settings import STARTS, TrainingSettings
from slatewise.factors.stages import Stages
from tests.factors.flat import make_featured, make_latent

SMALL = {"n_components": 6, "epochs": 6, "random_state": 0, "validation_fraction": 0.1}
AUTO = dict.fromkeys(GRIDS, "auto")
SEARCHED = ("max_norm", "learning_rate"), ("stage_learning_rate", "stage_norm")


@pytest.fixture(scope="module")
def pairs():
    return datasets.make_sessions(150, 40, n_clusters=5, random_state=0).sessions.pairs()


def reports_of(pairs, **settings):
    reports = []
    ranker = make_latent(**SMALL | settings, callbacks=[reports.append]).fit(pairs.queries, pairs.items)
    return ranker, reports


def promise(epochs):
    """Judge the first epochs of a whole fit as the search says it does: what each held-out pair adds."""
    hits = [one.hits.astype(int) for one in epochs[:TRIAL_EPOCHS]]
    candidates = [*hits, 2 * hits[-1] - hits[-2]]
    return candidates[int(np.argmax([one.sum() for one in candidates]))]


def is_better(tried, best, queries, errors):
    """Say whether one promises more than another by some standard errors over the queries, query by query."""
    gains = [(tried - best)[queries == query].sum() for query in dict.fromkeys(queries)]
    return sum(gains) > errors * sum(gain**2 for gain in gains) ** 0.5


def climbed(settings, names, judge, better):
    """Search by fits from scratch, one value after the other; return what is found and how many were tried."""
    known = {}

    def worth(tried):
        key = tuple(sorted(tried.items()))
        if key not in known:
            known[key] = judge(tried)
        return known[key]

    best = dict(settings)
    worth(best)
    for name in names:
        ladder, before = GRIDS[name], best[name]
        for direction in (1, -1):
            place = ladder.index(best[name]) + direction
            while 0 <= place < len(ladder) and better(worth(best | {name: ladder[place]}), worth(best)):
                best[name] = ladder[place]
                place += direction
            if best[name] != before:
                break
    return best, len(known)


def same_bits(one, other):
    np.testing.assert_array_equal(one.item_factors_, other.item_factors_)
    np.testing.assert_array_equal(one.query_factors_, other.query_factors_)
    assert one.n_epochs_ == other.n_epochs_
    assert found_by(one) == found_by(other)


def found_by(ranker):
    """Return what was trained with, where it is kept: that of later stages only where there are some."""
    return {name: getattr(ranker, f"{name}_") for name in GRIDS if f"{name}_" in vars(ranker)}


@pytest.mark.filterwarnings("ignore:stages")
@pytest.mark.parametrize("errors", [0.0, 1.0, learner.STANDARD_ERRORS])
def test_it_is_the_fit_with_what_the_ladders_lead_to(pairs, monkeypatch, errors):
    monkeypatch.setattr(learner, "STANDARD_ERRORS", errors)
    watched = []
    original = stages_module.hits_at

    def hits_at(cascade, held, *rest):
        watched.append(SimpleNamespace(hits=original(cascade, held, *rest), queries=held.queries))
        return watched[-1].hits

    monkeypatch.setattr(stages_module, "hits_at", hits_at)
    found, reports = reports_of(pairs, stages=3, **AUTO)
    assert [epoch.hits.mean() for epoch in watched] == [report.recall for report in reports]
    queries, settings, begun = watched[0].queries, dict(STARTS), []
    for stage, names in enumerate(SEARCHED):

        def judge(tried, stage=stage):
            watched.clear()
            _, reports = reports_of(pairs, stages=stage + 1, **tried)
            return promise([epoch for epoch, report in zip(watched, reports, strict=True) if report.stage == stage])

        better = partial(is_better, queries=queries, errors=errors)
        settings, tried = climbed(settings, names, judge, better)
        begun.append(tried)
    assert found_by(found).items() <= settings.items()
    assert len(found_by(found)) == (4 if found.n_stages_ > 1 else 2)
    assert [sum(r.epoch == 1 for r in reports if r.stage == stage) for stage in (0, 1)] == begun
    again, _ = reports_of(pairs, stages=3, **settings)
    same_bits(found, again)


def test_steps_and_norms_are_searched_for_unless_they_are_given(pairs):
    started = learner.steps_of(TrainingSettings(8, 3, 0.1, 3), dict.fromkeys(GRIDS, 0.5))
    assert astuple(started) == (0.5, 0.5, 0.1, 1.0)
    ranker, reports = reports_of(pairs, learning_rate=0.3)
    assert ranker.learning_rate_ == 0.3
    assert sum(report.epoch == 1 for report in reports) >= 3
    tried = [report for report in reports if report.searching]
    assert {report.searching for report in tried} >= {"max norm 1/7", "max norm 2/7"}
    assert str(tried[0]).startswith("searching max norm 1/7, epoch 1/4, recall@10 .")
    assert str(reports[-1]).startswith(f"epoch {reports[-1].epoch}/6, recall@10 .")
    _, reports = reports_of(pairs, learning_rate=0.3, max_norm=1.5)
    assert [report.epoch for report in reports] == list(range(1, len(reports) + 1))


def test_no_argument_does_not_overfit_where_the_former_norm_did():
    gains = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        # Who sees what depends on one of ten groups, and half is chance.
        queries, items = np.repeat(np.arange(300), 12), rng.integers(0, 400, 3600)
        grouped = rng.random(3600) < 0.5
        items[grouped] = (queries % 10 * 40 + rng.integers(0, 40, 3600))[grouped]
        test = rng.random(3600) < 0.2
        settings = {"n_components": 16, "random_state": seed}
        former, now = (
            make_latent(**settings, **given).fit(queries[~test], items[~test])
            for given in ({"learning_rate": 0.3, "max_norm": 2.5}, {})
        )
        asked = np.isin(items, now.item_ids_) & test
        found, before = (one.recall(queries[asked], items[asked], [20])[20] for one in (now, former))
        assert now.max_norm_ < 2.5
        gains.append(found / before - 1)
    assert np.mean(gains) > 3 * np.std(gains, ddof=1) / np.sqrt(len(gains))


@pytest.mark.parametrize(("n_queries", "moves"), [(1, False), (2, False), (9, False), (10, True)])
def test_a_search_does_not_move_for_what_a_few_queries_gain(n_queries, moves):
    settled = SimpleNamespace(validation=SimpleNamespace(queries=np.arange(n_queries)))
    best, tried = (learner.Trial(0, None, [np.full(n_queries, found)]) for found in (False, True))
    assert learner.StageSearch(settled, None, (), 1, learner.Progress(), None)._is_better(tried, best) == moves


@pytest.mark.parametrize(("more", "pairs_per_query", "moves"), [(40, 1, True), (5, 1, False), (40, 20, False)])
def test_a_search_moves_for_more_than_chance(more, pairs_per_query, moves):
    # Of 1,000 held-out pairs some more are found; whole queries at once are less evidence.
    queries = np.arange(1000) // pairs_per_query
    settled = SimpleNamespace(validation=SimpleNamespace(queries=queries))
    few = np.arange(1000) < 200
    best, tried = (learner.Trial(0, None, [found]) for found in (few, few | (np.arange(1000) >= 1000 - more)))
    assert learner.StageSearch(settled, None, (), 1, learner.Progress(), None)._is_better(tried, best) == moves


@pytest.mark.filterwarnings("ignore:stages")
def test_later_stages_are_searched_on_one_first_stage_and_one_set_of_lists(pairs, monkeypatch):
    handed = []
    original = Stages.hand_over
    monkeypatch.setattr(Stages, "hand_over", lambda self, done: handed.append(len(done)) or original(self, done))
    given = {"max_norm": 1.5, "learning_rate": 0.3}
    _, reports = reports_of(pairs, stages=2, stage_norm="auto", stage_learning_rate="auto", **given)
    first = [report.epoch for report in reports if report.stage == 0]
    assert first == list(range(1, len(first) + 1))
    assert [report.epoch for report in reports if report.stage == 1].count(1) > 2
    assert handed == [0, 1]


def test_what_was_found_is_kept_and_learning_goes_on_with_it(tmp_path, pairs):
    ranker, _ = reports_of(pairs)
    ranker.save(tmp_path / "m")
    back = slatewise.load(tmp_path / "m")
    assert back.max_norm == "auto"
    assert back.max_norm_ == ranker.max_norm_
    for one in (back, ranker):
        one.partial_fit(pairs.queries, pairs.items)
    np.testing.assert_array_equal(back.item_factors_, ranker.item_factors_)
    assert np.linalg.norm(back.item_factors_[0][:, :6], axis=1).max() <= ranker.max_norm_ * (1 + 1e-5)


@pytest.mark.filterwarnings("ignore:stages")
def test_features_are_searched_too():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 200)
    X = np.eye(6)[labels] + 0.3 * rng.normal(size=(200, 6))
    ranker = make_featured(**SMALL | AUTO | {"stages": 2}).fit(X, labels)
    assert ranker.recall(X, labels, [1])[1] > 0.9


@pytest.mark.parametrize("stages", [1, 2])
def test_with_nothing_held_out_it_is_where_a_search_would_begin(pairs, stages):
    unjudged = SMALL | {"validation_fraction": 0.0, "epochs": 2, "stages": stages}
    ranker = make_latent(**unjudged | AUTO).fit(pairs.queries, pairs.items)
    same_bits(ranker, make_latent(**unjudged, **STARTS).fit(pairs.queries, pairs.items))
    first = make_latent(**SMALL | AUTO).partial_fit(pairs.queries, pairs.items)
    same_bits(first, make_latent(**SMALL, **STARTS).partial_fit(pairs.queries, pairs.items))


@pytest.mark.filterwarnings("ignore:stages")
@pytest.mark.parametrize("stages", [1, 2])
def test_stopped_after_any_epoch_it_goes_on_to_the_same_bits(tmp_path, pairs, monkeypatch, stages):
    monkeypatch.setattr(learner, "STANDARD_ERRORS", 0.0)  # so that it moves
    settings = SMALL | AUTO | {"stages": stages, "epochs": 5}
    whole, reports = reports_of(pairs, **settings)
    heard = []

    def stop(report):
        heard.append(report)
        raise KeyboardInterrupt

    state = tmp_path / "state"
    # Every resumed fit carries out one epoch and is stopped again, until none is left.
    for _ in range(len(reports) + 1):
        try:
            found = make_latent(**settings, checkpoint=state, callbacks=[stop]).fit(pairs.queries, pairs.items)
            break
        except KeyboardInterrupt:
            assert state.exists()
    same_bits(found, whole)
    assert heard == reports
    assert not state.exists()
    assert [path.name for path in tmp_path.iterdir()] == []
