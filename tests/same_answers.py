"""Compare fits and answers of every estimator with those of another commit, bit for bit, in one run.

    python -m tests.same_answers COMMIT

checks that commit out beside this one, runs the same script of public calls under both, each in a process of its own,
and compares every array and number that comes back. Nothing is committed: bits belong to a machine and its libraries.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = dict[str, NDArray[Any]]
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run both sides and print what differs; the exit code is the number of cases that do."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_answers", description=__doc__)
    parser.add_argument("commit", help="the commit to compare with, or --side FILE to answer here", nargs="?")
    parser.add_argument("--side", type=Path, help="write this side's answers to a file and stop")
    arguments = parser.parse_args()
    if arguments.side is not None:
        np.savez(arguments.side, **answers())
        return 0
    if arguments.commit is None:
        parser.error("expected a commit to compare with, found none")
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(other), arguments.commit], cwd=ROOT, check=True
        )
        try:
            before, now = (_side(root / "src", Path(folder) / f"{name}.npz") for name, root in _sides(other))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(other)], cwd=ROOT, check=True)
    return _compare(before, now)


def _sides(other: Path) -> Iterator[tuple[str, Path]]:
    yield "before", other
    yield "now", ROOT


def _side(source: Path, out: Path) -> Answers:
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(out.with_suffix(".cache"))}
    subprocess.run([sys.executable, __file__, "--side", str(out)], check=True, env=environment)
    with np.load(out) as stored:
        return {name: stored[name] for name in stored.files}


def _compare(before: Answers, now: Answers) -> int:
    differing = 0
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            print(f"{name}: only now")  # there is nothing to compare it with
            continue
        if name not in now:
            print(f"{name}: only before")
        elif before[name].dtype != now[name].dtype or before[name].shape != now[name].shape:
            print(f"{name}: {before[name].dtype} {before[name].shape} before, {now[name].dtype} {now[name].shape} now")
        elif before[name].tobytes() != now[name].tobytes():
            print(f"{name}: {np.mean(before[name] != now[name]):.1%} of the entries differ")
        else:
            continue
        differing += 1
    added = len(now.keys() - before.keys())
    print(f"{len(before.keys() & now.keys())} answers compared, {differing} differ, {added} are only there now")
    return differing


# --- the same public calls on both sides -----------------------------------------------------------------------------


def answers() -> Answers:
    """Fit every estimator in several settings and collect what it learned and answers."""
    warnings.simplefilter("ignore")
    found: Answers = {}
    for name, case in CASES.items():
        for part, value in case():
            found[f"{name}/{part}"] = np.asarray(value)
    return found


def _learned(estimator: Any) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and isinstance(value, np.ndarray | int | float | list) and not name.startswith("_"):
            yield name, value


def _ranked(answer: Any) -> Iterator[tuple[str, Any]]:
    """Ids and scores of an answer, whatever shape a version gives it."""
    if isinstance(answer, tuple):
        yield "ids", answer[0]
        yield "scores", answer[1]
    elif hasattr(answer, "query_ids"):
        yield "ids", answer.ids
        if isinstance(answer.scores, np.ndarray) and answer.offsets is None:
            yield "scores", answer.scores
    elif hasattr(answer, "order"):
        yield "ids", answer.order
    else:
        yield "ids", answer


def _tags(**settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        from slatewise import CStarRanker, datasets

        scenes = datasets.make_label_scenes(n_rows=260, random_state=3)
        X = scenes.X if settings.get("scores") != "pretrained" else np.asarray(scenes.marginals(scenes.X))
        ranker = CStarRanker(**_as_called(CStarRanker, settings)).fit(X[:200], scenes.Y[:200])
        yield from _learned(ranker)
        yield "decision", ranker.decision_function(X[200:])
        yield from _ranked(ranker.rank(X[200:]))
        yield "score", ranker.score(X[200:], scenes.Y[200:])

    return case


def _as_called(ranker: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in the words of a version: before there was a base, "likelihood" was that of sets of k labels."""
    if "base" in ranker.rules or settings.get("surrogate") != "likelihood-k":
        return settings
    return {**settings, "surrogate": "likelihood"}


def _documents(kind: str, **settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        import slatewise

        queries = slatewise.datasets.make_queries(n_queries=40, random_state=5)
        ranker = getattr(slatewise, kind)(**settings).fit(queries.X, queries.y, qid=queries.qid)
        yield from _learned(ranker)
        yield "predict", ranker.predict(queries.X)
        yield from _ranked(ranker.rank(queries.X, queries.qid))
        yield "score", ranker.score(queries.X, queries.y, queries.qid)

    return case


def _classes(**settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        from sklearn.datasets import load_wine

        from slatewise import MetricRanker

        X, y = load_wine(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        ranker = MetricRanker(**settings).fit(X[::2], y[::2])
        yield from _learned(ranker)
        yield "transform", ranker.transform(X[1::2])
        yield from _ranked(ranker.rank(X[1::2], k=9))
        yield "score", ranker.score(X[1::2], y[1::2])

    return case


def _outlines(**settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        from slatewise import GraphMatcher, datasets

        pairs = datasets.make_silhouettes(n_pairs=14, n_points=8, random_state=2)
        edges = [datasets.edge_features(a, b) for a, b in zip(pairs.source, pairs.target, strict=True)]
        matcher = GraphMatcher(**settings).fit(edges[:10], list(pairs.matches[:10]))
        yield from _learned(matcher)
        yield "predict", matcher.predict(edges[10:])
        yield "marginals", matcher.marginals(edges[10:])

    return case


def _sessions(**settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        from slatewise import LatentRanker, datasets

        pairs = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions.pairs()
        ranker = LatentRanker(n_components=8, epochs=4, random_state=1, **settings).fit(pairs.queries, pairs.items)
        yield from _learned(ranker)
        yield from _ranked(ranker.rank(ranker.query_ids_[:20], k=7))
        yield from (
            ("folded/" + part, value) for part, value in _ranked(ranker.rank(ranker.fold_in([[1, 2], [5]]), k=5))
        )
        yield "recall", list(ranker.recall(pairs.queries[:300], pairs.items[:300], [5, 10]).values())

    return case


def _reranked(**settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        from slatewise import StructuredReranker, datasets

        pairs = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions.pairs()
        base = np.tile(np.bincount(pairs.items, minlength=60).astype(float), (60, 1))
        ranker = StructuredReranker(base, n_components=8, k=5, epochs=3, random_state=1, **settings)
        ranker.fit(pairs.queries, pairs.items)
        yield from _learned(ranker)
        yield from _ranked(ranker.rank(np.arange(20), k=6))

    return case


def _next_items(kind: str, **settings: Any) -> Callable[[], Iterator[tuple[str, Any]]]:
    def case() -> Iterator[tuple[str, Any]]:
        import slatewise

        sessions = slatewise.datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions
        ranker = getattr(slatewise, kind)(**settings).fit(sessions[:800])
        yield from _learned(ranker)
        yield from _ranked(ranker.rank(sessions[800:], k=7, exclude_seen=True))

    return case


HINGE: dict[str, Any] = {"scores": "linear", "surrogate": "max-margin"}
CASES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "cstar as it comes": _tags(),
    "cstar linear": _tags(**HINGE, C=1.0),
    "cstar linear, bundle": _tags(**HINGE, learner="bundle", C=3.0),
    "cstar, no core": _tags(**HINGE, core=0, C=1.0),
    "cstar rbf": _tags(scores="rbf", surrogate="max-margin", C=3.0),
    "cstar pretrained": _tags(scores="pretrained", surrogate="max-margin", C=1.0),
    "cstar likelihood": _tags(scores="pretrained", surrogate="likelihood-k", C=1.0),
    "cstar likelihood, auto": _tags(scores="pretrained", surrogate="likelihood-k", C="auto"),
    "metric auc": _classes(loss="auc"),
    "metric map": _classes(loss="map", C=10.0),
    "metric mrr, diagonal": _classes(loss="mrr", regularizer="diagonal"),
    "metric ndcg, rbf": _classes(loss="ndcg", kernel="rbf"),
    "metric precision": _classes(loss="precision", C=10.0),
    "margin as it comes": _documents("MarginRanker"),
    "margin auc, auto": _documents("MarginRanker", loss="auc", C="auto"),
    "margin ndcg": _documents("MarginRanker", loss="ndcg", C=10.0),
    "matching as it comes": _documents("MatchingRanker"),
    "matching whole": _documents("MatchingRanker", subsets="whole"),
    "matching max-margin": _documents("MatchingRanker", M=3, surrogate="max-margin", repeats=2),
    "matching marginal ties": _documents("MatchingRanker", M=3, ties="marginal", repeats=1),
    "best feature": _documents("BestFeatureRanker"),
    "graph as it comes": _outlines(),
    "graph max-margin": _outlines(surrogate="max-margin"),
    "graph bethe": _outlines(expectation="bethe"),
    "neighbours as they come": _next_items("SessionNeighbors"),
    "neighbours with reach": _next_items("SessionNeighbors", k=20, decay=0.9, reach=4.0, repeat_weight=0.5),
    "counts as they come": _next_items("CooccurrenceRanker"),
    "both as they come": _next_items("SessionBlend"),
    "latent as it comes": _sessions(),
    "latent, fixed": _sessions(learning_rate=0.2, max_norm=1.5),
    "latent, two stages": _sessions(learning_rate=0.2, max_norm=1.5, stages=2),
    "latent, bilinear, own": _sessions(learning_rate=0.2, max_norm=1.5, stages=2, pair="bilinear", own_weight=2.0),
    "latent, both": _sessions(learning_rate=0.2, max_norm=1.5, stages=2, pair="both"),
    "latent, drawn": _sessions(learning_rate=0.2, max_norm=1.5, negatives=20),
    "latent, auc": _sessions(learning_rate=0.2, max_norm=1.5, loss="auc"),
    "latent, sampled": _sessions(learning_rate=0.2, max_norm=1.5, engine="sampled", n_threads=1),
    "reranker as it comes": _reranked(),
    "reranker, bilinear": _reranked(pair="bilinear"),
}

if __name__ == "__main__":
    sys.exit(main())
