"""Pair terms beside queries of their own: scores and steps against the formula and finite differences."""

import numpy as np
import pytest

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights
from slatewise.factors.pair_terms import PAIR_TERMS, Bilinear, Both, ListedQueries, Semidefinite
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.stages import Shape
from tests.factors.reference import adagrad, shares

N = 3
WEIGHTS = np.array([1.0, 0.5, 1 / 3], dtype=np.float32)
S, SECOND, THIRD = (slice(N + 1 + n, 2 * N + 1 + n) for n in (0, N, 2 * N))
MEETING = {Semidefinite: [(S, S)], Bilinear: [(S, SECOND)], Both: [(S, S), (SECOND, THIRD)]}
"""Which columns of a moved item meet which of a listed one."""


def test_every_pair_term_is_judged():
    assert set(PAIR_TERMS.values()) == set(MEETING)


@pytest.mark.parametrize("term", MEETING)
def test_a_step_goes_through_the_lists(term):
    """What is inside the pair term moves along the whole gradient of the objective; U, V and b stay."""
    rng = np.random.default_rng(1)
    sizes = Shape(N, 4, 15, 0.3, 2.0, 0.3, 0.1, 10.0, term=term)
    queries, items = sizes.tables(1)
    used = sizes.pair_term.segments[-1].stop
    assert used == max(listed.stop for _, listed in MEETING[term])
    queries.values[:, :N] = rng.normal(0, 0.6, (4, N))
    items.values[:, :used] = rng.normal(0, 0.6, (15, used))
    lists = np.array([rng.choice(15, 3, replace=False) for _ in range(4)])
    factors = Factors(ListedQueries(IdQueries(queries), items, sizes.pair_term, lists, WEIGHTS), items)
    pairs = TrainingPairs.of(rng.integers(0, 4, 9), rng.integers(0, 15, 9), np.ones(9, dtype=np.float32))
    U, before = queries.values.astype(float), items.values.astype(float)

    def scores(Z):
        own = U[:, :N] @ Z[:, :N].T + Z[:, N]
        parts = [np.einsum("j,qjf,df->qd", WEIGHTS.astype(float), Z[lists][..., b], Z[:, a]) for a, b in MEETING[term]]
        return own + sum(parts)

    vectors = factors.queries.vectors(np.arange(4))
    np.testing.assert_allclose(vectors @ items.values.T, scores(before), atol=1e-5)
    pushed = [shares(vectors[q].astype(float), before, d) for q, d in zip(pairs.queries, pairs.items, strict=True)]

    def objective(Z):
        f = scores(Z)
        parts = zip(pairs.queries, pairs.items, pushed, strict=True)
        return sum(part * (1 - f[q, d] + f[q, j]) for q, d, share in parts for j, part in share.items())

    gradient = np.zeros(before.shape)
    for row in range(15):
        for f in range(N + 1, used):
            there = np.zeros(before.shape)
            there[row, f] = 1e-6
            gradient[row, f] = -(objective(before + there) - objective(before - there)) / 2e-6
    moving = [(part.start, part.stop, 0.1, 10.0) for part in sizes.pair_term.segments]
    expected, _ = adagrad(before, np.zeros((15, len(moving))), gradient, moving)
    kept = queries.values.copy()
    BlockedEngine(WholeCatalogue(), rank_weights(15), 64, Executor(1)).epoch(factors, pairs, np.random.default_rng(0))
    np.testing.assert_allclose(items.values, expected, atol=1e-4)
    np.testing.assert_array_equal(queries.values, kept)
