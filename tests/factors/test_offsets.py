"""What a base of sessions says, against slow definitions, enumeration and finite differences."""

import numpy as np
import pytest

from slatewise import SessionCooccurrence, SessionNeighbors, datasets
from slatewise.core.running.executor import Executor
from slatewise.data import Sessions
from slatewise.factors import offsets as base_levels
from slatewise.factors.kernels.base_levels import places_among, surprise
from slatewise.factors.offsets import N_KNOTS, START, Levels, likely_steps
from slatewise.factors.pairs import hold_out_owners
from slatewise.recommend.histories import SessionQueries
from slatewise.sessions.blend import SessionBlend
from slatewise.sessions.estimator import scorer_of, with_further
from slatewise.sessions.problem import cross_fitted, further_scores, session_pairs
from slatewise.sessions.sparse_scores import normalized_scores

BASES = [SessionNeighbors(k=20), SessionCooccurrence(window=4), SessionBlend(k=20, window=4)]
KNOTS = np.linspace(0, 1, N_KNOTS)


def as_levels(table):
    offsets = np.append(0, np.cumsum((table > 0).sum(axis=1)))
    items = np.nonzero(table)[1].astype(np.int32)
    return Levels(offsets[:-1], offsets[1:], items, table[table > 0].astype(np.float32))


def as_table(levels, n_items):
    table = np.zeros((len(levels.starts), n_items))
    for row, start, end in zip(table, levels.starts, levels.ends, strict=True):
        row[levels.items[start:end]] = levels.levels[start:end]
    return table


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.random((40, 12)).astype(np.float32) * (rng.random((40, 12)) < 0.5)


def slow_surprise(table, queries, items, steps):
    """Minus the log-likelihood of a softmax over all items."""
    scores = np.where(table > 0, np.interp(table, KNOTS, np.cumsum(steps)), 0.0)[queries]
    return float(np.sum(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(items)), items]))


def test_likelihood_and_its_slope(table):
    rng = np.random.default_rng(1)
    queries, items, steps = rng.integers(0, 40, 60), rng.integers(0, 12, 60), rng.uniform(0.1, 2, N_KNOTS)
    levels, targets, of_knots = as_levels(table), np.empty(60, dtype=np.int64), np.zeros(N_KNOTS)
    places_among(items, queries, levels.starts, levels.ends, levels.items, targets)
    assert ((targets >= 0) == (table[queries, items] > 0)).all()
    found = surprise(queries, targets, levels.starts, levels.ends, levels.levels, 12, np.cumsum(steps), of_knots)
    assert found == pytest.approx(slow_surprise(table, queries, items, steps), rel=1e-6)
    for knot in range(N_KNOTS):
        small = np.zeros(N_KNOTS)
        small[knot] = 1e-5
        slope = slow_surprise(table, queries, items, steps + small) - slow_surprise(
            table, queries, items, steps - small
        )
        assert of_knots[knot:].sum() == pytest.approx(slope / 2e-5, abs=1e-4)


def test_steps_are_the_most_likely_ones(table, monkeypatch):
    """Items drawn from a softmax with known steps: no other steps fit them better."""
    rng = np.random.default_rng(2)
    queries, true = rng.integers(0, 40, 4000), np.array([0.5, 0, 0, 1, 0, 0.5, 0, 0, 1.0])
    scores = np.where(table > 0, np.interp(table, KNOTS, np.cumsum(true)), 0.0)[queries]
    items = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    found = likely_steps(as_levels(table), queries, items, 12)
    assert found.dtype == np.float32
    assert found.min() >= 0

    def loss(steps):
        return slow_surprise(table, queries, items, steps) + 0.5 * np.sum((steps - START / N_KNOTS) ** 2)

    for _ in range(100):
        assert loss(found.astype(float)) <= loss(np.maximum(found + rng.normal(0, 0.1, N_KNOTS), 0)) + 1e-2
    np.testing.assert_allclose(np.cumsum(found)[[0, 4, 8]], np.cumsum(true)[[0, 4, 8]], atol=0.4)
    monkeypatch.setattr(base_levels, "MOST_QUERIES", 100)
    assert not np.array_equal(likely_steps(as_levels(table), queries, items, 12), found)


def test_nothing_to_learn_from_leaves_the_start():
    np.testing.assert_allclose(likely_steps(Levels.none(3), np.arange(3), np.zeros(3, int), 5), START / N_KNOTS)


@pytest.mark.parametrize("depth", [3, 100])
@pytest.mark.parametrize("base", BASES)
def test_levels_are_those_of_the_best_scores(monkeypatch, base, depth):
    monkeypatch.setattr("slatewise.sessions.sparse_scores.DEPTH", depth)
    sessions = datasets.make_sessions(80, 25, random_state=0).sessions
    base.fit(sessions)
    asked = [one[:3].tolist() for one in sessions[:9]] + [[]]
    queries = SessionQueries.of([*asked[:-1], asked[0]], base.item_ids_)
    found = as_table(normalized_scores(scorer_of(base), queries, Executor(1)), 25)
    scores = np.maximum(base.scores([*asked[:-1], asked[0]], base.item_ids_), 0)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(scores, order[:, depth:], 0, axis=1)
    expected = np.log1p(9 * scores / scores.max(axis=1, keepdims=True)) / np.log(10)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("base", BASES[:2])
def test_no_base_has_seen_what_it_is_asked_in_training(base):
    """Every session has an item of its own: whoever scores it has seen that session."""
    made = datasets.make_sessions(60, 20, random_state=0).sessions
    sessions = [[f"own{number}", *(f"i{item}" for item in one[:4]), f"own{number}"] for number, one in enumerate(made)]
    pairs = session_pairs(sessions, None, 3)
    fitted = base.fit(sessions)
    order = np.arange(len(sessions))[::-1]
    _, held = hold_out_owners(pairs, pairs.owners[pairs.queries], order, 0.2, 5)
    for validation in (held, None):
        found = cross_fitted(fitted, pairs, validation, 0, Executor(2))
        table = as_table(found, len(pairs.item_ids))
        own = np.char.startswith(pairs.item_ids, "own")
        mine = pairs.item_ids[None, :] == np.array([f"own{owner}" for owner in pairs.owners])[:, None]
        assert (table[:, ~own].max(axis=1) > 0).mean() > 0.7  # the first item alone says nothing
        assert not table[mine].any()
        kept_out = np.zeros(len(sessions), dtype=bool)
        if validation is not None:
            kept_out[pairs.owners[validation.queries]] = True
        assert not table[:, [np.flatnonzero(pairs.item_ids == f"own{s}")[0] for s in np.flatnonzero(kept_out)]].any()
    queries = SessionQueries.of([sessions[0][:1]], pairs.item_ids)
    seen = as_table(normalized_scores(scorer_of(fitted), queries, Executor(1)), 80)
    assert seen.any()


def test_further_sessions_are_scored_before_they_are_learnt_from():
    before = Sessions.of([["b", "d"], ["b", "f"], ["d", "b", "f"]])
    base = SessionNeighbors(decay=1.0, last_weight=1.0, repeat_weight=1.0, reach=None).fit(before)
    pairs = session_pairs([["a", "b", "c"], ["c", "d"]], None, 4)
    together = np.array(["a", "b", "c", "d", "f"])
    from dataclasses import replace

    bags = pairs.bags._replace(items=np.searchsorted(together, pairs.item_ids)[pairs.bags.items])
    further = replace(pairs, bags=bags, item_ids=together)
    found = as_table(further_scores(base, further, np.array([1, 3, 4]), Executor(1)), 5)
    expected = np.maximum(base.scores([["b"]], ["b", "d", "f"]), 0)
    assert not found[0].any()  # a is new
    np.testing.assert_allclose(found[1, [1, 3, 4]], np.log1p(9 * expected[0] / expected.max()) / np.log(10), rtol=1e-6)
    assert not found[2].any()
    grown = with_further(base, Sessions.of([["a", "b", "c"], ["c", "d"]]), 1)
    assert grown.item_ids_.tolist() == together.tolist()
    assert base.item_ids_.tolist() == ["b", "d", "f"]
