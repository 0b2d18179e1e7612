"""c-star inference: its paths against each other, symmetries, threads, the node limit, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plain_python import compiled_and_plain

from slatewise.cstar.inference import best_set as star
from slatewise.cstar.inference.best_set import argmax_block
from slatewise.cstar.inference.model import StarLists, StarPair
from slatewise.inference import star_max_marginals, star_top_k
from slatewise_papers.bench.star_plain import plain_scores

METHODS = ["enumerate", "branch"]


def model(rng, n_items, n_core, scale=1.0):
    """A random core and the rows of a symmetric G."""
    G = np.triu(rng.normal(0, scale, (n_items, n_items)), 1)
    core = rng.permutation(n_items)[:n_core]
    return (G + G.T)[core], core


def test_selected_items_come_in_the_order_of_their_max_marginals(monkeypatch):
    rng = np.random.default_rng(2)
    pair, core = model(rng, 30, 6)
    s = rng.normal(size=(5, 30))
    first = star_top_k(s, pair, core, 8)
    for row, chosen in enumerate(first.selected):
        marginals = star_max_marginals(s[row], pair, core, 8)
        margins = (marginals.inside - marginals.outside)[0]
        assert set(np.flatnonzero(margins > 0)) == set(chosen)
        assert (np.diff(margins[chosen]) <= 1e-12).all()
    monkeypatch.setattr(star, "FEW_FOR_MARGINALS", 0)
    np.testing.assert_array_equal(star_top_k(s, pair, core, 8).selected, first.selected)


@pytest.mark.parametrize(("n_items", "n_core", "k"), [(93, 5, 12), (40, 11, 9), (60, 12, 30), (600, 8, 3)])
def test_all_kernels_agree(n_items, n_core, k):
    rng = np.random.default_rng(3)
    pair, core = model(rng, n_items, n_core, 0.5)
    s, counts = rng.normal(size=(6, n_items)), np.full(6, k)
    shared = StarPair.of(pair, core)
    plain = np.empty(6)
    plain_scores(s, shared.arrays, counts, plain)
    for method in METHODS:
        found = argmax_block(StarLists(s, shared, counts), method=method)
        np.testing.assert_allclose(found.score, plain, rtol=1e-12)
        again = argmax_block(StarLists(s, shared, counts), found.selected, method)
        np.testing.assert_array_equal(again.selected, found.selected)
        np.testing.assert_array_equal(again.score, found.score)


def test_a_node_limit_leaves_a_bound_that_holds():
    rng = np.random.default_rng(4)
    pair, core = model(rng, 60, 20, 0.6)
    s = rng.normal(size=(4, 60))
    proven = star_top_k(s, pair, core, 12)
    np.testing.assert_array_equal(proven.upper_bound, proven.score)
    with pytest.warns(star.UnprovenWarning, match="4 of 4 lists are not proven best within 2 nodes"):
        limited = star_top_k(s, pair, core, 12, node_limit=2)
    assert (limited.nodes <= 2).all()
    assert (limited.score <= proven.score + 1e-9).all()
    assert (limited.upper_bound >= proven.score - 1e-9).all()
    assert (limited.upper_bound > limited.score).any()


def test_max_marginals_say_what_a_node_limit_left_unproven(monkeypatch):
    rng = np.random.default_rng(9)
    pair, core = model(rng, 24, 12, 0.3)
    s = rng.normal(size=(3, 24))
    known = np.full(s.shape, -1)
    known[0, :2] = 1, 0
    exact = star_max_marginals(s, pair, core, 9, known)
    assert exact.proven.all()
    monkeypatch.setattr(star, "FEW", -1)
    monkeypatch.setattr(star, "FEW_FOR_MARGINALS", -1)
    assert star_max_marginals(s, pair, core, 9, known).proven.all()
    with pytest.warns(star.UnprovenWarning, match="of 72 max-marginals are not proven best within 1 nodes") as caught:
        found = star_max_marginals(s, pair, core, 9, known, node_limit=1)
    assert str(caught[0].message).startswith(f"{(~found.proven).sum()} of ")
    for side in ("inside", "outside"):
        value, bound, best = getattr(found, side), getattr(found, f"{side}_bound"), getattr(exact, side)
        assert (value <= best + 1e-9).all()
        assert (bound >= best - 1e-9).all()
        np.testing.assert_allclose(value[found.proven], best[found.proven])
    assert 0 < found.proven.sum() < found.proven.size


@pytest.mark.parametrize(("n_core", "k", "feasible"), [(17, 8, True), (20, 6, True), (30, 10, False), (40, 12, False)])
def test_one_list_has_one_budget_of_nodes_however_strong_its_pairs_are(n_core, k, feasible):
    """The searches that only order the answer share what the best list left: the node limit was one for each."""
    rng = np.random.default_rng(n_core)
    pair, core = model(rng, 60, n_core, 4.0)
    s, limit = rng.normal(size=(2, 60)), 300
    with pytest.warns(star.UnprovenWarning, match="of 2 lists are not proven best within 300 nodes"):
        found = star_top_k(s, pair, core, k, node_limit=limit)
    with pytest.warns(star.UnprovenWarning, match="of 120 max-marginals"):
        marginals = star_max_marginals(s, pair, core, k, node_limit=limit)
    for nodes in (found.nodes, marginals.nodes):
        assert ((nodes > 0) & (nodes <= limit)).all()
    again = [star_top_k, star_max_marginals]
    with pytest.warns(star.UnprovenWarning):
        again = [search(s, pair, core, k, node_limit=limit, n_jobs=2) for search in again]
    np.testing.assert_array_equal(again[0].selected, found.selected)
    assert again[1].outside_bound.tobytes() == marginals.outside_bound.tobytes()
    assert (found.upper_bound >= found.score).all()
    for row, items in enumerate(found.selected):
        assert len(set(items.tolist())) == k
        t = np.isin(np.arange(60), items)
        G = np.zeros((60, 60))
        G[core], G[:, core] = pair, pair.T
        assert found.score[row] == pytest.approx(s[row] @ t + 0.5 * t @ G @ t)
    if feasible:
        exact = np.empty(2)
        plain_scores(s, StarPair.of(pair, core).arrays, np.full(2, k), exact)
        assert (found.upper_bound >= exact - 1e-9).all()
        proven = star_top_k(s, pair, core, k)
        np.testing.assert_allclose(proven.score, exact, rtol=1e-12)
        np.testing.assert_array_equal(proven.upper_bound, proven.score)
        assert (proven.nodes <= star.NODE_LIMIT).all()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-5, 5))
def test_symmetries(method, seed, shift):
    rng = np.random.default_rng(seed)
    n_items, k = 15, int(rng.integers(0, 16))
    pair, core = model(rng, n_items, 6)
    s = rng.normal(size=n_items)
    base = star_top_k(s, pair, core, k, method=method, n_jobs=1)
    order = rng.permutation(n_items)
    place = np.argsort(order)
    moved = star_top_k(s[order], pair[:, order], place[core], k, method=method, n_jobs=1)
    assert set(order[moved.selected[0]]) == set(base.selected[0])  # two items may have the same max-marginals
    lifted = star_top_k(s + shift, pair, core, k, method=method, n_jobs=1)
    assert lifted.score[0] == pytest.approx(base.score[0] + k * shift, abs=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_with_one_and_two_threads(method):
    rng = np.random.default_rng(6)
    pair, core = model(rng, 50, 7, 0.5)
    s, k = rng.normal(size=(300, 50)), rng.integers(0, 51, 300)
    one, two = (star_top_k(s, pair, core, k, method=method, n_jobs=n) for n in (1, 2))
    assert one.score.tobytes() == two.score.tobytes()
    assert all((a == b).all() for a, b in zip(one.selected, two.selected, strict=True))
    assert [len(row) for row in one.selected] == k.tolist()
    marginals = [star_max_marginals(s, pair, core, k, n_jobs=n) for n in (1, 2)]
    assert marginals[0].inside.tobytes() == marginals[1].inside.tobytes()
    assert marginals[0].outside.tobytes() == marginals[1].outside.tobytes()


def test_the_same_answer_without_the_jit():
    code = """
import numpy as np
from slatewise.inference import star_max_marginals, star_top_k
rng = np.random.default_rng(7)
G = np.triu(rng.normal(size=(12, 12)), 1)
core = np.arange(1, 8)
pair, s = (G + G.T)[core], rng.normal(size=(2, 12))
for method in ("enumerate", "branch"):
    print(star_top_k(s, pair, core, 4, method=method).selected.tolist())
print(star_max_marginals(s, pair, core, 4).inside.round(9).tolist())
"""
    compiled, plain = compiled_and_plain(code)
    assert compiled == plain


def test_no_core_is_a_sort_and_no_lists_is_empty():
    result = star_top_k([3.0, 1.0, 2.0], np.empty((0, 3)), [], 2)
    assert result.selected.tolist() == [[0, 2]]
    empty = star_top_k(np.empty((0, 3)), np.empty((0, 3)), [], 2)
    assert len(empty.selected) == len(empty.score) == 0


S = np.zeros((2, 4))
PAIR = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 5}, "k: expected 0 to 4, the number of items, found 5 at row 0"),
        ({"k": [1, -1]}, "found -1 at row 1"),
        ({"k": 1.5}, "k: expected a whole number"),
        ({"k": [1, 2, 3]}, "one for each of 2 lists"),
        ({"core": [0, 0]}, "core: expected each item once, found 0 again at position 1"),
        ({"core": [0, 4]}, "core: expected items from 0 to 3, found 4 at position 1"),
        ({"core": [0]}, "pair: expected one row for each of 1 core items"),
        ({"core": [0, 1, 2, 3, 4], "pair": np.zeros((5, 4))}, "core: expected at most 4 items"),
        ({"core": [0.0, 1.0]}, "core: expected item numbers"),
        ({"pair": [[0, 1, 0, 0], [2, 0, 0, 0]]}, "found 1.0 at row 0, column 1 and 2.0 at row 1, column 0"),
        ({"pair": [[3, 1, 0, 0], [1, 0, 0, 0]]}, "pair: expected 0 between an item and itself, found 3.0 at row 0"),
        ({"pair": [[0, 1, np.inf, 0], [1, 0, 0, 0]]}, "pair: expected finite numbers"),
        ({"pair": np.zeros((2, 5))}, "pair: expected 4 columns"),
        ({"s": [[0, 0, 0, 0], [0, np.nan, 0, 0]]}, "s: expected finite numbers, found nan at row 1"),
        ({"known": np.ones((2, 4))}, "known: expected at most k = 2 items in, found 4 at row 0"),
        ({"known": np.zeros((2, 4))}, "known: expected at least k = 2 items not out, found 0 at row 0"),
        ({"known": np.full((2, 4), 2)}, "known: expected -1, 0 or 1, found 2 at row 0, item 0"),
        ({"known": np.full((2, 3), -1)}, "known: expected the shape of s"),
        ({"method": "guess"}, "method: expected one of auto, enumerate, branch, found 'guess'"),
        ({"node_limit": 0}, "node_limit: expected a whole number >= 1"),
        ({"warm_start": [[0, 1], [0, 9]]}, "warm_start: expected items below 4 or -1, found 9 at row 1"),
        ({"warm_start": [[0, 1]]}, "warm_start: expected a row of items for each of 2 lists"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"s": S, "pair": PAIR, "core": [0, 1], "k": 2} | change
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        star_top_k(**arguments)


def test_too_many_core_items_to_walk():
    with pytest.raises(ValueError, match="method: expected 'branch' for more than 24 core items"):
        star_top_k(np.zeros(30), np.zeros((25, 30)), np.arange(25), 3, method="enumerate")
