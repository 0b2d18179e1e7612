"""Latent factors of pairs, and rerankers."""

import numpy as np
from scipy.sparse import csr_array

from tests.same_answers.case import Case, learned, ranked


def _pairs():
    from slatewise import datasets

    return datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions.pairs()


def _vectors(folded):
    return getattr(folded, "vectors", folded)


def ask(ranker):
    pairs = _pairs()
    ranker.set_params(n_components=8, epochs=4, random_state=1).fit(pairs.queries, pairs.items)
    yield from learned(ranker)
    yield from ranked(ranker.rank(ranker.query_ids_[:20], k=7))
    yield from (("excluding/" + part, v) for part, v in ranked(ranker.rank([3, 5], k=7, exclude=[[1], [2, 3]])))
    yield from (("among/" + part, v) for part, v in ranked(ranker.rank([3, 5], k=3, candidates=[1, 5, 7, 9])))
    folded = ranker.fold_in([[1, 2], [5]])
    yield "folded", _vectors(folded)
    yield from (("folded/" + part, value) for part, value in ranked(ranker.rank(folded, k=5)))
    yield "recall", list(ranker.recall(pairs.queries[:300], pairs.items[:300], [5, 10]).values())
    yield "scores", ranker.scores([3, 5], [1, 2, 3])
    yield "explained", ranker.explain([3, 5], k=4).moved_by
    yield "item vectors", ranker.item_vectors()
    yield "query vectors", ranker.query_vectors([3, 5])
    yield from (("similar/" + part, v) for part, v in ranked(ranker.similar_items([3, 5], k=4)))


def weighted(ranker):
    """A matrix of interactions, and then further pairs of ids that were not there."""
    rng = np.random.default_rng(2)
    ranker.set_params(n_components=8, epochs=4, random_state=1).fit(csr_array(rng.poisson(0.2, (80, 30))))
    yield from ranked(ranker.rank([3, 5], k=7))
    ranker.partial_fit(rng.integers(60, 90, 400), rng.integers(20, 40, 400))
    yield from learned(ranker)
    yield from (("further/" + part, v) for part, v in ranked(ranker.rank([3, 85], k=7)))


def _rows(sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 12)) * (rng.random((500, 12)) < 0.3)
    y = (X @ rng.normal(size=(12, 25)) + rng.normal(size=(500, 25))).argmax(axis=1)
    return (csr_array(X) if sparse else X), y


def features(ranker, sparse=False):
    X, y = _rows(sparse)
    ranker.set_params(n_components=8, epochs=4, random_state=1).fit(X[:400], y[:400])
    yield from learned(ranker)
    yield from ranked(ranker.rank(X[400:], k=7))
    yield "recall", list(ranker.recall(X[400:], y[400:], ks=[5]).values())
    ranker.partial_fit(X[400:], y[400:])
    yield from (("further/" + part, v) for part, v in ranked(ranker.rank(X[:50], k=7)))


def sparse_features(ranker):
    yield from features(ranker, sparse=True)


def label_matrix(ranker):
    X, _ = _rows(False)
    ranker.set_params(n_components=8, epochs=3, random_state=1).fit(X, (X[:, :9] > 0).astype(int))
    yield from learned(ranker)
    yield from ranked(ranker.rank(X[:20], k=4))


def first(ranker):
    """A fit that begins with ``partial_fit``."""
    pairs = _pairs()
    ranker.set_params(n_components=8, random_state=1)
    ranker.partial_fit(pairs.queries[:900], pairs.items[:900]).partial_fit(pairs.queries[900:], pairs.items[900:])
    yield from learned(ranker)


def rerank(ranker):
    pairs = _pairs()
    base = np.tile(np.bincount(pairs.items, minlength=60).astype(float), (60, 1))
    ranker.set_params(base=base, n_components=8, epochs=3, random_state=1).fit(pairs.queries, pairs.items)
    yield from learned(ranker)
    yield from ranked(ranker.rank(np.arange(20), k=6))
    yield "recall", list(ranker.recall(pairs.queries[:300], pairs.items[:300], [5, 10]).values())
    yield "explained", ranker.explain([3, 5], k=4).moved_by


def same(name, spelling, ask=ask):
    return Case(name, spelling, spelling, ask, renamed=RENAMED)


def pair(name, before, now, ask=ask):
    return Case(name, f"LatentRanker({before})", f"LatentRanker({now})", ask, renamed=RENAMED)


def of_features(name, before, now, ask=features):
    return Case(name, f"LatentRanker({before})", f"LatentFeatureRanker({now})", ask, renamed=RENAMED)


RENAMED = {"self_weight_": "own_weight_"}
FIXED = "learning_rate=0.2, max_norm=1.5"
CASES = [
    same("latent", "LatentRanker()"),
    same("latent, fixed", f"LatentRanker({FIXED})"),
    same("latent, dropout", f"LatentRanker({FIXED}, dropout=0.3, patience=1, validation_fraction=0.2)"),
    same("latent, none held out", f"LatentRanker({FIXED}, validation_fraction=0)"),
    same("latent, two stages", f"LatentRanker({FIXED}, stages=2)"),
    pair(
        "latent, searched stages",
        f'{FIXED}, stages=2, k=5, stage_learning_rate="auto", stage_norm="auto"',
        f'{FIXED}, stages=factors.Stages(2, k=5, learning_rate="auto", max_norm="auto")',
    ),
    pair(
        "latent, bilinear, self",
        f'{FIXED}, stages=2, pair="bilinear", own_weight=2.0',
        f'{FIXED}, stages=factors.Stages(2, pair="bilinear", self_weight=2.0)',
    ),
    pair(
        "latent, both",
        f'{FIXED}, stages=3, pair="both", k=3, position_weights=[3.0, 2.0, 1.0]',
        f'{FIXED}, stages=factors.Stages(3, pair="both", k=3, position_weights=[3.0, 2.0, 1.0])',
    ),
    pair("latent, drawn", f"{FIXED}, negatives=20", f"{FIXED}, engine=factors.Blocked(negatives=20)"),
    pair(
        "latent, drawn, stages",
        f"{FIXED}, negatives=20, stages=2, batch_size=100",
        f"{FIXED}, engine=factors.Blocked(negatives=20, batch_size=100), stages=2",
    ),
    same("latent, auc", f'LatentRanker({FIXED}, loss="auc")'),
    pair("latent, alpha", f"{FIXED}, alpha=1.5", f"{FIXED}, loss=factors.Warp(1.5)"),
    Case(
        "latent, sampled",
        f'LatentRanker({FIXED}, engine="sampled", n_threads=1)',
        f'LatentRanker({FIXED}, engine="sampled", n_jobs=1)',
        ask,
        renamed=RENAMED,
    ),
    Case(
        "latent, sampled, few draws",
        f'LatentRanker({FIXED}, engine="sampled", max_draws=5, stages=2, n_threads=1)',
        f"LatentRanker({FIXED}, engine=factors.Sampled(5), stages=2, n_jobs=1)",
        ask,
        renamed=RENAMED,
    ),
    same("latent, matrix", f"LatentRanker({FIXED})", weighted),
    same("latent, matrix, stages", f"LatentRanker({FIXED}, stages=2)", weighted),
    same("latent, partial fits", "LatentRanker()", first),
    of_features("latent features", "", ""),
    of_features("latent features, sparse", FIXED, FIXED, sparse_features),
    of_features("latent features, stages", f"{FIXED}, stages=2, k=4", f"{FIXED}, stages=factors.Stages(2, k=4)"),
    of_features("latent features, labels", FIXED, FIXED, label_matrix),
    of_features("latent features, drawn", f"{FIXED}, negatives=9", f"{FIXED}, engine=factors.Blocked(negatives=9)"),
    same("reranker", "StructuredReranker()", rerank),
    Case(
        "reranker, bilinear",
        'StructuredReranker(pair="bilinear", k=5, learning_rate=0.3, max_norm=2.0)',
        'StructuredReranker(stages=factors.Stages(pair="bilinear", k=5, learning_rate=0.3, max_norm=2.0))',
        rerank,
    ),
    Case(
        "reranker, both",
        'StructuredReranker(pair="both", stages=2, batch_size=100, base_scale=2.0, patience=1, validation_fraction=0.1)',  # noqa: E501
        'StructuredReranker(stages=factors.Stages(2, pair="both"), batch_size=100, base_scale=2.0, patience=1, '
        "validation_fraction=0.1)",
        rerank,
    ),
]
