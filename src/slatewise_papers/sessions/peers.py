"""Peers that have no order of items: ItemKNN, EASE, and the factors of implicit and lightfm-next.

What a session asks is a bag of its last WINDOW items, each weighing ``decay ** age``. Each function is as those of
``methods.py`` are. Where ``decay`` is of the queries alone, settings that differ in nothing else share a fit.
Libraries are imported when a peer is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_array, csr_matrix, diags_array

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.executor import thread_count
from slatewise.data.records import Prefixes, Sessions
from slatewise_papers.sessions.data import LISTED, Rank

WINDOW = 20
MOST_ON_CPU = 20_000
"""Items of which EASE's matrix is inverted without a GPU."""
N_COMPONENTS = 64
ROWS_AT_ONCE = 256


def library(name: str) -> Callable[[int], str | None]:
    """Return what says why a method that uses a library cannot be run."""
    return lambda n_items: None if find_spec(name) is not None else f"{name} is not installed"


def inverse(n_items: int) -> str | None:
    """Say why EASE cannot be run."""
    if n_items <= MOST_ON_CPU or gpu() is not None:
        return None
    return f"more than {MOST_ON_CPU} items want torch and a GPU"


def seen_in(log: Sessions, n_items: int) -> csr_array:
    """Return 1 where a session has an item, (sessions, items)."""
    rows = np.repeat(np.arange(len(log)), np.diff(log.offsets))
    items = log.items[log.offsets[0] : log.offsets[-1]]
    found = csr_array((np.ones(len(items), dtype=np.float32), (rows, items)), shape=(len(log), n_items))
    found.data[:] = 1.0
    return found


def bags(questions: Prefixes, n_items: int, decay: float) -> csr_array:
    """Return what prefixes ask, (prefixes, items); a decay of 0 leaves the last item alone."""
    lengths = np.minimum(questions.ends - questions.starts, WINDOW)
    rows = np.repeat(np.arange(len(questions), dtype=np.int32), lengths)
    ages = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    items = questions.items[np.repeat(questions.ends, lengths) - 1 - ages].astype(
        np.int32
    )  # lightfm-next takes no others
    weights = (decay ** ages.astype(np.float64)).astype(np.float32)
    found = csr_array((weights, (rows, items)), shape=(len(questions), n_items))
    found.eliminate_zeros()
    return found


def best_first(scores: Singles) -> Ints:
    """Return the LISTED best columns of each row, best first; of equal ones any."""
    n_listed = min(LISTED, scores.shape[1])
    best = np.argpartition(-scores, n_listed - 1, axis=1)[:, :n_listed]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _ranked(questions: Prefixes, scores: Callable[[Prefixes], Singles]) -> Ints:
    parts = [questions[first : first + ROWS_AT_ONCE] for first in range(0, len(questions), ROWS_AT_ONCE)]
    return np.concatenate([best_first(scores(part)) for part in parts])


@lru_cache(maxsize=1)
def _cosines(log: Sessions, n_items: int, shrink: float) -> tuple[csr_array, Singles]:
    seen = seen_in(log, n_items)
    counts = np.asarray(seen.sum(axis=0))
    both = csr_array(seen.T @ seen)
    rows = np.repeat(np.arange(n_items), np.diff(both.indptr))
    both.data /= np.sqrt(counts[rows] * counts[both.indices]) + shrink
    both.data[rows == both.indices] = 0.0
    return both, (1e-12 * counts).astype(np.float32)


def item_knn(log: Sessions, n_items: int, shrink: float, decay: float) -> Rank:
    """Rank by the cosine of items over sessions; what is like none of a bag's items follows by popularity."""
    both, popular = _cosines(log, n_items, shrink)

    def scores(questions: Prefixes) -> Singles:
        found = (bags(questions, n_items, decay) @ both).toarray()
        return np.where(found == 0.0, popular, found)

    return lambda questions: _ranked(questions, scores)


def ease(log: Sessions, n_items: int, l2: float, decay: float) -> Rank:
    """Fit EASE (Steck 2019): each item from the others of a session by ridge regression, in closed form."""
    if gpu() is None:
        weights = _ridge(log, n_items, l2)
        return lambda questions: _ranked(questions, lambda part: bags(part, n_items, decay) @ weights)
    torch: Any = import_module("torch")

    def rank(questions: Prefixes) -> Ints:
        bag = bags(questions, n_items, decay)
        parts = (torch.from_numpy(part.astype(kind)) for part, kind in _of_csr(bag))
        scores = torch.sparse_csr_tensor(*parts, bag.shape).cuda() @ _ridge_on_gpu(log, n_items, l2)
        return scores.topk(min(LISTED, n_items), dim=1).indices.cpu().numpy()

    _ridge_on_gpu(log, n_items, l2)
    return rank


def _gram(log: Sessions, n_items: int, l2: float) -> csr_array:
    seen = seen_in(log, n_items)
    return csr_array(seen.T @ seen + np.float32(l2) * diags_array(np.ones(n_items, dtype=np.float32)))


@lru_cache(maxsize=1)
def _ridge(log: Sessions, n_items: int, l2: float) -> Singles:
    inverse = np.linalg.inv(_gram(log, n_items, l2).toarray())
    weights = (inverse / -np.diag(inverse)).astype(np.float32)
    np.fill_diagonal(weights, 0.0)
    return weights


@lru_cache(maxsize=1)
def _ridge_on_gpu(log: Sessions, n_items: int, l2: float) -> Any:
    torch: Any = import_module("torch")
    gram = _gram(log, n_items, l2).tocoo()
    places = torch.from_numpy(np.stack([gram.row, gram.col]).astype(np.int64))
    dense = torch.sparse_coo_tensor(places, torch.from_numpy(gram.data), gram.shape).cuda().to_dense()
    root = torch.linalg.cholesky_ex(dense)[0]
    del dense
    weights = torch.cholesky_inverse(root)
    del root
    weights.div_(-weights.diagonal().clone())
    weights.fill_diagonal_(0.0)
    return weights


def forget() -> None:
    """Let go of what settings share."""
    for kept in (_cosines, _ridge, _ridge_on_gpu, _als, _bpr):
        kept.cache_clear()


def _of_csr(matrix: csr_array) -> list[tuple[Any, Any]]:
    return [(matrix.indptr, np.int64), (matrix.indices, np.int64), (matrix.data, np.float32)]


def gpu() -> Any:
    """Return the GPU as torch calls it; None where there is none."""
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    return torch.device("cuda") if torch.cuda.is_available() else None


@lru_cache(maxsize=1)
def _als(log: Sessions, n_items: int, alpha: float, regularization: float) -> Any:
    kind: Any = import_module("implicit.cpu.als").AlternatingLeastSquares
    threads = thread_count()
    model = kind(2 * N_COMPONENTS, regularization, alpha, iterations=15, num_threads=threads, random_state=0)
    model.fit(csr_matrix(seen_in(log, n_items)), show_progress=False)
    return model


def implicit_als(log: Sessions, n_items: int, alpha: float, regularization: float, decay: float) -> Rank:
    """Fit implicit's ALS on sessions; a bag's row is solved for, with its weights as confidences."""
    model = _als(log, n_items, alpha, regularization)

    def rank(questions: Prefixes) -> Ints:
        rows, listed = np.arange(len(questions)), min(LISTED, n_items)
        asks = csr_matrix(bags(questions, n_items, decay))
        return model.recommend(rows, asks, listed, filter_already_liked_items=False, recalculate_user=True)[0]

    return rank


@lru_cache(maxsize=1)
def _bpr(log: Sessions, n_items: int, learning_rate: float, regularization: float) -> Any:
    kind: Any = import_module("implicit.cpu.bpr").BayesianPersonalizedRanking
    threads = thread_count()
    model = kind(2 * N_COMPONENTS, learning_rate, regularization, iterations=100, num_threads=threads, random_state=0)
    model.fit(csr_matrix(seen_in(log, n_items)), show_progress=False)
    return model


def implicit_bpr(log: Sessions, n_items: int, learning_rate: float, regularization: float, decay: float) -> Rank:
    """Fit implicit's BPR on sessions, which has no fold-in: a bag's row is the sum of its items' rows."""
    model = _bpr(log, n_items, learning_rate, regularization)
    factors, biases = model.item_factors[:, :-1], model.item_factors[:, -1]
    return lambda questions: _ranked(
        questions, lambda part: (bags(part, n_items, decay) @ factors) @ factors.T + biases
    )


def lightfm_warp(log: Sessions, n_items: int, decay: float, learning_rate: float, epochs: int) -> Rank:
    """Fit lightfm-next's WARP: every prefix is a user, its bag that user's features, the next item its only one."""
    questions = log.prefixes()
    taken = coo_matrix(
        (np.ones(len(questions), dtype=np.float32), (np.arange(len(questions)), questions.next_items)),
        (len(questions), n_items),
    )
    kind: Any = import_module("lightfm").LightFM
    model = kind(N_COMPONENTS, loss="warp", learning_rate=learning_rate, max_sampled=30, random_state=0)
    features = csr_matrix(bags(questions, n_items, decay))
    model.fit(taken, user_features=features, epochs=epochs, num_threads=thread_count())
    of_query, of_item, biases = model.user_embeddings, model.item_embeddings, model.item_biases
    return lambda questions: _ranked(
        questions, lambda part: (bags(part, n_items, decay) @ of_query) @ of_item.T + biases
    )
