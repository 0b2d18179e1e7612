"""Stages on somebody else's scores: against the formula, against the whole-catalogue engine, threads."""

import numpy as np
import pytest

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import (
    BlockedEngine,
    SharedNegatives,
    WholeCatalogue,
    rank_weights,
)
from slatewise.factors.engines.sampled import SampledEngine
from slatewise.factors.pair_terms import Bilinear, Both, ListedQueries, Semidefinite
from slatewise.factors.pairs import Block, TrainingPairs
from slatewise.factors.queries import IdQueries, ZeroQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Segment, Table, padded

WEIGHTS = np.array([1.0, 0.5, 1 / 3], dtype=np.float32)


class Matrix:
    def __init__(self, scores):
        self.scores = scores.astype(np.float32)

    def rows(self, queries):
        return self.scores[queries]


def pair_table(rng, n_items, n=3, norm=10.0):
    table = Table.zeros(n_items, padded(n), (Segment(0, n, 0.1, norm),))
    table.values[:, :n] = rng.normal(0, 0.6, (n_items, n))
    return table


def on_base(base, n_items, *later, pair=None):
    """Stages of tables on a base."""
    tables = (Table.zeros(n_items, 0, ()), *later)
    stages = tuple(Factors(ZeroQueries(table.values.shape[1]), table, base) for table in tables)
    return Cascade(stages, pair, WEIGHTS)


def test_a_stage_scores_by_the_formula():
    rng = np.random.default_rng(0)
    b = rng.normal(size=(5, 12))
    base, table = Matrix(b), pair_table(rng, 12)
    found = on_base(base, 12, table, pair=Semidefinite(table.segments[0])).top(np.arange(5), 12)
    S = table.values[:, :3]
    for q in range(5):
        before = np.argsort(-b[q], kind="stable")[:3]
        scores = [b[q, d] + sum(w * S[d] @ S[j] for w, j in zip(WEIGHTS, before, strict=True)) for d in range(12)]
        np.testing.assert_array_equal(found.items[q], np.argsort(-np.array(scores), kind="stable"))
        np.testing.assert_allclose(found.scores[q], -np.sort(-np.array(scores)), atol=1e-5)


def low_rank(rng, n_queries=6, n_items=20, n=3):
    """One model twice: as factors [U | p].[V | S], and as a base U V' with S alone."""
    U, V = rng.normal(size=(n_queries, n)), rng.normal(size=(n_items, n))
    pair = pair_table(rng, n_items, n)
    width = padded(2 * n)
    queries = Table.zeros(n_queries, width, (Segment(0, n, 0.0),))
    items = Table.zeros(n_items, width, (Segment(0, n, 0.0), Segment(n, 2 * n, 0.1, 10.0)))
    queries.values[:, :n], items.values[:, :n] = U, V
    items.values[:, n : 2 * n] = pair.values[:, :n]
    base = Matrix(U @ V.T)
    small = on_base(base, n_items, pair, pair=Semidefinite(pair.segments[0])).factors(n_queries)
    lists = on_base(base, n_items).top(np.arange(n_queries), 3).items
    return small, Factors(
        ListedQueries(IdQueries(queries), items, Semidefinite(items.segments[1]), lists, WEIGHTS), items
    )


def test_a_low_rank_base_trains_as_the_factors_it_is_made_of():
    rng = np.random.default_rng(1)
    small, whole = low_rank(rng)
    pairs = TrainingPairs.of(rng.integers(0, 6, 40), rng.integers(0, 20, 40), np.ones(40, dtype=np.float32))
    weight = rank_weights(20)
    for epoch in range(3):
        engine = BlockedEngine(WholeCatalogue(), weight, 16, Executor(1))
        seen = engine.epoch(small, pairs, np.random.default_rng(epoch))
        same = engine.epoch(whole, pairs, np.random.default_rng(epoch))
        assert seen.loss == pytest.approx(same.loss, abs=1e-5)
        assert seen.violated == same.violated
        np.testing.assert_allclose(small.items.values[:, :3], whole.items.values[:, 3:6], atol=1e-4)


def test_the_gradient_is_that_of_the_objective_at_fixed_weights():
    rng = np.random.default_rng(2)
    base, items = Matrix(rng.normal(size=(4, 15))), rng.normal(0, 0.5, (15, 16)).astype(np.float32)
    vectors = rng.normal(0, 0.5, (4, 16)).astype(np.float32)
    block = Block(
        np.arange(4),
        np.array([2, 3, 5, 6]),
        rng.integers(0, 15, 6),
        np.ones(6, dtype=np.float32),
        np.zeros(6, dtype=int),
    )
    weight = rank_weights(15)
    found = WholeCatalogue(base=base).gradient(block, vectors, items, weight)
    rows = np.repeat(np.arange(4), [2, 1, 2, 1])
    start = base.scores + vectors @ items.T

    def objective(x):
        total, scores = 0.0, base.scores + x @ items.astype(float).T
        for row, d in zip(rows, block.positives, strict=True):
            bad = [j for j in range(15) if j != d and start[row, j] + 1 > start[row, d]]
            total += weight[len(bad)] * sum(1 + scores[row, j] - scores[row, d] for j in bad) / max(len(bad), 1)
        return total

    x = vectors.astype(float)
    assert found.loss == pytest.approx(objective(x), abs=1e-4)
    for row in range(4):
        for f in range(16):
            step = np.zeros(x.shape)
            step[row, f] = 1e-3
            slope = (objective(x + step) - objective(x - step)) / 2e-3
            assert found.queries[row, f] == pytest.approx(-slope, abs=1e-4)
    # An item's row gets minus the derivative too: its coefficients times the vectors of the rows.
    moved = np.zeros(items.shape)
    np.add.at(moved, found.items.rows, found.items.coefficients[:, None] * vectors[found.items.sources])
    expected = np.zeros(items.shape)
    for row, d in zip(rows, block.positives, strict=True):
        bad = [j for j in range(15) if j != d and start[row, j] + 1 > start[row, d]]
        for j in bad:
            expected[j] -= weight[len(bad)] / len(bad) * vectors[row]
            expected[d] += weight[len(bad)] / len(bad) * vectors[row]
    np.testing.assert_allclose(moved, expected, atol=1e-5)


class Counted(Matrix):
    """A base that remembers how many scores it was asked for at once."""

    def __init__(self, scores):
        super().__init__(scores)
        self.most = 0

    def rows(self, queries):
        self.most = max(self.most, len(queries) * self.scores.shape[1])
        return super().rows(queries)


def test_rows_are_taken_in_pieces_that_fit_in_memory(monkeypatch):
    """However many rows a block has, and whatever the piece: the same gradient, lists and scores."""
    rng = np.random.default_rng(4)
    b, items = rng.normal(size=(150, 15)), rng.normal(0, 0.5, (15, 16)).astype(np.float32)
    vectors = rng.normal(0, 0.5, (150, 16)).astype(np.float32)
    ends = np.cumsum(rng.integers(1, 4, 150))
    positives, starts = rng.integers(0, 15, ends[-1]), rng.integers(0, 1 << 30, ends[-1])
    block = Block(rng.permutation(150), ends, positives, rng.random(ends[-1]).astype(np.float32), starts)
    table = pair_table(rng, 15)

    def everything(most, n_jobs=1):
        monkeypatch.setattr("slatewise.factors.scoring.MOST_SCORES", most)
        base = Counted(b)
        found = WholeCatalogue(base=base).gradient(block, vectors, items, rank_weights(15))
        moved = np.zeros(items.shape)
        np.add.at(moved, found.items.rows, found.items.coefficients[:, None] * vectors[found.items.sources])
        cascade = on_base(base, 15, table, pair=Semidefinite(table.segments[0]))
        top = cascade.top(np.arange(150), 15, executor=Executor(n_jobs))
        given = cascade.base_scores(top.items)
        return base.most, found.loss, found.violated, found.queries, moved, top.items, top.scores, given

    whole = everything(1 << 22)
    assert whole[0] == 150 * 15
    np.testing.assert_array_equal(whole[-1], np.take_along_axis(b.astype(np.float32), whole[5], axis=1))
    for most, asked in ((100, 90), (1, 15)):
        pieces = everything(most)
        assert pieces[0] == asked  # at least a row
        for same, different in zip(pieces[1:], whole[1:], strict=True):
            np.testing.assert_allclose(same, different, rtol=1e-4, atol=1e-5)
        for one, two in zip(everything(most, 1), everything(most, 2), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("term", "n_parts"), [(Semidefinite, 1), (Bilinear, 2), (Both, 3)])
def test_a_stage_scores_and_learns_by_the_formula(term, n_parts):
    rng = np.random.default_rng(3)
    b = rng.normal(size=(4, 10))
    base, pair, used = Matrix(b), term(Segment(0, 3, 1e-3, 10.0)), 3 * n_parts
    table = Table.zeros(10, padded(used), pair.segments)
    table.values[:, :used] = rng.normal(0, 0.6, (10, used))
    factors = on_base(base, 10, table, pair=pair).factors(4)
    before = np.argsort(-b, axis=1, kind="stable")[:, :3]

    def scores(values):
        first, second, third = values[:, :3], values[:, 3:6], values[:, 6:9]
        meeting = {
            Semidefinite: [(first, first)],
            Bilinear: [(first, second)],
            Both: [(first, first), (second, third)],
        }[term]
        moves = sum(moved @ listed.T for moved, listed in meeting)
        return b + sum(w * moves[:, before[:, place]].T for place, w in enumerate(WEIGHTS))

    start = table.values.astype(float)
    np.testing.assert_allclose(
        base.rows(np.arange(4)) + factors.queries.vectors(np.arange(4)) @ table.values.T, scores(start), atol=1e-5
    )
    pairs = TrainingPairs.of(np.arange(4), rng.integers(0, 10, 4), np.ones(4, dtype=np.float32))
    weight, at_start = rank_weights(10), scores(start)

    def objective(values):
        total, now = 0.0, scores(values)
        for q, d in zip(pairs.queries, pairs.items, strict=True):
            bad = [j for j in range(10) if j != d and at_start[q, j] + 1 > at_start[q, d]]
            total += weight[len(bad)] * sum(1 + now[q, j] - now[q, d] for j in bad) / max(len(bad), 1)
        return total

    BlockedEngine(WholeCatalogue(), weight, 64, Executor(1)).epoch(factors, pairs, np.random.default_rng(0))
    moved = table.values.astype(float) - start
    for row in range(10):
        for segment in (slice(part.start, part.stop) for part in pair.segments):
            slope = np.zeros(3)
            for f in range(3):
                step = np.zeros(start.shape)
                step[row, segment.start + f] = 1e-4
                slope[f] = (objective(start + step) - objective(start - step)) / 2e-4
            if np.linalg.norm(slope) > 1e-6:
                # The first step of AdaGrad goes down the slope, with a length that does not depend on it.
                way = moved[row, segment] / np.linalg.norm(moved[row, segment])
                np.testing.assert_allclose(way, -slope / np.linalg.norm(slope), atol=1e-2)
            else:
                assert not moved[row, segment].any()


def test_what_cannot_add_a_base_refuses_it():
    rng = np.random.default_rng(5)
    factors = on_base(Matrix(rng.normal(size=(4, 10))), 10).factors(4)
    pairs = TrainingPairs.of(np.arange(4), np.arange(4), np.ones(4, dtype=np.float32))
    for negatives in (SharedNegatives(3, 2), SharedNegatives(3, lists=np.zeros((4, 2), dtype=np.int64))):
        engine = BlockedEngine(negatives, rank_weights(10), 64, Executor(1))
        with pytest.raises(NotImplementedError, match="negatives: expected the whole catalogue where a base"):
            engine.epoch(factors, pairs, rng)
    with pytest.raises(NotImplementedError, match="engine: expected 'blocked' where a base scores first"):
        SampledEngine(Table.zeros(4, 16, ()), rank_weights(10), 9, Executor(1)).epoch(factors, pairs, rng)
