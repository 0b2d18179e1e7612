"""Steps and norms that are searched for: the best of those tried, no more work than needed, refusals."""

import numpy as np
import pytest

import slatewise
from slatewise import LatentRanker, datasets
from slatewise.estimators._latent_search import GRIDS
from slatewise.warp.stages import Stages

SMALL = {"n_components": 6, "epochs": 2, "k": 5, "random_state": 0, "validation_fraction": 0.1}
AUTO = dict.fromkeys(GRIDS, "auto")


@pytest.fixture(scope="module")
def pairs():
    return datasets.make_sessions(250, 40, n_clusters=5, random_state=0).sessions.pairs()


def reports_of(pairs, **settings):
    reports = []
    ranker = LatentRanker(**SMALL | settings, callbacks=[reports.append]).fit(pairs.queries, pairs.items)
    return ranker, reports


def best(reports, stage):
    return max((report.recall for report in reports if report.stage == stage), default=-1.0)


def test_it_is_the_fit_with_the_best_settings_of_each_grid(pairs):
    found, _ = reports_of(pairs, stages=3, **AUTO)
    settings = {name: grid[0] for name, grid in GRIDS.items()}
    for names, stage in ((("learning_rate", "max_norm"), 0), (("stage_learning_rate", "stage_norm"), 1)):
        for name in names:
            recalls = [best(reports_of(pairs, stages=2, **settings | {name: value})[1], stage) for value in GRIDS[name]]
            settings[name] = GRIDS[name][int(np.argmax(recalls))]
    assert {name: getattr(found, f"{name}_") for name in GRIDS} == settings
    again, _ = reports_of(pairs, stages=3, **settings)
    np.testing.assert_array_equal(found.item_factors_, again.item_factors_)
    np.testing.assert_array_equal(found.query_factors_, again.query_factors_)
    assert found.n_epochs_ == again.n_epochs_


def test_the_grids_begin_at_the_defaults():
    assert {name: grid[0] for name, grid in GRIDS.items()} == {
        name: LatentRanker().get_params()[name] for name in GRIDS
    }


def test_later_stages_are_searched_on_one_first_stage_and_one_set_of_lists(pairs, monkeypatch):
    handed = []
    original = Stages.hand_over
    monkeypatch.setattr(Stages, "hand_over", lambda self, done: handed.append(len(done)) or original(self, done))
    _, reports = reports_of(pairs, stages=2, stage_norm="auto", stage_learning_rate="auto")
    assert [report.epoch for report in reports if report.stage == 0] == [1, 2]
    assert [report.epoch for report in reports if report.stage == 1].count(1) == 5
    assert handed == [0, 1]


def test_what_was_found_is_kept_and_learning_goes_on_with_it(tmp_path, pairs):
    ranker, _ = reports_of(pairs, max_norm="auto")
    ranker.save(tmp_path / "m")
    back = slatewise.load(tmp_path / "m")
    assert back.max_norm == "auto"
    assert back.max_norm_ == ranker.max_norm_
    for one in (back, ranker):
        one.partial_fit(pairs.queries, pairs.items)
    np.testing.assert_array_equal(back.item_factors_, ranker.item_factors_)
    assert np.linalg.norm(back.item_factors_[0][:, :6], axis=1).max() <= ranker.max_norm_ * (1 + 1e-5)


def test_features_are_searched_too():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 200)
    X = np.eye(6)[labels] + 0.3 * rng.normal(size=(200, 6))
    ranker = LatentRanker(**SMALL | AUTO | {"stages": 2}).fit(X, labels)
    assert ranker.recall(X, labels, [1])[1] > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_norm": "auto", "validation_fraction": 0.0}, "max_norm: expected a number where no pairs are held out"),
        (
            {"learning_rate": "auto", "checkpoint": "state"},
            "learning_rate: expected a number for a fit with a checkpoint",
        ),
    ],
)
def test_what_cannot_be_searched_is_named(pairs, settings, message):
    with pytest.raises(ValueError, match=message):
        LatentRanker(**SMALL | settings).fit(pairs.queries, pairs.items)


def test_a_first_partial_fit_has_nothing_to_judge_by(pairs):
    with pytest.raises(ValueError, match="learning_rate: expected a number before the first fit, found 'auto'"):
        LatentRanker(learning_rate="auto").partial_fit(pairs.queries, pairs.items)
    LatentRanker(stage_norm="auto").partial_fit(pairs.queries, pairs.items)  # it has no such stage
