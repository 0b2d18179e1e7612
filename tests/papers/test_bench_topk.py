"""The benchmark's rivals compute the same thing: a ratio of times means nothing otherwise."""

from importlib import import_module

import numpy as np
import pytest

from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Cascade, Factors
from slatewise.factors.tables import Table
from slatewise_papers.bench.topk import N_COMPONENTS, K, vectors
from slatewise_papers.bench.warp import factors_of, first_factors


def test_implicit_finds_the_same_items() -> None:
    topk = pytest.importorskip("implicit.cpu.topk").topk
    queries, items = vectors(40, 0), vectors(500, 1)
    left, right = (np.ascontiguousarray(part[:, : N_COMPONENTS + 1]) for part in (queries, items))
    theirs, _ = topk(right, left, K, num_threads=1)
    ours = Cascade((Factors(IdQueries(Table.fixed(queries)), Table.fixed(items)),)).top(np.arange(40), K)
    np.testing.assert_array_equal(ours.items, theirs)


def test_the_factors_taken_from_lightfm_score_as_it_does() -> None:
    pytest.importorskip("lightfm")
    from scipy.sparse import coo_matrix

    rng = np.random.default_rng(0)
    seen = coo_matrix((np.ones(200, dtype=np.float32), rng.integers(0, 30, (2, 200))), shape=(30, 30))
    model = import_module("lightfm").LightFM(N_COMPONENTS, loss="warp", random_state=0).fit(seen, epochs=2)
    factors = factors_of(model, first_factors(30))
    for query in range(30):
        ours = factors.items.values @ factors.queries.vectors(np.array([query]))[0]
        theirs = model.predict(query, np.arange(30)) - model.user_biases[query]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
