"""Ranking on a device, on CPU tensors, against the cascade of the CPU."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.gpu import TorchDevice
from slatewise.factors.pair_terms import Bilinear, Both, Semidefinite
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.stages import Shape
from slatewise.factors.tables import Segment
from tests.factors.gpu_cases import KINDS, N, case, on_grid

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")

HERE = TorchDevice("cpu")


def check(cascade, numbers, k, exclude=None):
    expected = cascade.top(numbers, k, exclude, Executor(1))
    found = HERE.top(cascade, numbers, k, exclude)
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 10, 70])
def test_lists_are_those_of_the_cascade(kind, k):
    factors, pairs, _ = case(kind)
    asked = np.unique(pairs.queries)
    hidden = csr_array(np.random.default_rng(0).random((len(asked), 70)) < 0.3)
    for exclude in (None, hidden):
        check(Cascade((factors,)), asked, k, exclude)


def test_equal_scores_rank_by_number_and_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    queries, items = Shape(3, 40, 900, 0.3, 2.0, 0.3, 0.1, 1.0).tables(0)
    queries.values[:, :3], items.values[:, :3] = on_grid(rng, (40, 3), 1), on_grid(rng, (900, 3), 1)
    cascade = Cascade((Factors(IdQueries(queries), items),))
    monkeypatch.setattr("slatewise.factors.gpu.topk.SCORES_AT_ONCE", 7000)
    check(cascade, np.arange(40), 25)


@pytest.mark.parametrize("term", [Semidefinite, Bilinear, Both])
@pytest.mark.parametrize("stages", [2, 3])
def test_later_stages_are_moved_by_the_lists_of_those_before(stages, term):
    rng = np.random.default_rng(1)
    parts = []
    for _ in range(stages):
        queries, items = Shape(N, 20, 150, 0.3, 2.0, 0.3, 0.1, 1.0, term=term).tables(1)
        used = items.segments[-1].stop
        queries.values[:, :N], items.values[:, :used] = on_grid(rng, (20, N)), on_grid(rng, (150, used))
        parts.append(Factors(IdQueries(queries), items))
    weights = np.array([1, 0.5, 0.25], dtype=np.float32)
    check(Cascade(tuple(parts), term(Segment(N + 1, 2 * N + 1, 0.0)), weights), np.arange(20), 8)


def test_nan_has_no_place():
    from slatewise.factors.gpu.topk import GROUP, best_of

    scores = torch.full((1, 3 * GROUP), -torch.inf)
    scores[0, 3], scores[0, 4], scores[0, GROUP], scores[0, GROUP + 1] = torch.nan, 0.5, 2.0, 1.0
    items, best = torch.empty((1, 4), dtype=torch.int64), torch.empty((1, 4))
    best_of(scores, items, best)
    assert items.tolist() == [[GROUP, GROUP + 1, 4, -1]]
    assert best.tolist() == [[2.0, 1.0, 0.5, -np.inf]]
