"""What latent structured ranking is compared with, every method under the same protocol.

popularity      artists by how often they came next
SVD, NMF        of log(1 + counts) of pairs, n components; raw counts are five points worse
Rocchio         pseudo-relevance feedback: a stage whose S is V times a constant, (U q + beta sum_j w_j V dbar_j).(V d)
one-vs-rest     a logistic regression per label
rank SVM        w_d . x, trained on all labels that violate a margin, alike whatever their rank
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from slatewise.core.arrays import Floats, Ints
from slatewise.core.running.executor import Executor
from slatewise.factors.engines.blocked import BlockedEngine, WholeCatalogue, rank_weights, step_size
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.queries import IdQueries
from slatewise.factors.scoring import Factors
from slatewise.factors.tables import Segment, Table, padded
from slatewise_papers.cstar.scores import fit_logistic
from slatewise_papers.framework.arrays import Scorer
from slatewise_papers.lasr.data import ArtistPairs
from slatewise_papers.lasr.lists import Factored, Lists

NMF_ROUNDS = 150
_decomposition: Any = import_module("sklearn.decomposition")
_exceptions: Any = import_module("sklearn.exceptions")


def popularity(train: ArtistPairs, n_artists: int) -> Factored:
    """Rank all artists alike for every query."""
    counts = np.bincount(train.items, minlength=n_artists).astype(np.float64)
    return Factored(np.ones((n_artists, 1)), counts[:, None])


def svd(train: ArtistPairs, n_artists: int, n_components: int) -> Factored:
    """Rank by the best approximation of the counts' logarithms of this rank."""
    counts = log_counts(train, n_artists)
    # The first vector is given, so that the result is always the same.
    left, values, right = svds(counts, k=min(n_components, n_artists - 1), v0=np.ones(n_artists))
    return Factored(left * values, right.T)


def nmf(train: ArtistPairs, n_artists: int, n_components: int) -> Factored:
    """Rank by the best approximation that has no negative factor."""
    model = _decomposition.NMF(n_components, init="nndsvda", max_iter=NMF_ROUNDS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _exceptions.ConvergenceWarning)
        left = model.fit_transform(log_counts(train, n_artists))
    return Factored(left, model.components_.T)


def rocchio(first: Factored, beta: float, k: int = 20) -> Lists:
    """Add a weighted sum over each query's own list to its vector; the last columns are 1 and the biases."""
    weights = (1.0 / np.arange(1, k + 1)).astype(np.float32)

    def lists(numbers: Ints, length: int) -> Ints:
        listed = first.item_rows[first.lists(numbers, k)][:, :, :-1]
        moved = first.query_rows[numbers]
        moved[:, :-1] += beta * np.einsum("j,qjf->qf", weights[: listed.shape[1]], listed)
        return Factored(moved, first.item_rows).lists(np.arange(len(numbers)), length)

    return lists


def log_counts(train: ArtistPairs, n_artists: int) -> csr_array:
    """Return log(1 + count) of every pair."""
    ones = np.ones(len(train))
    counts = csr_array((ones, (train.queries, train.items)), shape=(n_artists, n_artists))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts


def one_vs_rest(X: Floats, Y: Floats, strength: float) -> Scorer:
    """Fit a logistic regression per label; ``strength`` is C times the features' total variance."""
    return fit_logistic(X, Y, strength / max(float(X.var(axis=0).sum()), 1e-300))


def rank_svm(X: Floats, Y: Floats, step: float, max_norm: float, epochs: int, seed: int = 0) -> Scorer:
    """Descend on the hinge of all (label, other label) pairs; every label has weights of its own."""
    n_rows, width = X.shape
    queries = Table.zeros(n_rows, padded(width + 1), ())
    queries.values[:, :width], queries.values[:, width] = X, 1.0
    items = Table.zeros(
        Y.shape[1], padded(width + 1), (Segment(0, width, step, max_norm), Segment(width, width + 1, step))
    )
    rows, labels = (part.astype(np.int64) for part in np.nonzero(Y))
    pairs = TrainingPairs.of(rows, labels, np.ones(len(rows), dtype=np.float32))
    engine = BlockedEngine(WholeCatalogue(), rank_weights(Y.shape[1], 0.0), step_size(len(pairs)), Executor.of(None))
    for epoch in range(epochs):
        engine.epoch(Factors(IdQueries(queries), items), pairs, np.random.default_rng((seed, epoch)))
    weights = items.values.astype(np.float64)
    return lambda rows: rows @ weights[:, :width].T + weights[:, width]
