"""Learned distances."""

import numpy as np
from scipy.sparse import csr_array

from tests.same_answers.case import Case, learned, ranked


def wine():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::2], y[::2], X[1::2], y[1::2]


def answers(ranker, rows):
    yield from learned(ranker)
    yield "metric", ranker.metric_
    yield "transform", ranker.transform(rows)
    yield "distances", ranker.distances(rows[:5], rows)
    yield "function", ranker.get_metric()(rows[0], rows[1])
    yield from ranked(ranker.rank(rows, k=9))


def ask(ranker):
    X, y, others, labels = wine()
    yield from answers(ranker.fit(X, y), others)
    yield "score", ranker.score(others, labels)


def of_labels(ranker):
    X, y, others, labels = wine()
    yield from answers(ranker.fit(X, np.eye(3, dtype=int)[y]), others)
    yield "score", ranker.score(others, np.eye(3)[labels])


def of_few(ranker):
    """More features than points, sparse ones, and queries that say nothing."""
    X, y, others, _ = wine()
    X, y = X[::10], y[::10].copy()
    y[0] = 7
    yield from answers(ranker.fit(csr_array(np.hstack([X, X**2])), y), np.hstack([others, others**2]))


def of_lists(ranker):
    """Grades of some items for queries that are no items, with weights."""
    X, y, others, labels = wine()
    grades = np.maximum(0, 2 - np.abs(labels[:, None] - y))
    stored = np.random.default_rng(0).uniform(size=grades.shape) < 0.4
    rows, columns = np.nonzero(stored)
    relevance = csr_array((grades[stored].astype(float) - 0.5 * (grades[stored] == 0), (rows, columns)), grades.shape)
    ranker.fit(X, relevance=relevance, queries=others, query_weight=np.arange(len(others)) % 3)
    yield from answers(ranker, others)
    yield "score", ranker.score(others, relevance=relevance)


def of_itself(ranker):
    """Lists of the items themselves."""
    X, y, others, labels = wine()
    yield from answers(ranker.fit(X, relevance=csr_array((y[:, None] == y).astype(float))), others)
    yield "score", ranker.score(others, relevance=(labels[:, None] == y).astype(float))


def of_products(ranker):
    """A matrix of the kernel instead of points."""
    X, y, others, labels = wine()
    ranker.fit(X @ X.T, y)
    yield from answers(ranker, others @ X.T)
    yield "score", ranker.score(others @ X.T, labels)


def of_histograms(ranker):
    X, y, others, labels = wine()
    yield from answers(ranker.fit(np.abs(X), y), np.abs(others))
    yield "score", ranker.score(np.abs(others), labels)


def path(ranker):
    X, y, others, _ = wine()
    for number, one in enumerate(ranker.path(X, y, [0.3, 3.0, 30.0])):
        yield from ((f"{number}/{part}", value) for part, value in answers(one, others))


def same(name, spelling, ask=ask):
    return Case(f"metric {name}", spelling, spelling, ask)


def case(name, before, now, ask=ask):
    return Case(f"metric {name}", before, now, ask)


CASES = [
    same("auc", "MetricRanker()"),
    same("map", 'MetricRanker(loss="map", C=10.0)'),
    same("mrr, diagonal", 'MetricRanker(loss="mrr", regularizer="diagonal")'),
    same("knn", 'MetricRanker("knn")'),
    case(
        "knn 5, frobenius",
        'MetricRanker("knn", k=5, regularizer="frobenius")',
        'MetricRanker(losses.KNN(5), regularizer="frobenius")',
    ),
    case("ndcg", 'MetricRanker("ndcg")', "MetricRanker(losses.NDCG(k=3))"),
    case("ndcg by default", 'MetricRanker("ndcg", k=10)', 'MetricRanker("ndcg")'),
    case("precision", 'MetricRanker(loss="precision", C=10.0)', "MetricRanker(losses.Precision(3), C=10.0)"),
    case("precision by default", 'MetricRanker("precision", k=10)', 'MetricRanker("precision")'),
    case(
        "all pairs",
        'MetricRanker("precision", C=50.0, pairs="all")',
        'MetricRanker(losses.Precision(3), C=50.0, pairs="all")',
    ),
    case(
        "all targets",
        'MetricRanker("ndcg", targets="all", C=30.0)',
        'MetricRanker(losses.NDCG(3), targets="all", C=30.0)',
    ),
    case("mrr, targets", 'MetricRanker("mrr", k=5)', 'MetricRanker("mrr", targets=5)'),
    same("frobenius", 'MetricRanker(regularizer="frobenius", C=10.0)'),
    same("two components", 'MetricRanker("map", C=10.0, n_components=2)'),
    same("one column", 'MetricRanker(C=10.0, n_components=1, regularizer="diagonal")'),
    same("ends early", "MetricRanker(C=1000.0, tol=1e-8, max_iter=3)"),
    same("labels", 'MetricRanker("auc", C=3.0)', of_labels),
    same("labels, mrr", 'MetricRanker("mrr", C=3.0)', of_labels),
    same("wide", "MetricRanker(C=5.0)", of_few),
    same("wide, diagonal", 'MetricRanker(C=5.0, regularizer="diagonal")', of_few),
    case("grades", 'MetricRanker("ndcg", k=4, C=10.0)', "MetricRanker(losses.NDCG(4), C=10.0)", of_lists),
    case(
        "threshold",
        'MetricRanker("map", threshold=2.0, C=10.0)',
        "MetricRanker(losses.MAP(threshold=2.0), C=10.0)",
        of_lists,
    ),
    same("stored only", 'MetricRanker(unlisted="ignored", C=10.0)', of_lists),
    same("lists of itself", 'MetricRanker("map", C=3.0)', of_itself),
    same("targets of lists", 'MetricRanker("mrr", targets=2)', of_itself),
    same("rbf", 'MetricRanker(kernel="rbf")'),
    case(
        "rbf, gamma",
        'MetricRanker("map", kernel="rbf", gamma=0.05, C=10.0)',
        'MetricRanker("map", kernel=kernels.Rbf(0.05), C=10.0)',
    ),
    case(
        "rbf, few",
        'MetricRanker(kernel="rbf", n_components=12, C=10.0)',
        "MetricRanker(kernel=kernels.Rbf(n_basis=12), C=10.0)",
    ),
    case("ndcg, rbf", 'MetricRanker("ndcg", kernel="rbf")', 'MetricRanker(losses.NDCG(3), kernel="rbf")'),
    same("chi2", 'MetricRanker(kernel="chi2", C=10.0)', of_histograms),
    case(
        "intersection, few",
        'MetricRanker(kernel="intersection", n_components=20, C=10.0)',
        "MetricRanker(kernel=kernels.Intersection(20), C=10.0)",
        of_histograms,
    ),
    same("precomputed", 'MetricRanker(kernel="precomputed", C=3.0)', of_products),
    case(
        "precomputed, few",
        'MetricRanker(kernel="precomputed", n_components=8, C=3.0)',
        "MetricRanker(kernel=kernels.Precomputed(8), C=3.0)",
        of_products,
    ),
    same("path", 'MetricRanker("map")', path),
    same("path of few components", "MetricRanker(n_components=2)", path),
    case("gpu by name", 'MetricRanker(device="cpu")', 'MetricRanker(device="cpu")'),
]
