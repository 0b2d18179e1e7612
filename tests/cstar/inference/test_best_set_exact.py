"""c-star inference against every list of thousands of small instances, against HiGHS, and against forced inferences."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from slatewise.cstar.inference import best_set as star
from slatewise.inference import star_max_marginals, star_permutation, star_top_k

METHODS = ["enumerate", "branch"]
KINDS = ["real", "whole", "positive", "negative", "zero"]
"""Real numbers; whole numbers, so that lists tie; G of one sign; no G."""
LISTS = 12


def small_model(rng, n_items, n_core, kind):
    """A random core and the rows of a symmetric G."""
    G = np.triu(rng.normal(size=(n_items, n_items)), 1)
    G = {"real": G, "whole": np.round(1.5 * G), "positive": np.abs(G), "negative": -np.abs(G), "zero": 0 * G}[kind]
    core = rng.permutation(n_items)[:n_core]
    return (G + G.T)[core], core


def small_lists(rng, n_items, kind, largest_k):
    """Scores, every k in turn, and in half of the lists some items forced as in a random set of k items."""
    s = rng.normal(size=(LISTS, n_items))
    s = np.round(s) if kind == "whole" else s
    k = (rng.integers(largest_k + 1) + np.arange(LISTS)) % (largest_k + 1)
    places = np.argsort(rng.random(s.shape), axis=1)
    is_known = rng.random(s.shape) < np.where(np.arange(LISTS) % 2, rng.random(LISTS), 0.0)[:, None]
    return s, k, np.where(is_known, places < k[:, None], -1)


def all_sets(n_items, largest_k):
    """Every set of at most ``largest_k`` items, (sets, N) 0/1."""
    sets = [items for k in range(largest_k + 1) for items in combinations(range(n_items), k)]
    flags = np.zeros((len(sets), n_items))
    for row, items in zip(flags, sets, strict=True):
        row[list(items)] = 1
    return flags


def set_scores(s, pair, core, sets):
    """f of every list and set, (lists, sets): every unordered pair once."""
    G = np.zeros((s.shape[1],) * 2)
    G[core, :] = pair
    G[:, core] = pair.T
    return s @ sets.T + 0.5 * np.einsum("ti,ij,tj->t", sets, G, sets, optimize=True)


def possible_scores(s, pair, core, k, known, sets):
    """The same, -inf where a set has not k items or does not respect ``known``."""
    broken = (known == 1) @ (1 - sets).T + (known == 0) @ sets.T
    return np.where((sets.sum(axis=1) == k[:, None]) & (broken == 0), set_scores(s, pair, core, sets), -np.inf)


def check_argmax(s, pair, core, k, known, method, sets, exact):
    """Compare one block of lists with all sets."""
    found = star_top_k(s, pair, core, k, method=method, known=known, n_jobs=1)
    best = possible_scores(s, pair, core, k, known, sets).max(axis=1)
    chosen = np.zeros(s.shape)
    for row, items in zip(chosen, found.selected, strict=True):
        row[items] = 1
    own = np.diagonal(set_scores(s, pair, core, chosen))
    tolerance = 0.0 if exact else 1e-9
    np.testing.assert_allclose(found.score, best, rtol=0, atol=tolerance)
    np.testing.assert_allclose(own, best, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(found.upper_bound, found.score)
    np.testing.assert_array_equal(chosen.sum(axis=1), k)
    assert ((known < 0) | (known == chosen)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_best_of_all_lists(method, kind):
    """480 lists a kind and method: 2,400 for each method."""
    rng = np.random.default_rng([KINDS.index(kind), 0])
    for n_items in np.tile(np.arange(1, 11), 4):
        pair, core = small_model(rng, n_items, rng.integers(n_items + 1), kind)
        s, k, known = small_lists(rng, n_items, kind, n_items)
        check_argmax(s, pair, core, k, known, method, all_sets(n_items, n_items), kind == "whole")


@pytest.mark.parametrize("kind", KINDS)
def test_branching_over_several_groups_of_core_items(kind):
    """The core falls into groups of five: 11 and 12 items make three of them. 480 lists a kind."""
    rng = np.random.default_rng([KINDS.index(kind), 1])
    for n_items in (11, 12):
        sets = all_sets(n_items, n_items)
        for _ in range(20):
            pair, core = small_model(rng, n_items, rng.integers(9, n_items + 1), kind)
            s, k, known = small_lists(rng, n_items, kind, n_items)
            check_argmax(s, pair, core, k, known, "branch", sets, kind == "whole")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_items_without_hope_are_dropped_rightly(method, kind):
    """Few of many: items below the threshold never enter the walk. 480 lists a kind and method."""
    rng = np.random.default_rng([KINDS.index(kind), 2])
    for n_items, largest_k in ((40, 2), (60, 2), (80, 2), (70, 1)):
        sets = all_sets(n_items, largest_k)
        for _ in range(10):
            pair, core = small_model(rng, n_items, rng.integers(3), kind)
            s, k, known = small_lists(rng, n_items, kind, largest_k)
            known[rng.random(s.shape) < 0.9] = -1  # else too few items are left
            check_argmax(s, pair, core, k, known, method, sets, kind == "whole")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["walked", "branched"])
def test_the_max_marginals_of_all_lists(path, kind, monkeypatch):
    """480 lists a kind and path: 2,400 for each path."""
    if path == "branched":
        monkeypatch.setattr(star, "FEW", -1)
        monkeypatch.setattr(star, "FEW_FOR_MARGINALS", -1)
    rng = np.random.default_rng([KINDS.index(kind), 3])
    for n_items in np.tile(np.arange(1, 9), 5):
        pair, core = small_model(rng, n_items, rng.integers(n_items + 1), kind)
        s, k, known = small_lists(rng, n_items, kind, n_items)
        sets = all_sets(n_items, n_items)
        scores = possible_scores(s, pair, core, k, known, sets)
        found = star_max_marginals(s, pair, core, k, known=known, n_jobs=1)
        tolerance = 0.0 if kind == "whole" else 1e-9
        for item in range(n_items):
            inside = scores[:, sets[:, item] == 1].max(axis=1)
            outside = scores[:, sets[:, item] == 0].max(axis=1)
            np.testing.assert_allclose(found.inside[:, item], inside, rtol=0, atol=tolerance)
            np.testing.assert_allclose(found.outside[:, item], outside, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_of_all_rankings(kind):
    """240 rankings a kind, 1,200 together; weights of positions tie or have both signs."""
    rng = np.random.default_rng([KINDS.index(kind), 4])
    for number in range(240):
        n_items = 1 + number % 5
        pair, core = small_model(rng, n_items, rng.integers(min(n_items, 3) + 1), kind)
        s, c, linear = rng.normal(size=n_items), rng.normal(size=n_items), rng.normal(size=(n_items, n_items))
        if kind == "whole":
            s, c, linear = np.round(s), np.round(c), np.round(linear)
        orders = np.array(list(permutations(range(n_items))))
        t = c[np.argsort(orders, axis=1)]
        extra = linear[orders, np.arange(n_items)].sum(axis=1)
        found = star_permutation(s, c, pair, core, linear)
        # f of t is quadratic in the placements too: every ranking is a row of "sets".
        scores = set_scores(s[None], pair, core, t)[0] + extra
        assert found.score == pytest.approx(scores.max(), abs=1e-9)
        assert scores[(orders == found.order).all(axis=1)] == pytest.approx(found.score, abs=1e-9)


def large(n_core, scale, seed, n_items=93):
    """One list, of the paper's size by default; G so large that it changes the answer."""
    rng = np.random.default_rng([n_core, seed])
    G = np.triu(rng.normal(0, scale, (n_items, n_items)), 1)
    core = rng.permutation(n_items)[:n_core]
    return rng.normal(size=n_items), (G + G.T)[core], core


def highs(s, pair, core, k):
    """The best score by a mixed-integer program, one variable an item and one a pair.

    A core item that is in has k - 1 pairs with others that are: without these rows the strong G take minutes.
    """
    n_items = len(s)
    place = {int(c): a for a, c in enumerate(core)}
    pairs = [(int(c), i, pair[a, i]) for a, c in enumerate(core) for i in range(n_items) if place.get(i, -1) < a]
    entries, lower, upper = [], [], []

    def require(terms, low, high):
        entries.extend((len(lower), column, value) for column, value in terms)
        lower.append(low)
        upper.append(high)

    partners = {int(c): [] for c in core}
    for variable, (c, i, _) in enumerate(pairs, start=n_items):
        require([(variable, 1), (c, -1)], -np.inf, 0)
        require([(variable, 1), (i, -1)], -np.inf, 0)
        require([(variable, -1), (c, 1), (i, 1)], -np.inf, 1)
        for item in {c, i} & partners.keys():
            partners[item].append(variable)
    for c, variables in partners.items():
        require([(c, 1 - k), *((variable, 1) for variable in variables)], 0, 0)
    require([(i, 1) for i in range(n_items)], k, k)
    rows, columns, values = zip(*entries, strict=True)
    n_variables = n_items + len(pairs)
    matrix = coo_array((values, (rows, columns)), shape=(len(lower), n_variables)).tocsr()
    done = milp(
        -np.concatenate([s, [g for _, _, g in pairs]]),
        constraints=LinearConstraint(matrix, lower, upper),
        integrality=np.arange(n_variables) < n_items,
        bounds=Bounds(0, 1),
    )
    assert done.success
    return -done.fun


# Core items, spread of G, seed, items. Larger spreads make more pairs matter, and HiGHS slower: these have fewer items.
LARGE = [
    *((5, 0.5, 1, 93), (5, 0.5, 4, 93), (5, 0.2, 0, 93), (6, 0.4, 1, 93), (6, 0.2, 2, 93), (7, 0.3, 1, 93)),
    *((7, 0.2, 0, 93), (8, 0.2, 2, 93), (9, 0.2, 4, 93), (10, 0.4, 1, 40), (10, 0.2, 0, 93), (11, 0.2, 2, 93)),
    *((12, 0.2, 0, 93), (13, 0.2, 2, 93), (14, 0.2, 1, 93), (15, 0.2, 0, 93), (15, 0.3, 0, 40)),
]


@pytest.mark.parametrize(("n_core", "scale", "seed", "n_items"), LARGE)
def test_highs_agrees(n_core, scale, seed, n_items):
    s, pair, core = large(n_core, scale, seed, n_items)
    best = highs(s, pair, core, 12)
    alone = np.argsort(-s)[:12]
    for method in METHODS:
        found = star_top_k(s, pair, core, 12, method=method)
        assert found.score[0] == pytest.approx(best, abs=1e-5)
        assert set(found.selected[0]) != set(alone)  # G decides


@pytest.mark.parametrize(("n_core", "n_items"), [(5, 93), (10, 93), (15, 40)])
@pytest.mark.parametrize("k", [1, 12, -1])
def test_max_marginals_are_two_inferences_an_item(n_core, n_items, k):
    """The last k is all items but one."""
    s, pair, core = large(n_core, 0.2, 3, n_items)
    found = star_max_marginals(s, pair, core, k % n_items)
    method = "enumerate" if n_core == 5 else "branch"
    for value, side in ((1, found.inside), (0, found.outside)):
        known = np.where(np.eye(n_items, dtype=bool), value, -1)
        forced = star_top_k(np.tile(s, (n_items, 1)), pair, core, k % n_items, method=method, known=known)
        np.testing.assert_allclose(side[0], forced.score, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(forced.upper_bound, forced.score)
