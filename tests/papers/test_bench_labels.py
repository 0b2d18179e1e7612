"""The benchmark's rival computes the same thing: a ratio of times means nothing otherwise."""

import numpy as np

from slatewise.inference import subset_log_odds
from slatewise_papers.bench.labels import plain_log_odds, tagged_rows


def test_plain_sums_over_core_settings_give_the_same_log_odds() -> None:
    rng = np.random.default_rng(0)
    core, pair = np.array([4, 0, 7]), rng.normal(size=(3, 12))
    pair[:, core] = np.triu(pair[:, core], 1) + np.triu(pair[:, core], 1).T
    for _ in range(20):
        s, known = rng.normal(size=12), rng.integers(-1, 2, 12).astype(np.int8)
        ours = subset_log_odds(s, pair, core, known, n_jobs=1)[0]
        np.testing.assert_allclose(plain_log_odds(s, pair, core, known), ours, atol=1e-11)


def test_rows_have_some_labels_and_words() -> None:
    X, Y = tagged_rows(200, 300, n_features=400, seed=0)
    assert X.shape == (200, 400)
    assert Y.shape == (200, 300)
    counts = Y.sum(axis=0)
    assert counts[:20].mean() > 5 * counts[200:].mean() > 0  # few labels are common
