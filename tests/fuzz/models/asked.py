"""Every public method of an estimator with inputs that fit it, and what its answer has to look like.

Inputs are made from what the estimator says of itself (features, labels, ids), so that a file that was altered into
another consistent model is asked what that model can answer.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

ROWS = 5
MOST_COLUMNS = 4096
"""Nobody has rows of more columns here."""


class Question(NamedTuple):
    """A method, called, and what is wrong with its answer: "" where nothing is."""

    method: str
    call: Callable[[], Any]
    fault: Callable[[Any], str]
    may_refuse: bool = False
    """Whether the parameters may be refused by name: the method trains with them."""


class Base:
    """A scorer of any ids: numbers that depend on nothing but the two ids."""

    def scores(self, queries: Any, items: Any) -> Any:
        """Return the score of every query with every item."""
        seeds = [zlib.crc32(f"{query}".encode(errors="replace")) for query in np.asarray(queries).tolist()]
        own = [zlib.crc32(f"{item}".encode(errors="replace")) for item in np.asarray(items).tolist()]
        return (np.array(seeds, dtype=np.int64)[:, None] ^ np.array(own, dtype=np.int64)) % 997 / 100.0


def array(shape: tuple[int, ...], kind: str = "f", finite: bool = True) -> Callable[[Any], str]:
    """Expect an array of a shape and a kind, of finite numbers."""

    def fault(found: Any) -> str:
        if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype.kind not in kind:
            return f"expected {kind!r} of shape {shape}, found {_outline(found)}"
        if found.dtype.kind == "f" and (np.isnan(found).any() or (finite and not np.isfinite(found).all())):
            return f"expected finite numbers, found {found[~np.isfinite(found)][:3]}"
        return ""

    return fault


def every(*faults: Callable[[Any], str]) -> Callable[[Any], str]:
    """Expect a sequence with one answer for each."""

    def fault(found: Any) -> str:
        if len(found) != len(faults):
            return f"expected {len(faults)} answers, found {len(found)}"
        return "; ".join(text for text in (one(each) for one, each in zip(faults, found, strict=True)) if text)

    return fault


def answer(shape: tuple[int, int], kind: str) -> Callable[[Any], str]:
    """Expect rankings of equally long lists."""
    both = every(array(shape, kind), array(shape))
    return lambda found: both([found.ids, found.scores])


def number(least: float = -np.inf, most: float = np.inf) -> Callable[[Any], str]:
    """Expect a finite float in a range."""

    def fault(found: Any) -> str:
        right = type(found) is float and np.isfinite(found) and least <= found <= most
        return "" if right else f"expected a number from {least} to {most}, found {found!r}"

    return fault


def shares(found: Any) -> str:
    """Expect a share for every depth."""
    right = isinstance(found, dict) and all(0.0 <= share <= 1.0 for share in found.values())
    return "" if right else f"expected shares, found {found!r}"


def anything(found: Any) -> str:
    """Expect no exception."""
    return ""


def questions(estimator: Any, folder: Path) -> Iterator[Question]:
    """Yield every question for this estimator."""
    yield Question("save", lambda: estimator.save(folder / "again.safetensors"), anything)
    yield from _ASKED[type(estimator).__name__](estimator, folder)


def _outline(found: Any) -> str:
    return f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__


def _rows(n_rows: int, n_columns: int) -> Any:
    return np.abs(np.random.default_rng(1).normal(size=(n_rows, n_columns)))


# --- rows of queries -------------------------------------------------------------------------------------------------


def _query_ranker(ranker: Any, folder: Path) -> Iterator[Question]:
    if ranker.n_features_in_ > MOST_COLUMNS:
        return
    X, qid, y = _rows(48, ranker.n_features_in_), np.repeat([3, 1], 24), np.tile(np.arange(4), 12)
    yield Question("predict", lambda: ranker.predict(X), array((48,)))
    yield Question("rank", lambda: np.sort(np.concatenate(list(ranker.rank(X, qid)))), array((48,), "i"))
    yield Question("score", lambda: ranker.score(X, y, qid), number(0.0, 1.0))
    if type(ranker).__name__ == "MatchingRanker":
        rated = np.resize(ranker.ratings_, 48)
        yield Question("loss", lambda: ranker.loss(X, rated, qid), number())


# --- labels ----------------------------------------------------------------------------------------------------------


def _cstar(ranker: Any, folder: Path) -> Iterator[Question]:
    if ranker.n_features_in_ > MOST_COLUMNS:
        return
    X, n_labels = _rows(ROWS, ranker.n_features_in_), int(ranker.pair_.shape[1])
    known = np.full((ROWS, n_labels), -1)
    known[:, 0] = np.arange(ROWS) % 2
    Y: Any = (np.arange(ROWS)[:, None] + np.arange(n_labels)) % 2
    Y[:, 0] |= Y.sum(axis=1) == 0
    one_class = not ranker.multilabel_
    if one_class:
        Y = np.resize(ranker.classes_, ROWS)
    two, counts = min(2, n_labels), np.resize(np.arange(1, n_labels + 1), ROWS)
    full = (ROWS, n_labels)
    yield Question("label_scores", lambda: ranker.label_scores(X), array(full))
    if hasattr(ranker, "base_scores"):
        yield Question("base_scores", lambda: ranker.base_scores(X), array(full))
    yield Question("decision_function", lambda: ranker.decision_function(X), array(full, finite=False))
    yield Question("decision_function", lambda: ranker.decision_function(X, two, known), array(full, finite=False))
    kind = ranker.label_names_.dtype.kind
    yield Question("rank", lambda: ranker.rank(X).ids, array((ROWS, ranker.k_), kind))
    yield Question("rank", lambda: ranker.rank(X).scores, array((ROWS, ranker.k_), finite=False))
    lists = every(*(array((int(count),), kind) for count in counts))
    yield Question("rank", lambda: ranker.rank(X, counts).lists(), lists)
    predicted = array((ROWS,), "biufU") if one_class else array(full, "i")
    yield Question("predict", lambda: ranker.predict(X), predicted)
    yield Question("predict_count", lambda: ranker.predict_count(X), array((ROWS,), "i"))
    yield Question("score", lambda: ranker.score(X, Y), number(0.0, 1.0))
    yield Question("score", lambda: ranker.score(X, Y, count_known=False), number(0.0, 1.0))
    yield Question("next_question", lambda: ranker.next_question(X, known, two), array((ROWS,), "i"))
    yield Question("explain", lambda: ranker.explain(X), anything)
    if not ranker.needs_count:
        yield Question("predict_proba", lambda: ranker.predict_proba(X, known), array(full))
    for decision in ("subset", "hamming", "count") if not ranker.needs_count and not one_class else ():
        yield Question("predict", partial(ranker.predict, X, decision=decision), predicted)


# --- distances -------------------------------------------------------------------------------------------------------


def _metric(ranker: Any, folder: Path) -> Iterator[Question]:
    if ranker.n_features_in_ > MOST_COLUMNS:
        return
    X, (n_items, rank) = _rows(ROWS, ranker.n_features_in_), ranker.catalogue_.shape
    width = ranker.components_.shape[1]
    yield Question("transform", lambda: ranker.transform(X), array((ROWS, rank)))
    yield Question("rank", lambda: ranker.rank(X, min(3, n_items)).ids, array((ROWS, min(3, n_items)), "i"))
    yield Question("distances", lambda: ranker.distances(X), array((ROWS, n_items)))
    yield Question("scores", lambda: ranker.scores(X, X), array((ROWS, ROWS)))
    yield Question("get_metric", lambda: ranker.get_metric()(X[0], X[1]), number(0.0, np.inf))
    yield Question("metric_", lambda: ranker.metric_, array((width, width)))
    yield Question("get_feature_names_out", ranker.get_feature_names_out, array((rank,), "O"))
    threshold = ranker.get_params()["loss__threshold"]
    relevant = 1.0 if threshold is None else max(1.0, float(threshold))
    wanted = csr_array(np.resize([relevant, 0.0], (ROWS, n_items)))  # what is "ignored" is what a sparse one lacks
    yield Question("score", lambda: ranker.score(X, relevance=wanted), number(0.0, 1.0))
    if hasattr(ranker, "catalogue_labels_"):
        labels = ranker.catalogue_labels_
        y = ranker.classes_[np.resize(labels, ROWS)] if labels.ndim == 1 else np.ones((ROWS, labels.shape[1]), int)
        yield Question("score", lambda: ranker.score(X, y), number(0.0, 1.0), bool(labels.ndim == 2))


# --- catalogues ------------------------------------------------------------------------------------------------------


def _latent(ranker: Any, folder: Path) -> Iterator[Question]:
    by_id = type(ranker).__name__ == "LatentRanker"
    if ranker.n_features_in_ > MOST_COLUMNS or (by_id and not len(ranker.query_ids_)):
        return
    queries = np.resize(ranker.query_ids_, ROWS) if by_id else _rows(ROWS, ranker.n_features_in_)
    k = min(4, len(ranker.item_ids_) - 1)
    first = answer((1, k), ranker.item_ids_.dtype.kind)
    yield Question("rank", lambda: ranker.rank(queries[:1], k, stage=0), first)
    yield Question("item_vectors", lambda: ranker.item_vectors(0)[:, 0], array((len(ranker.item_ids_),)))
    wanted = np.resize(ranker.item_ids_, ROWS)
    yield from _factors(ranker, queries, wanted, folder)
    if by_id:
        sets = [wanted[:2].tolist(), wanted[2:3].tolist()]
        folded = array((2, ranker.n_components_))
        yield Question("fold_in", lambda: ranker.fold_in(sets).vectors, folded)
    yield Question("partial_fit", lambda: ranker.partial_fit(queries, wanted), anything, may_refuse=True)


def _session_ranker(ranker: Any, folder: Path) -> Iterator[Question]:
    items = ranker.item_ids_
    queries, wanted = [np.resize(items, row + 1).tolist() for row in range(ROWS)], np.resize(items, ROWS)
    if "item_factors_" in vars(ranker):
        yield from _factors(ranker, queries, wanted, folder)
        yield Question("item_vectors", lambda: ranker.item_vectors()[:, 0], array((len(items),)))
    yield from _sessions(ranker, folder)


def _factors(ranker: Any, queries: Any, wanted: Any, folder: Path) -> Iterator[Question]:
    items, n, kinds = ranker.item_ids_, len(ranker.item_ids_), ranker.item_ids_.dtype.kind
    k, hidden = min(4, n - 1), [[item] for item in wanted.tolist()]
    ranked = answer((ROWS, k), kinds)
    yield Question("rank", lambda: ranker.rank(queries, k), ranked)
    yield Question("rank", lambda: ranker.rank(queries, k, exclude=hidden), ranked)
    yield Question("score", lambda: ranker.score(queries, wanted), number(0.0, 1.0))
    yield Question("scores", lambda: ranker.scores(queries, items), array((ROWS, n)))
    yield Question("explain", lambda: ranker.explain(queries, k), anything)
    yield Question("recall", lambda: ranker.recall(queries, wanted), shares)
    yield Question("similar_items", lambda: ranker.similar_items(wanted, k), ranked)
    same = every(*(array((size,)) for size in (ROWS, n)))
    yield Question("query_vectors", lambda: [ranker.query_vectors(queries)[:, 0], ranker.item_vectors()[:, 0]], same)
    yield Question("export_index", lambda: ranker.export_index(folder / "index.usearch"), anything)


def _reranker(reranker: Any, folder: Path) -> Iterator[Question]:
    reranker.set_params(base=Base())
    items, n, kinds = reranker.item_ids_, len(reranker.item_ids_), reranker.item_ids_.dtype.kind
    queries, k = np.array(["a", "b", "c"]) if kinds == "U" else np.array([7, 1, 3]), min(4, n)
    ranked = answer((3, k), kinds)
    yield Question("rank", lambda: reranker.rank(queries, k), ranked)
    yield Question("rank", lambda: reranker.rank(queries, k, stage=0), ranked)
    yield Question("scores", lambda: reranker.scores(queries, items), array((3, n)))
    yield Question("explain", lambda: reranker.explain(queries, k), anything)
    yield Question("recall", lambda: reranker.recall(queries, np.resize(items, 3)), shares)
    yield Question("score", lambda: reranker.score(queries, np.resize(items, 3)), number(0.0, 1.0))


def _sessions(ranker: Any, folder: Path) -> Iterator[Question]:
    items, n, kinds = ranker.item_ids_, len(ranker.item_ids_), ranker.item_ids_.dtype.kind
    queries = [np.resize(items, 1 + row).tolist() for row in range(ROWS)]
    k = min(4, n)
    yield Question("rank", lambda: ranker.rank(queries, k), answer((ROWS, k), kinds))
    yield Question("rank", lambda: ranker.rank(queries, k, exclude_seen=True), anything)
    yield Question("score", lambda: ranker.score(queries, np.resize(items, ROWS)), number(0.0, 1.0))
    yield Question("rank", lambda: ranker.rank(queries, k, candidates=items[:k]), answer((ROWS, k), kinds))
    yield Question("scores", lambda: ranker.scores(queries, items), array((ROWS, n)))
    yield Question("recall", lambda: ranker.recall(queries, np.resize(items, ROWS)), shares)
    yield Question("partial_fit", lambda: ranker.partial_fit(queries), anything, may_refuse=True)


def _collaborative(ranker: Any, folder: Path) -> Iterator[Question]:
    items, n, kinds = ranker.item_ids_, len(ranker.item_ids_), ranker.item_ids_.dtype.kind
    users = np.resize(ranker.user_ids_, ROWS)
    histories = [np.resize(items, 1 + row).tolist() for row in range(ROWS)]
    k = min(4, n)
    yield Question("rank", lambda: ranker.rank(users, k), anything)
    yield Question("rank", lambda: ranker.rank(histories, k, exclude_seen=False), answer((ROWS, k), kinds))
    yield Question("scores", lambda: ranker.scores(users, items), array((ROWS, n)))
    yield Question("recall", lambda: ranker.recall(users, np.resize(items, ROWS)), shares)
    yield Question("score", lambda: ranker.score(users, np.resize(items, ROWS)), number(0.0, 1.0))
    yield Question("explain", lambda: ranker.explain(histories[0], items[0]), anything)
    yield Question("similar_items", lambda: ranker.similar_items(items[:1], k), anything)


# --- graphs ----------------------------------------------------------------------------------------------------------


def _graph(matcher: Any, folder: Path) -> Iterator[Question]:
    if matcher.n_features_in_ > MOST_COLUMNS:
        return
    graphs = [_rows(12, matcher.n_features_in_).reshape(3, 4, -1)] * 2
    matches = [np.array([2, 0, 3]), np.array([1, 2, 0])]
    yield Question("predict", lambda: matcher.predict(graphs), every(*[array((3,), "i")] * 2))
    yield Question("marginals", lambda: matcher.marginals(graphs), every(*[array((3, 4))] * 2))
    yield Question("log_likelihood", lambda: matcher.log_likelihood(graphs, matches), array((2,)))
    yield Question("sample", lambda: matcher.sample(graphs, 3, random_state=0), every(*[array((3, 3), "i")] * 2))
    yield Question("score", lambda: matcher.score(graphs, matches), number(0.0, 1.0))


_ASKED = {
    **dict.fromkeys(("BestFeatureRanker", "MarginRanker", "MatchingRanker"), _query_ranker),
    "CStarMarginRanker": _cstar,
    "CStarRanker": _cstar,
    "CollaborativeRanker": _collaborative,
    "MetricRanker": _metric,
    "LatentFeatureRanker": _latent,
    "LatentRanker": _latent,
    "SessionRanker": _session_ranker,
    "StructuredReranker": _reranker,
    "SessionNeighbors": _sessions,
    "SessionCooccurrence": _sessions,
    "GraphMatcher": _graph,
}
_TRAINING = {"fit", "fit_numbered", "fit_transform", "path", "with_further"}


def public_methods(estimator: Any) -> set[str]:
    """Return the names of all methods of the library's own that answer something."""
    mine = {name for cls in type(estimator).__mro__ if cls.__module__.startswith("slatewise") for name in vars(cls)}
    mine = {name for name in mine if hasattr(estimator, name)}  # some depend on the settings
    names = {name for name in mine if not name.startswith("_") and callable(getattr(type(estimator), name, None))}
    return names - _TRAINING - {name for name in names if name.startswith("set_") or name in _PROTOCOL}


_PROTOCOL = {"from_state", "check_learned", "get_params", "get_metadata_routing", "scorer", "scorer_of"}
