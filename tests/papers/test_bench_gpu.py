"""What the benchmark of a GPU counts: a row that says "exact" must have a judge that can tell."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'slatewise[gpu]'")


def test_counts_by_float64_sums_and_what_rounding_may_make_of_them():
    from slatewise_papers.bench.gpu_warp import counts_between

    rng = np.random.default_rng(0)
    u, v = rng.normal(0, 0.5, (7, 16)), rng.normal(0, 0.5, (5000, 16))
    positives = rng.integers(0, 5000, 7)
    v[11] = v[positives[0]] - u[0] / (u[0] @ u[0])  # the score of pair 0's own item less 1: at the bar
    exact, least, most = counts_between(*(torch.from_numpy(part) for part in (u, v, positives)))
    scores = u @ v.T - (u * v[positives]).sum(1)[:, None] + 1
    scores[0, 11] = 0.0
    np.testing.assert_array_equal((most - least)[0], 1 + (np.abs(np.delete(scores[0], 11)) < 1e-6).sum())
    np.testing.assert_array_equal(exact[1:], (scores[1:] > 0).sum(1))
    assert (least <= exact).all()
    assert (exact <= most).all()
