"""Latent factors of pairs, and rerankers."""

import numpy as np

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from slatewise import datasets

    pairs = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions.pairs()
    ranker.set_params(n_components=8, epochs=4, random_state=1).fit(pairs.queries, pairs.items)
    yield from learned(ranker)
    yield from ranked(ranker.rank(ranker.query_ids_[:20], k=7))
    yield from (("folded/" + part, value) for part, value in ranked(ranker.rank(ranker.fold_in([[1, 2], [5]]), k=5)))
    yield "recall", list(ranker.recall(pairs.queries[:300], pairs.items[:300], [5, 10]).values())


def rerank(ranker):
    from slatewise import datasets

    pairs = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions.pairs()
    base = np.tile(np.bincount(pairs.items, minlength=60).astype(float), (60, 1))
    ranker.set_params(base=base, n_components=8, epochs=3, random_state=1).fit(pairs.queries, pairs.items)
    yield from learned(ranker)
    yield from ranked(ranker.rank(np.arange(20), k=6))


def same(name, spelling, ask=ask):
    return Case(name, spelling, spelling, ask)


FIXED = "learning_rate=0.2, max_norm=1.5"
CASES = [
    same("latent", "LatentRanker()"),
    same("latent, fixed", f"LatentRanker({FIXED})"),
    same("latent, two stages", f"LatentRanker({FIXED}, stages=2)"),
    same("latent, bilinear, own", f'LatentRanker({FIXED}, stages=2, pair="bilinear", own_weight=2.0)'),
    same("latent, both", f'LatentRanker({FIXED}, stages=2, pair="both")'),
    same("latent, drawn", f"LatentRanker({FIXED}, negatives=20)"),
    same("latent, auc", f'LatentRanker({FIXED}, loss="auc")'),
    Case(
        "latent, sampled",
        f'LatentRanker({FIXED}, engine="sampled", n_threads=1)',
        f'LatentRanker({FIXED}, engine="sampled", n_jobs=1)',
        ask,
    ),
    same("reranker", "StructuredReranker()", rerank),
    same("reranker, bilinear", 'StructuredReranker(pair="bilinear")', rerank),
]
