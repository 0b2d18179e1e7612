"""Queries that hold items, against slow definitions in float64 and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise.core.running.executor import Executor
from slatewise.factors.bags import (
    AGE_WEIGHTS,
    REPEAT_WEIGHTS,
    SPLINE_STEPS,
    BagParts,
    BagQueries,
    Bags,
    all_but_one,
    bag_queries,
    learned_from,
    query_bags,
)
from slatewise.factors.engines.blocked import BlockedEngine, SharedNegatives, WholeCatalogue, rank_weights
from slatewise.factors.kernels.dropout import kept_shares
from slatewise.factors.offsets import N_KNOTS, Levels
from slatewise.factors.pairs import Block, TrainingPairs
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Entries, Segment, Table, Weights, padded
from slatewise.sessions.problem import check_query_features as check_context
from tests.factors.reference import adagrad, rank_weight

N, WINDOW = 5, 3
OWN = Segment(0, N, 0.3, 1.5)


class Slow:
    """Scores and their parts, pair by pair."""

    def __init__(self, queries, items, n_items, lists, levels, context):
        table = queries.values.astype(float)
        self.context = np.zeros((len(lists), 0)) if context is None else context
        self.U, self.C = table[:n_items, :N], table[n_items:, :N]
        weights = {name: part.values.astype(float) for name, part in queries.weights.items()}
        self.w, self.r = weights[AGE_WEIGHTS], weights[REPEAT_WEIGHTS]
        self.s = weights.get(SPLINE_STEPS, np.empty(0))
        self.lists, self.levels = lists, levels
        self.V, self.b = items.values[:, :N].astype(float), items.values[:, N].astype(float)

    def vector(self, bag):
        scale = len(bag) ** -0.5 if len(self.w) == 1 and len(bag) else 1.0
        out = self.context[self._number(bag)] @ self.C
        for age, item in enumerate(bag[::-1]):
            out += scale * self.w[min(age, len(self.w) - 1)] * self.U[item]
        return out

    def _number(self, bag):
        return next(number for number, one in enumerate(self.lists) if one is bag)

    def scores(self, bag):
        scores = self.V @ self.vector(bag) + self.b
        for age, item in enumerate(bag[::-1]):
            scores[item] += self.r[min(age, len(self.r) - 1)]
        if self.levels is not None:
            level = self.levels[self._number(bag)]
            scores += np.where(level > 0, np.interp(level, np.linspace(0, 1, N_KNOTS), np.cumsum(self.s)), 0.0)
        return scores

    def violators(self, bag, positive):
        scores = self.scores(bag)
        return [j for j in range(len(scores)) if j != positive and scores[j] + 1 > scores[positive]]

    def objective(self, bags, positives, weights, pushed):
        total = 0.0
        for bag, d, weight, bad in zip(bags, positives, weights, pushed, strict=True):
            scores = self.scores(bag)
            for j in bad:
                total += weight * rank_weight(len(bad), len(self.V)) / len(bad) * (1 - scores[d] + scores[j])
        return total

    def gradient(self, part, bags, positives, weights, pushed):
        """Minus the slope of the objective, by finite differences."""
        small, out = 1e-5, np.zeros(part.shape)
        for place in np.ndindex(part.shape):
            before, sides = part[place], []
            for step in (small, -small):
                part[place] = before + step
                sides.append(self.objective(bags, positives, weights, pushed))
            part[place] = before
            out[place] = -(sides[0] - sides[1]) / (2 * small)
        return out


def make(n_items, n_queries, ages=WINDOW, longest=WINDOW, seed=0, based=False, n_features=0):
    """Factors of random bags, some empty, some with an item twice; what they hold, and a pair for each."""
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, n_items, rng.integers(0, longest + 1)) for _ in range(n_queries)]
    ends = np.cumsum([len(one) for one in lists])
    bags = Bags(np.concatenate(lists), np.append(0, ends[:-1]), ends)
    n_rows = n_items + n_features
    queries = Table.zeros(n_rows, padded(N + 1), (OWN,))
    queries.values[:n_items, :N] = rng.normal(0, 0.7, (n_items, N))
    queries.weights[AGE_WEIGHTS] = weights_of(np.append(1.0, rng.uniform(0.05, 1, ages - 1)))
    queries.weights[REPEAT_WEIGHTS] = weights_of(rng.normal(0, 1, ages))
    items = Table.zeros(n_items, padded(N + 1), (OWN, Segment(N, N + 1, 0.2)))
    items.values[:, : N + 1] = rng.normal(0, 0.7, (n_items, N + 1))
    levels, table, context = None, None, None
    if based:
        queries.weights[SPLINE_STEPS] = weights_of(rng.uniform(0.1, 1, N_KNOTS))
        table = rng.random((n_queries, n_items)).astype(np.float32) * (rng.random((n_queries, n_items)) < 0.4)
        table[table == table.max(axis=1, keepdims=True)] = 1.0  # the best, which is the last knot
        table[3] = 0.0  # a query that the base says nothing of
        offsets = np.append(0, np.cumsum((table > 0).sum(axis=1)))
        levels = Levels(offsets[:-1], offsets[1:], np.nonzero(table)[1].astype(np.int32), table[table > 0])
    factors = Factors(BagQueries(bags, queries, N, levels), items)
    positives = rng.integers(0, n_items, n_queries)
    positives[:5] = [one[0] if len(one) else 0 for one in lists[:5]]  # something that comes again
    pairs = TrainingPairs.of(np.arange(n_queries), positives, rng.uniform(0.5, 1, n_queries).astype(np.float32))
    if n_features:
        queries.values[n_items:n_rows, :N] = rng.normal(0, 0.7, (n_features, N))
        rows, owners = rng.normal(0, 1, (7, n_features)) * (rng.random((7, n_features)) < 0.7), np.arange(n_queries) % 7
        context = rows.astype(np.float32).astype(float)[owners]
        asked = BagParts(bags, owners, levels, check_context(rows, 7))
        factors = Factors(bag_queries(asked, n_items, N)(queries), items)
    return factors, lists, pairs, Slow(queries, items, n_items, lists, table, context)


def weights_of(values):
    return Weights(values.astype(np.float32), np.zeros(len(values), dtype=np.float32))


def whole_block(pairs):
    starts = np.zeros(len(pairs), dtype=np.int64)
    return Block(pairs.queries, np.arange(1, len(pairs) + 1), pairs.items, pairs.weights, starts)


@pytest.mark.parametrize(("ages", "longest"), [(WINDOW, WINDOW), (1, 1), (1, 6)])
def test_vectors_are_weighted_sums(ages, longest):
    factors, lists, _, slow = make(11, 20, ages, longest)
    vectors = factors.queries.vectors(np.arange(20)[::-1])[::-1]
    np.testing.assert_allclose(vectors[:, :N], [slow.vector(one) for one in lists], atol=1e-6)
    assert np.all(vectors[:, N] == 1)
    assert not vectors[:, N + 1 :].any()


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize(("ages", "longest"), [(WINDOW, WINDOW), (1, 6)])
def test_violators_are_counted_and_gradients_are_slopes(ages, longest, based):
    n_items = 11
    factors, lists, pairs, slow = make(n_items, 20, ages, longest, based=based)
    pushed = [slow.violators(bag, d) for bag, d in zip(lists, pairs.items, strict=True)]
    block, vectors = whole_block(pairs), factors.queries.vectors(pairs.queries)
    negatives = WholeCatalogue(most=n_items).prepare(factors, pairs, Executor(1))
    found = negatives.gradient(block, vectors, factors.items.values, rank_weights(n_items))
    up = np.zeros(20)
    np.add.at(up, found.items.sources, np.maximum(found.items.coefficients, 0))
    expected = [w * rank_weight(len(bad), n_items) for w, bad in zip(pairs.weights, pushed, strict=True)]
    np.testing.assert_allclose(up, expected, rtol=1e-5)
    data = lists, pairs.items, pairs.weights, pushed
    assert found.loss == pytest.approx(slow.objective(*data), rel=1e-5)
    dense = np.zeros((n_items, padded(N + 1)))
    np.add.at(dense, found.items.rows, found.items.coefficients[:, None] * vectors[found.items.sources])
    np.testing.assert_allclose(dense[:, :N], slow.gradient(slow.V, *data), atol=1e-4)
    np.testing.assert_allclose(found.score_offsets, slow.gradient(slow.r, *data), atol=1e-4)
    bags, queries = factors.queries.bags, factors.queries.table
    entries, by_age = Entries.empty(len(bags.items)), np.zeros(ages)
    from slatewise.factors.kernels.bags import bag_entries, weight_gradient

    bag_entries(bags, queries.weights[AGE_WEIGHTS].values, entries)
    own = np.zeros((n_items, N))
    np.add.at(own, entries.rows, entries.coefficients[:, None] * found.queries[entries.sources, :N])
    np.testing.assert_allclose(own, slow.gradient(slow.U, *data), atol=1e-4)
    weight_gradient(queries.values, bags, found.queries, N, by_age)
    np.testing.assert_allclose(by_age, slow.gradient(slow.w, *data), atol=1e-4)


@pytest.mark.parametrize("based", [False, True])
def test_a_step_is_the_slow_one(based):
    n_items = 11
    factors, lists, pairs, slow = make(n_items, 20, based=based)
    pushed = [slow.violators(bag, d) for bag, d in zip(lists, pairs.items, strict=True)]
    data = lists, pairs.items, pairs.weights, pushed
    U, V, w, r = (slow.gradient(part, *data) for part in (slow.U, slow.V, slow.w, slow.r))
    nothing, columns = np.zeros((n_items, 1)), [(0, N, 0.3, 1.5)]
    engine = BlockedEngine(WholeCatalogue(most=n_items), rank_weights(n_items), 1000, Executor(1))
    engine.epoch(factors, pairs, np.random.default_rng(0))
    table = factors.queries.table
    np.testing.assert_allclose(table.values[:, :N], adagrad(slow.U, nothing, U, columns)[0], atol=1e-4)
    np.testing.assert_allclose(factors.items.values[:, :N], adagrad(slow.V, nothing, V, columns)[0], atol=1e-4)
    weights = np.maximum(slow.w + 0.1 * 0.3 * np.sign(w), 0)
    weights[0] = 1.0
    np.testing.assert_allclose(table.weights[AGE_WEIGHTS].values, weights, atol=1e-5)
    np.testing.assert_allclose(table.weights[REPEAT_WEIGHTS].values, slow.r + 0.3 * np.sign(r), atol=1e-5)
    if based:  # its steps stay
        np.testing.assert_array_equal(table.weights[SPLINE_STEPS].values, slow.s.astype(np.float32))


def test_weights_stay_as_they_should():
    factors, _, pairs, _ = make(11, 60)
    engine = BlockedEngine(WholeCatalogue(), rank_weights(11), 8, Executor(1))
    for epoch in range(20):
        engine.epoch(factors, pairs, np.random.default_rng(epoch))
    table = factors.queries.table
    assert table.weights[AGE_WEIGHTS].values[0] == 1.0
    assert table.weights[AGE_WEIGHTS].values.min() >= 0.0
    assert np.linalg.norm(table.values[:, :N], axis=1).max() <= 1.5 * (1 + 1e-6)


@pytest.mark.parametrize(("dropout", "based"), [(0.0, False), (0.4, True)])
def test_same_bits_with_any_number_of_threads(dropout, based):
    tables = []
    for threads in (1, 2, 3, 8):
        factors, _, pairs, _ = make(3000, 700, based=based)
        engine = BlockedEngine(WholeCatalogue(8), rank_weights(3000), 300, Executor(threads), dropout)
        for epoch in range(2):
            engine.epoch(factors, pairs, np.random.default_rng(epoch))
        tables.append((*factors.queries.table.arrays(), factors.items.values, factors.items.accumulators))
    for others in tables[1:]:
        for one, other in zip(tables[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_drawn_negatives_are_refused():
    factors, _, pairs, _ = make(11, 20)
    with pytest.raises(NotImplementedError, match="expected the whole catalogue where queries hold items"):
        SharedNegatives(4, 2).prepare(factors, pairs, Executor(1))


# --- dropout ---------------------------------------------------------------------------------------------------------


def test_kept_numbers_keep_the_mean():
    states = np.arange(1, 2001).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    shares = np.empty((2000, 64), dtype=np.float32)
    kept_shares(states.copy(), 0.6, shares)
    assert set(np.unique(shares)) == {0.0, np.float32(2.5)}
    assert abs(shares.mean() - 1) < 0.01
    np.testing.assert_allclose(shares.mean(axis=0), 1, atol=0.15)
    np.testing.assert_allclose(np.corrcoef(shares[:1000, 0], shares[1000:, 0])[0, 1], 0, atol=0.1)
    again = np.empty((2000, 64), dtype=np.float32)
    kept_shares(states, 0.6, again)
    np.testing.assert_array_equal(shares, again)


def test_what_is_dropped_neither_scores_nor_learns():
    n_items = 11
    factors, _, pairs, _ = make(n_items, 20)
    seen = []

    class Watched(WholeCatalogue):
        def prepare(self, factors, pairs, executor):
            inner = super().prepare(factors, pairs, executor)
            before = inner.gradient

            def gradient(block, vectors, items, rank_weight):
                found = before(block, vectors, items, rank_weight)
                seen.append((block, vectors, found))
                return found

            object.__setattr__(inner, "gradient", gradient)
            return inner

    whole = factors.queries.vectors(np.arange(20))
    BlockedEngine(Watched(), rank_weights(n_items), 1000, Executor(1), 0.5).epoch(
        factors, pairs, np.random.default_rng(0)
    )
    for block, vectors, found in seen:
        shares = np.divide(vectors, whole[block.queries], out=np.zeros_like(vectors), where=whole[block.queries] != 0)
        assert set(np.unique(shares[:, :N].round(4))) <= {0.0, 2.0}
        np.testing.assert_array_equal(vectors[:, N], 1)
        dropped = (vectors[:, :N] == 0) & (whole[block.queries, :N] != 0)
        assert dropped.any()
        assert not found.queries[:, :N][dropped].any()
        assert found.queries[:, :N].any()


# --- ranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"QUERIES_PER_BLOCK": 4}, {"ITEMS_PER_SHARE": 6}])
def test_lists_are_those_of_all_scores(monkeypatch, sizes, based):
    for name, size in sizes.items():
        monkeypatch.setattr(f"slatewise.factors.scoring.{name}", size)
    factors, lists, _, slow = make(23, 17, WINDOW, WINDOW, based=based)
    expected = np.array([slow.scores(one) for one in lists])
    cascade, asked = Cascade((factors,)), np.arange(17)
    np.testing.assert_allclose(cascade.scores(17, np.arange(23), N + 1), expected, atol=1e-5)
    columns = np.array([4, 4, 20, 3])
    np.testing.assert_allclose(cascade.scores(17, columns, N + 1), expected[:, columns], atol=1e-5)
    from scipy.sparse import csr_array

    mask = np.random.default_rng(1).random((17, 23)) < 0.3
    for hidden in (None, csr_array(mask)):
        shown = np.where(mask, -np.inf, expected) if hidden is not None else expected
        for k in (1, 5, 23):
            found = cascade.top(asked, k, hidden)
            order = np.argsort(-shown, axis=1, kind="stable")[:, :k]
            best = np.take_along_axis(shown, order, axis=1)
            np.testing.assert_array_equal(found.items, np.where(best == -np.inf, -1, order))
            np.testing.assert_allclose(found.scores, best, atol=1e-5)


def test_ties_rank_by_number():
    factors, _, _, _ = make(9, 6)
    for values in factors.queries.table.arrays():
        values[:] = 0
    factors.items.values[:] = 0
    found = Cascade((factors,)).top(np.arange(6), 9).items
    np.testing.assert_array_equal(found, np.tile(np.arange(9), (6, 1)))


# --- sessions and baskets --------------------------------------------------------------------------------------------

session_lists = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=6)


def flat(lists):
    return np.array([item for one in lists for item in one], dtype=np.int64), np.cumsum([0, *map(len, lists)])


def held(bags):
    return [bags.items[start:end].tolist() for start, end in zip(bags.starts, bags.ends, strict=True)]


@given(session_lists, st.integers(1, 4))
def test_sessions_are_taken_apart_item_by_item(lists, window):
    found = learned_from(*flat(lists), window)
    expected = [
        (one[max(0, place - window) : place], one[place], owner)
        for owner, one in enumerate(lists)
        for place in range(1, len(one))
    ]
    pairs = zip(held(found.bags), found.following.tolist(), found.owners.tolist(), strict=True)
    assert list(pairs) == expected
    items, offsets = flat(lists)
    assert held(query_bags(items, offsets[:-1], offsets[1:], window)) == [one[-window:] for one in lists]


@given(session_lists, st.integers(1, 8))
def test_of_a_basket_every_item_is_left_out_once(lists, most):
    found = all_but_one(*flat(lists), most)
    expected = sorted((owner, item) for owner, one in enumerate(lists) for item in set(one) if len(set(one)) > 1)
    assert sorted(zip(found.owners.tolist(), found.following.tolist(), strict=True)) == expected
    for bag, item, owner in zip(held(found.bags), found.following, found.owners, strict=True):
        others = set(lists[owner]) - {item}
        assert len(bag) == len(set(bag)) == min(len(others), most)
        assert set(bag) <= others
    items, offsets = flat(lists)
    assert held(query_bags(items, offsets[:-1], offsets[1:], None)) == [sorted(set(one)) for one in lists]
