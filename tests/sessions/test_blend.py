"""SessionBlend against a softmax over all items written out, finite differences, and its own parts."""

from dataclasses import replace

import numpy as np
import pytest

import slatewise
from slatewise import SessionCooccurrence, SessionNeighbors, datasets
from slatewise.core.errors import ModelFileError
from slatewise.core.running.executor import Executor
from slatewise.persistence.file import read_model, write_model
from slatewise.recommend.histories import SessionQueries
from slatewise.sessions.blend import N_KNOTS, START, BlendModel, SessionBlend, default_blend, likely_blend
from slatewise.sessions.estimator import scorer_of, with_further
from slatewise.sessions.kernels.blend import Candidates, Heights, surprise

LOG = datasets.make_sessions(600, 40, n_clusters=5, random_state=0).sessions
ASKED = [[1, 2, 1], [3], [9, 8, 7, 6, 5, 4, 3, 2, 1], [11, 11, 12]]
LEVELS = np.linspace(0, 1, N_KNOTS)


@pytest.fixture(scope="module")
def ranker():
    return SessionBlend(30, window=6).fit(LOG)


def slow_heights(ranker, asked):
    """Heights of every item, and -inf where nobody names it: by the parts' own scores, one after the other."""
    heights = np.full((len(asked), len(ranker.item_ids_)), -np.inf)
    again = np.array([np.isin(ranker.item_ids_, items[-len(ranker.repeats_) :]) for items in asked])
    for number, part in enumerate((ranker.neighbors_, ranker.counts_)):
        scores = part.scores(asked, ranker.item_ids_)
        levels = np.log1p(9 * np.maximum(scores, 0) / scores.max(axis=1, keepdims=True)) / np.log(10)
        new, had = (np.interp(levels, LEVELS, np.cumsum(ranker.spline_steps_[kind, number])) for kind in (0, 1))
        heights_of_part = np.where(again, had, new)
        heights = np.where(scores > 0, np.maximum(heights, 0) * np.isfinite(heights) + heights_of_part, heights)
    for row, items in enumerate(asked):
        recent = items[::-1][: len(ranker.repeats_)]
        for item in set(recent):
            column = np.searchsorted(ranker.item_ids_, item)
            before = heights[row, column] if np.isfinite(heights[row, column]) else 0.0
            heights[row, column] = before + ranker.repeats_[recent.index(item)]
    return heights


def test_scores_are_probabilities_of_a_softmax_over_all_items(ranker):
    heights = slow_heights(ranker, ASKED)
    mass = np.exp(np.where(np.isfinite(heights), heights, 0.0)).sum(axis=1, keepdims=True)
    found = ranker.scores(ASKED, ranker.item_ids_)
    named = np.isfinite(heights)
    np.testing.assert_allclose(found[named], (np.exp(heights) / mass)[named], rtol=1e-5)
    assert (found[~named] < 0).all()
    assert (np.where(named, found, 0).sum(axis=1) <= 1 + 1e-12).all()


def test_only_the_last_items_of_a_session_count(ranker):
    long = [20, 21, *ASKED[2][-6:]]
    np.testing.assert_array_equal(ranker.rank([long], 9).ids, ranker.rank([ASKED[2][-6:]], 9).ids)


def candidates(rng, n_queries, n_items):
    sizes = rng.integers(1, 7, n_queries)
    ends = np.cumsum(sizes)
    items = np.concatenate([rng.permutation(n_items)[:size] for size in sizes]).astype(np.int32)
    levels = np.where(rng.random((2, len(items))) < 0.7, rng.random((2, len(items))), -1.0).astype(np.float32)
    ages = np.where(rng.random(len(items)) < 0.4, rng.integers(0, 3, len(items)), -1).astype(np.int32)
    return Candidates(ends - sizes, ends, items, levels, ages)


def slow_surprise(found, targets, n_items, steps, repeats):
    total = 0.0
    for q, target in enumerate(targets):
        heights = np.zeros(n_items)
        for at in range(found.starts[q], found.ends[q]):
            for part in range(2):
                if found.levels[part, at] >= 0:
                    line = np.cumsum(steps[1 if found.ages[at] >= 0 else 0, part])
                    heights[found.items[at]] += np.interp(found.levels[part, at], LEVELS, line)
            if found.ages[at] >= 0:
                heights[found.items[at]] += repeats[found.ages[at]]
        total += np.log(np.exp(heights).sum()) - heights[target]
    return total


def test_likelihood_and_its_slope():
    rng = np.random.default_rng(0)
    found, targets = candidates(rng, 30, 12), rng.integers(0, 12, 30)
    steps, repeats = rng.uniform(0, 1, (2, 2, N_KNOTS)), rng.normal(size=3)

    def surprise_of(steps, repeats):
        slope = Heights(np.zeros((2, 2, N_KNOTS)), np.zeros(3))
        heights = Heights(np.cumsum(steps, axis=2), repeats)
        return surprise(found, targets, 12, heights, np.empty(len(found.items)), slope), slope

    total, slope = surprise_of(steps, repeats)
    assert total == pytest.approx(slow_surprise(found, targets, 12, steps, repeats), rel=1e-9)
    for kind, part, knot in np.ndindex(steps.shape):
        small = np.zeros_like(steps)
        small[kind, part, knot] = 1e-5
        ahead, behind = (slow_surprise(found, targets, 12, steps + s * small, repeats) for s in (1, -1))
        assert slope.knots[kind, part, knot:].sum() == pytest.approx((ahead - behind) / 2e-5, abs=1e-5)
    for age in range(3):
        small = np.zeros(3)
        small[age] = 1e-5
        ahead, behind = (slow_surprise(found, targets, 12, steps, repeats + s * small) for s in (1, -1))
        assert slope.ages[age] == pytest.approx((ahead - behind) / 2e-5, abs=1e-5)


def test_the_mixture_is_the_most_likely_one(ranker):
    """Of sessions that the parts have not seen; no mixture near it is more likely, with its prior."""
    known, later = LOG[:400], LOG[400:].prefixes()
    neighbors, counts = SessionNeighbors(30).fit(known), SessionCooccurrence(6).fit(known)
    parts = scorer_of(neighbors), scorer_of(counts)
    queries = SessionQueries.of(later, neighbors.item_ids_)
    targets = np.searchsorted(neighbors.item_ids_, later.next_items)
    steps, repeats = likely_blend(parts, 6, queries, targets, Executor(2))
    again = likely_blend(parts, 6, queries, targets, Executor(1))
    np.testing.assert_array_equal(steps, again[0])
    np.testing.assert_array_equal(repeats, again[1])
    assert steps.min() >= 0
    found = BlendModel(parts, steps, repeats).candidates(queries)

    def loss(steps, repeats):
        slope, chances = Heights(np.zeros_like(steps), np.zeros_like(repeats)), np.empty(len(found.items))
        heights = Heights(np.cumsum(steps, axis=2), repeats)
        away = np.sum((steps - START / N_KNOTS) ** 2) + np.sum(repeats**2)
        return surprise(found, targets, len(neighbors.item_ids_), heights, chances, slope) + 0.5 * away

    best, rng = loss(steps, repeats), np.random.default_rng(0)
    for size in (0.3, 0.03):
        for _ in range(30):
            near = np.maximum(steps + rng.normal(0, size, steps.shape), 0), repeats + rng.normal(0, size, 6)
            assert best <= loss(*near) + 0.01
    assert best < loss(*default_blend(2, 6)) - 10


def test_few_sessions_leave_the_start():
    ranker = SessionBlend(window=4).fit([["a", "b"], ["b", "c"]])
    np.testing.assert_array_equal(ranker.spline_steps_, np.full((2, 2, N_KNOTS), START / N_KNOTS))
    np.testing.assert_array_equal(ranker.repeats_, np.zeros(4))
    assert ranker.rank("a", 1, exclude_seen=True).ids.tolist() == [["b"]]


def test_further_sessions_go_to_both_parts_and_leave_the_mixture():
    ranker = SessionBlend(window=5).fit(LOG[:300])
    before = ranker.neighbors_, ranker.counts_, ranker.spline_steps_, ranker.repeats_
    answers = ranker.rank(ASKED, 9).ids
    parts = [with_further(part, LOG[300:], 1) for part in before[:2]]
    ranker.partial_fit(LOG[300:])
    assert ranker.spline_steps_ is before[2]
    assert ranker.repeats_ is before[3]
    for name, part in zip(("neighbors_", "counts_"), parts, strict=True):
        np.testing.assert_array_equal(getattr(ranker, name).rank(ASKED, 9).scores, part.rank(ASKED, 9).scores)
    whole = SessionBlend(window=5).fit(LOG[:300])
    np.testing.assert_array_equal(whole.rank(ASKED, 9).ids, answers)
    assert before[0].model_card_.n_lists == 300  # the parts that were there stay as they were
    with pytest.raises(ValueError, match="window: expected 5, that of the fit to go on with, found 7"):
        ranker.set_params(window=7).partial_fit(LOG[:3])


def test_parts_have_no_weight_of_repeats_of_their_own(ranker):
    for part in (ranker.neighbors_, ranker.counts_):
        assert (part.last_weight_, part.repeat_weight_) == (1.0, 1.0)


def test_parts_out_of_a_file(tmp_path, ranker):
    ranker.save(tmp_path / "model")
    state = read_model(tmp_path / "model")
    neighbors, counts = state.values["neighbors_"], state.values["counts_"]
    inside = {**neighbors, "estimator": "SessionBlend", "values": {"neighbors_": neighbors, "counts_": counts}}
    deeper = {**inside, "values": {"neighbors_": inside, "counts_": counts}}
    changes = (
        {"neighbors_": None},
        {"neighbors_": 7},
        {"neighbors_": counts, "counts_": neighbors},
        {"neighbors_": inside},
        {"neighbors_": deeper},
        {"neighbors_": {**neighbors, "estimator": "NobodyRanker"}},
    )
    for change in changes:
        write_model(tmp_path / "other", replace(state, values={**state.values, **change}))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")
    for name, value in (
        ("spline_steps_", -state.arrays["spline_steps_"]),
        ("repeats_", np.empty(0)),
        ("spline_steps_", np.ones((2, 3, 9))),
    ):
        write_model(tmp_path / "other", replace(state, arrays={**state.arrays, name: value}))
        with pytest.raises(ModelFileError):
            slatewise.load(tmp_path / "other")
