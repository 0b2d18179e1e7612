"""Lists made on a GPU against those of the CPU."""

import numpy as np
import pytest
from scipy.sparse import random_array

from slatewise.core.running.executor import Executor
from slatewise.factors.engines.gpu import TorchDevice
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Table
from tests.factors.gpu_cases import KINDS, case, on_grid

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")
if not torch.cuda.is_available():
    pytest.skip("torch finds no GPU", allow_module_level=True)

GPU = TorchDevice("cuda")


@pytest.mark.parametrize("excluded", [False, True])
def test_lists_of_a_large_catalogue_are_those_of_the_cpu(excluded):
    rng = np.random.default_rng(0)
    queries, items = on_grid(rng, (700, 64), 16), on_grid(rng, (30_011, 64), 16)
    cascade = Cascade((Factors(IdQueries(Table.fixed(queries)), Table.fixed(items)),))
    exclude = random_array((700, 30_011), density=0.01, format="csr", rng=rng) if excluded else None
    found, again = (GPU.top(cascade, np.arange(700), 20, exclude) for _ in range(2))
    expected = cascade.top(np.arange(700), 20, exclude, Executor(4))
    np.testing.assert_array_equal(found.items, expected.items)  # equal scores too: sums of a grid are exact
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.items, again.items)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_every_kind_of_query_are_those_of_the_cpu(kind):
    factors, pairs, _ = case(kind)
    asked = np.unique(pairs.queries)
    found, expected = GPU.top(Cascade((factors,)), asked, 10, None), Cascade((factors,)).top(asked, 10)
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5, atol=1e-5)


def test_memory_that_runs_out_means_fewer_queries_at_once(monkeypatch):
    monkeypatch.setattr("slatewise.factors.gpu.topk.SCORES_AT_ONCE", 1 << 50)
    rng = np.random.default_rng(0)
    values = on_grid(rng, (400_000, 16), 4)
    cascade = Cascade((Factors(IdQueries(Table.fixed(values)), Table.fixed(values)),))
    found = GPU.top(cascade, np.arange(400_000), 3, None)  # all scores at once: 640 GB
    expected = cascade.top(np.arange(0, 400_000, 9999), 3, executor=Executor(4))
    np.testing.assert_array_equal(found.items[::9999], expected.items)
