"""LETOR-like queries: graded documents whose hidden scorer has products of features in it.

    u = w.x + sum_j v_j x_a(j) x_b(j) + noise ,     grade = number of thresholds below u, 0 to 4.

The thresholds are the same for all queries. A higher noise-free score makes every grade more likely to be exceeded,
so sorting by it is the best ranking for any gain that grows with the grade; without noise it is perfect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.datasets.splits import RandomState

_GRADE_SHARES = (0.55, 0.75, 0.88, 0.96)
"""Shares of documents below the grades 1 to 4: as in web search, most are irrelevant."""


@dataclass(frozen=True, eq=False)
class MadeQueries:
    """Rows ``X`` with grades ``y`` in lists ``qid``, and the noise-free ``scores`` that rank them best."""

    X: Floats
    y: Ints
    qid: Ints
    scores: Floats
    thresholds: Floats

    def best_ranking(self) -> Ints:
        """Return row numbers, list after list, best first inside each list."""
        return np.lexsort((-self.scores, self.qid))


def make_queries(
    n_queries: int = 100,
    n_features: int = 10,
    *,
    shortest: int = 5,
    longest: int = 40,
    n_products: int = 5,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> MadeQueries:
    """Draw queries with ``shortest`` to ``longest`` documents each; features lie in [0, 1].

    Examples
    --------
    >>> queries = make_queries(n_queries=50, random_state=0)
    >>> queries.X.shape[1], sorted(set(queries.y.tolist()))
    (10, [0, 1, 2, 3, 4])
    >>> first = queries.best_ranking()[: int((queries.qid == 0).sum())]
    >>> bool((np.diff(queries.y[first]) <= 0).all())
    True
    """
    if not 1 <= shortest <= longest:
        raise ValueError(f"shortest: expected 1 <= shortest <= longest, found {shortest} and {longest}")
    if n_queries < 1 or n_features < 1:
        raise ValueError(f"n_queries, n_features: expected at least 1 of each, found {n_queries}, {n_features}")
    if not noise >= 0:
        raise ValueError(f"noise: expected a number >= 0, found {noise}")
    rng = np.random.default_rng(random_state)
    lengths = rng.integers(shortest, longest, size=n_queries, endpoint=True)
    qid = np.repeat(np.arange(n_queries, dtype=np.int64), lengths)
    # A query shifts all its documents: some queries have good documents, some hardly any.
    level = rng.normal(scale=0.5, size=(n_queries, n_features))
    X = 1 / (1 + np.exp(-level[qid] - rng.normal(size=(len(qid), n_features))))
    linear = rng.normal(size=n_features)
    product = 2 * rng.normal(size=n_products)
    left, right = rng.integers(0, n_features, size=(2, n_products))
    scores = X @ linear + (X[:, left] * X[:, right]) @ product
    noisy = scores + noise * rng.normal(size=len(scores))
    thresholds = np.quantile(noisy, _GRADE_SHARES)
    y = np.searchsorted(thresholds, noisy, side="left").astype(np.int64)
    return MadeQueries(X, y, qid, scores, thresholds)
