"""How the files beside this one were made: ``python -m tests.model.format_1.write``, once, at the commit that added it.

A file of every estimator as format 1 was when it ended, and an ``.npz`` with what it was asked and what it answered.
Those whose names begin with ``old_`` are older files of the same format: the cases "cstar" and "cstar_classes" fitted
and saved (``--old``) by commit 49d73f7, which had no attribute ``multilabel_`` yet. None of them is ever written again:
a later version reads them, or says why not.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Arrays = Mapping[str, Any]


def answers(estimator: Any, asked: Arrays) -> dict[str, Any]:
    """Return all that a file is held to; the estimator may be of any version."""
    kind = type(estimator).__name__
    return {name: np.asarray(value) for name, value in _ANSWERS[kind](estimator, asked)}


def _ranked(answer: Any) -> Iterator[tuple[str, Any]]:
    """Ids of an answer, and scores where there are any, list after list, whatever shape a version gives it."""
    if isinstance(answer, tuple):
        yield "ids", np.ravel(answer[0])
        yield "scores", np.ravel(answer[1])
    elif hasattr(answer, "query_ids"):
        yield "ids", np.ravel(answer.ids)
        yield "scores", np.ravel(answer.scores)
    else:
        yield "ids", np.ravel(getattr(answer, "order", answer))


def _documents(ranker: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    X = asked["X"]
    if "feature_names_in_" in vars(ranker):
        import pandas as pd

        X = pd.DataFrame(X, columns=ranker.feature_names_in_)
    yield "predict", ranker.predict(X)
    yield from _ranked(ranker.rank(X, asked["qid"]))
    yield "score", ranker.score(X, asked["y"], asked["qid"])


def _labels(ranker: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    yield "label_scores", ranker.label_scores(asked["X"])
    yield "decision", ranker.decision_function(asked["X"])
    yield "predict", ranker.predict(asked["X"])
    yield "predict_count", ranker.predict_count(asked["X"])
    yield from _ranked(ranker.rank(asked["X"], 2))
    yield "score", ranker.score(asked["X"], asked["y"])


def _points(ranker: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    yield "transform", ranker.transform(asked["X"])
    yield "distances", ranker.distances(asked["X"])
    yield from _ranked(ranker.rank(asked["X"], 5))
    yield "score", ranker.score(asked["X"], asked["y"])


def _catalogue(ranker: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    yield from _ranked(ranker.rank(asked["queries"], 4))
    yield from ((f"first stage/{part}", value) for part, value in _ranked(ranker.rank(asked["queries"], 4, stage=0)))
    yield "recall", list(ranker.recall(asked["queries"], asked["items"], [1, 3]).values())
    yield "query_vectors", ranker.query_vectors(asked["queries"])
    if not ranker.by_features_:
        yield from ((f"folded/{part}", v) for part, v in _ranked(ranker.rank(ranker.fold_in([asked["items"]]), 4)))


def _reranked(reranker: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    reranker.set_params(base=asked["base"])
    yield from _ranked(reranker.rank(asked["queries"], 4))
    yield "recall", list(reranker.recall(asked["queries"], asked["items"], [1, 3]).values())


def _graphs(matcher: Any, asked: Arrays) -> Iterator[tuple[str, Any]]:
    graphs, matches = list(asked["graphs"]), list(asked["matches"])
    yield "predict", matcher.predict(graphs)
    yield "marginals", matcher.marginals(graphs)
    yield "log_likelihood", matcher.log_likelihood(graphs, matches)
    yield "score", matcher.score(graphs, matches)


_ANSWERS = {
    **dict.fromkeys(("BestFeatureRanker", "MarginRanker", "MatchingRanker"), _documents),
    "CStarRanker": _labels,
    "MetricRanker": _points,
    "LatentRanker": _catalogue,
    "StructuredReranker": _reranked,
    "GraphMatcher": _graphs,
}


# --- the fits --------------------------------------------------------------------------------------------------------


def fits() -> Iterator[tuple[str, Any, Arrays]]:
    """Yield a name, a fitted estimator and what it is asked."""
    yield from _fitted_documents()
    yield from fitted_labels()
    yield from _fitted_points()
    yield from _fitted_catalogues()
    yield from _fitted_graphs()


def _fitted_documents() -> Iterator[tuple[str, Any, Arrays]]:
    import pandas as pd

    from slatewise import BestFeatureRanker, MarginRanker, MatchingRanker, datasets

    made = datasets.make_queries(n_queries=6, random_state=0)
    X, y, qid = made.X[:, :4], made.y, made.qid
    asked = {"X": X[:60], "y": y[:60], "qid": qid[:60]}
    yield "best_feature", BestFeatureRanker().fit(X, y, qid=qid), asked
    named = pd.DataFrame(X, columns=["bm25", "clicks", "age", "été"])
    yield "margin", MarginRanker(C="auto", random_state=3).fit(named, y, qid=qid), asked
    yield "matching", MatchingRanker(c=[3.0, 1.0, 0.5], M=3, repeats=1, random_state=7).fit(X, y, qid=qid), asked
    yield "matching_whole", MatchingRanker(subsets="whole").fit(X, y, qid=qid), asked


def fitted_labels() -> Iterator[tuple[str, Any, Arrays]]:
    """Yield those that an older commit fitted too."""
    from slatewise import CStarRanker, datasets

    scenes, rng = datasets.make_label_scenes(60, random_state=0), np.random.default_rng(0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4].astype(int)
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    asked = {"X": X[:8], "y": Y[:8]}
    yield "cstar", CStarRanker(core=2).fit(X, Y), asked
    yield "cstar_classes", CStarRanker(core=[1]).fit(X, classes), {"X": X[:8], "y": classes[:8]}
    yield "cstar_rbf", CStarRanker(core=1, scores="rbf", n_components=6, random_state=1).fit(X, Y), asked
    given = 2.0 * Y - 1.0 + rng.normal(size=Y.shape)
    likelihood = CStarRanker(core=2, scores="pretrained", surrogate="likelihood")
    yield "cstar_likelihood", likelihood.fit(given, Y), {"X": given[:8], "y": Y[:8]}


def _fitted_points() -> Iterator[tuple[str, Any, Arrays]]:
    from slatewise import MetricRanker, datasets

    scenes = datasets.make_label_scenes(30, random_state=0)
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    classes = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    asked = {"X": X[:8], "y": classes[:8]}
    yield "metric", MetricRanker(C=10.0).fit(X, classes), asked
    yield "metric_rbf", MetricRanker(kernel="rbf", n_components=6, C=10.0).fit(X, classes), asked


def _fitted_catalogues() -> Iterator[tuple[str, Any, Arrays]]:
    from slatewise import LatentRanker, StructuredReranker, datasets

    pairs = datasets.make_sessions(60, 12, random_state=0).sessions.pairs()
    scenes = datasets.make_label_scenes(60, random_state=0)
    small: Any = {"n_components": 3, "epochs": 2, "k": 4, "max_norm": 2.5}
    asked = {"queries": pairs.queries[:8], "items": pairs.items[:8]}
    names = [np.char.add("item ", ids.astype(str)) for ids in (pairs.queries, pairs.items)]
    yield "latent", LatentRanker(**small, learning_rate="auto").fit(pairs.queries, pairs.items), asked
    staged = LatentRanker(**small, stages=2, pair="bilinear", own_weight=0.5, validation_fraction=0, random_state=5)
    yield "latent_stages", staged.fit(pairs.queries, pairs.items), asked
    of_names = LatentRanker(**small, position_weights=[1.0, 0.5, 0.25, 0.125])
    yield "latent_strings", of_names.fit(*names), {"queries": names[0][:8], "items": names[1][:8]}
    X, Y = scenes.X[:, :5], scenes.Y[:, :4]
    given = {"queries": X[:8], "items": Y[:8].argmax(axis=1)}
    yield "latent_features", LatentRanker(**{**small, "k": 2}, validation_fraction=0).fit(X, Y), given
    base = np.random.default_rng(0).normal(size=(12, 12)) + np.bincount(pairs.items, minlength=12)
    reranker = StructuredReranker(base, n_components=3, k=4, epochs=2, stages=2, validation_fraction=0)
    yield "reranker", reranker.fit(pairs.queries, pairs.items), {**asked, "base": base}


def _fitted_graphs() -> Iterator[tuple[str, Any, Arrays]]:
    from slatewise import GraphMatcher

    rng = np.random.default_rng(0)
    graphs, matches = [rng.normal(size=(4, 4, 3)) for _ in range(4)], [rng.permutation(4) for _ in range(4)]
    asked = {"graphs": graphs, "matches": matches}
    yield "graph", GraphMatcher(l2=0.1, random_state=2).fit(graphs, matches), asked
    left_out = [np.where(np.arange(4) == 2, -1, one) for one in matches]
    yield "graph_unmatched", GraphMatcher(l2=0.1).fit(graphs, left_out), {"graphs": graphs, "matches": left_out}


def write(name: str, estimator: Any, asked: Arrays) -> None:
    """Write the file of a model, and what it is asked and answers."""
    estimator.save(HERE / f"{name}.safetensors")
    said = answers(estimator, asked)
    parts = {f"asked {part}": value for part, value in asked.items()} | {f"says {part}": v for part, v in said.items()}
    np.savez_compressed(HERE / f"{name}.npz", **parts)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a few rounds are enough here
    if "--old" in sys.argv:
        for old, (_, fitted, given) in zip(("labels", "classes"), fitted_labels(), strict=False):
            write(f"old_cstar_{old}", fitted, given)
    else:
        for case, fitted, given in fits():
            write(case, fitted, given)
