"""Tags: one question among many labels, training beside what came before, and fits of 1,000 and 10,000 labels.

A question is chosen for one row at a time on one core, with fresh scores and answers each time; the peer sums over all
core settings in plain NumPy. Fits of many labels run in a process each, which says what memory it took at most.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Bytes, Floats
from slatewise.core.running.blas import one_blas_thread
from slatewise.cstar.ranker import CStarRanker
from slatewise.datasets import make_interacting_lists
from slatewise.inference import subset_log_odds
from slatewise_papers.cstar.likelihood import LikelihoodGivenK
from slatewise_papers.cstar.scores import Logistic
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.timing import each_seconds, milliseconds, wall_and_cpu

N_CORE, N_ANSWERS = 8, 20
_TOPICS, _WORDS = 50, 50


def run(quick: bool = False) -> Table:
    """Time all; ``quick``: a tenth of the rows, labels and questions."""
    share = 10 if quick else 1
    rows: list[Row] = []
    for n_labels in (1000, 10_000):  # first: a process inherits the peak of the one that starts it
        rows += _many_labels(n_labels // share, 5000 // share)
    for n_labels in (1000, 10_000):
        rows += _questions(n_labels // share, 300 // share)
    rows += _training(6400 // share)
    return Table("labels", rows, remarks=["CPU: of all threads, which a loaded machine does not change much"])


# --- one question ----------------------------------------------------------------------------------------------------


class _Question(NamedTuple):
    scores: Floats
    """(1, labels)"""
    known: Bytes


def _questions(n_labels: int, times: int) -> list[Row]:
    rng = np.random.default_rng(0)
    ranker = _ranker_of_scores(rng, n_labels)
    fresh = [_question(rng, n_labels) for _ in range(times)]
    pair, core = ranker.pair_, ranker.core_

    def ask(one: _Question) -> None:
        ranker.next_question(one.scores, one.known)

    def log_odds(one: _Question) -> None:
        np.abs(subset_log_odds(one.scores, pair, core, one.known, n_jobs=1)).argmin()

    def plain(one: _Question) -> None:
        np.abs(plain_log_odds(one.scores[0], pair, core, one.known[0])).argmin()

    with one_blas_thread():
        took, alone, theirs = (_milliseconds(function, fresh) for function in (ask, log_odds, plain))
    what, peer = f"one question, {n_labels} labels, {N_CORE} core labels", "NumPy, all core settings"
    bar = "<= 20 ms" if n_labels == 10_000 else ""
    return [
        Row(f"{what}: next_question, median", took.p50, peer, theirs.p50, unit="ms", bar=bar),
        Row(f"{what}: next_question, 99th of 100", took.p99, peer, theirs.p99, unit="ms", bar=bar),
        Row(f"{what}: next_question, CPU", took.cpu, peer, theirs.cpu, unit="ms"),
        Row(f"{what}: subset_log_odds alone, median", alone.p50, peer, theirs.p50, unit="ms"),
        Row(f"{what}: subset_log_odds alone, 99th of 100", alone.p99, peer, theirs.p99, unit="ms"),
    ]


def _ranker_of_scores(rng: np.random.Generator, n_labels: int) -> CStarRanker:
    """Fit given scores of labels of which the first make others likelier."""
    scores = rng.normal(-3.0, 2.0, (60, n_labels))
    together = scores[:, :N_CORE] @ rng.normal(0.0, 0.3, (N_CORE, n_labels))
    Y = rng.logistic(size=scores.shape) < scores + together
    ranker = CStarRanker("precomputed", core=np.arange(N_CORE), C=0.1, tol=0.1, n_jobs=1)
    return ranker.fit(scores, Y.astype(np.int8))


def _question(rng: np.random.Generator, n_labels: int) -> _Question:
    known = np.full((1, n_labels), -1, dtype=np.int8)
    answered = rng.choice(n_labels, N_ANSWERS, replace=False)
    known[0, answered] = rng.integers(0, 2, N_ANSWERS)
    return _Question(rng.normal(-3.0, 2.0, (1, n_labels)), known)


def plain_log_odds(s: Floats, pair: Floats, core: NDArray[np.int64], known: Bytes) -> Floats:
    """Return the log-odds of each label of one row by arrays of core settings times labels."""
    n_core = len(core)
    settings = ((np.arange(1 << n_core)[:, None] >> np.arange(n_core)) & 1).astype(np.float64)
    u = s + settings @ pair
    yes, unsure = known == 1, known == -1
    likely = np.where(unsure, np.logaddexp(0.0, u), np.where(yes, u, 0.0))
    likely[:, core] = 0.0
    score = likely.sum(axis=1) + settings @ s[core]
    score += 0.5 * np.einsum("za,ab,zb->z", settings, pair[:, core], settings)
    score[((known[core] >= 0) & (settings != known[core])).any(axis=1)] = -np.inf
    chance = np.exp(score - score.max())
    chance /= chance.sum()
    inside, outside = chance @ (1.0 / (1.0 + np.exp(-u))), chance @ (1.0 / (1.0 + np.exp(u)))
    inside[core], outside[core] = chance @ settings, chance @ (1.0 - settings)
    with np.errstate(divide="ignore"):
        odds = np.log(inside) - np.log(outside)
    odds[~unsure] = np.where(yes[~unsure], np.inf, -np.inf)
    return odds


class _Milliseconds(NamedTuple):
    p50: float
    p99: float
    cpu: float
    """Mean, of all threads."""


def _milliseconds(function: Callable[[_Question], None], fresh: list[_Question]) -> _Milliseconds:
    for warm_up in fresh[:2]:
        function(warm_up)
    cpu = time.process_time()
    taken = each_seconds(function, fresh)
    cpu = (time.process_time() - cpu) / len(fresh)
    return _Milliseconds(milliseconds(taken), milliseconds(taken, 0.99), 1e3 * cpu)


# --- training --------------------------------------------------------------------------------------------------------


def _training(n_rows: int) -> list[Row]:
    """The default beside what came before it, base and choices included, on the rows of ``bench cstar``."""
    lists = make_interacting_lists(n_rows, 93, 12, n_core=5, n_features=1000, strength=0.5, random_state=0)
    X = lists.X / np.sqrt(lists.X.shape[1])
    took: list[tuple[float, float]] = []
    for fit in (_by_default, _pretrained):
        fit(X[:100], lists.Y[:100])  # compiles
        took.append(wall_and_cpu(lambda fit=fit: fit(X, lists.Y)))
    ours, theirs = took
    what, peer = f"train {n_rows} x 93 labels, 1,000 features, one thread", "logistic base and pretrained likelihood"
    bar = "ratio >= 0.67"
    return [Row(what, ours[0], peer, theirs[0], bar=bar), Row(f"{what}, CPU", ours[1], peer, theirs[1], bar=bar)]


def _by_default(X: Floats, Y: Bytes) -> None:
    CStarRanker(random_state=0, n_jobs=1).fit(X, Y)


def _pretrained(X: Floats, Y: Bytes) -> None:
    """The configuration that used to win, and that needs the number of labels."""
    with one_blas_thread():
        base = Logistic().cross_fit(X, Y.astype(np.float64), X[:1])
        LikelihoodGivenK(n_jobs=1).fit(base.train, Y)


# --- many labels -----------------------------------------------------------------------------------------------------


class _Measured(NamedTuple):
    fit: tuple[float, float]
    rank: tuple[float, float]
    predict: tuple[float, float]
    gigabytes: float
    megabytes_of_file: float
    n_core: int


def _many_labels(n_labels: int, n_rows: int) -> list[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found: _Measured = pool.submit(_fit_many, n_labels, n_rows).result()
    what, matrix = f"{n_labels} labels, {n_rows} sparse rows", 8e-9 * n_rows * n_labels
    return [
        Row(f"{what}: fit ({found.n_core} core labels)", found.fit[0]),
        Row(f"{what}: fit, CPU", found.fit[1]),
        Row(f"{what}: peak memory", found.gigabytes, "float64 rows x labels", matrix, unit="GB"),
        Row(f"{what}: model file", found.megabytes_of_file, unit="MB"),
        Row(f"{what}: rank 1,000 rows", found.rank[0]),
        Row(f"{what}: rank 1,000 rows, CPU", found.rank[1]),
        Row(f"{what}: predict 1,000 rows", found.predict[0]),
        Row(f"{what}: predict 1,000 rows, CPU", found.predict[1]),
    ]


def _fit_many(n_labels: int, n_rows: int) -> _Measured:
    X, Y = tagged_rows(n_rows + 1000, n_labels, n_features=5000, seed=0)
    CStarRanker(core=5, C=0.3).fit(X[:50], Y[:50, :20]).predict(X[:2])  # compiles
    ranker = CStarRanker()
    fit = wall_and_cpu(lambda: ranker.fit(X[:n_rows], Y[:n_rows]))
    gigabytes = 1e-6 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of Linux, in KiB
    rank, predict = wall_and_cpu(lambda: ranker.rank(X[n_rows:])), wall_and_cpu(lambda: ranker.predict(X[n_rows:]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        ranker.save(path)
        size = 1e-6 * path.stat().st_size
    return _Measured(fit, rank, predict, gigabytes, size, len(ranker.core_))


def tagged_rows(n_rows: int, n_labels: int, n_features: int, seed: int) -> tuple[Any, Any]:
    """Return sparse rows of about 50 words and their labels, of which a few are frequent and most are rare.

    Words tell the topic of a row, which makes some labels likelier; a yes or no that words do not tell does so too.
    """
    rng = np.random.default_rng(seed)
    topic, hidden = rng.integers(0, _TOPICS, n_rows), rng.random(n_rows) < 0.5
    label = np.arange(n_labels)
    log_odds = -1.1 * np.log(label + 6.0)
    words = rng.integers(0, n_features, (n_rows, _WORDS))
    of_topic = rng.integers(0, n_features, (_TOPICS, 2 * _WORDS))[
        topic[:, None], rng.integers(0, 2 * _WORDS, words.shape)
    ]
    words = np.where(rng.random(words.shape) < 0.5, of_topic, words)
    X = csr_array(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, _WORDS)), shape=(n_rows, n_features)
    )
    X.sum_duplicates()
    tags: list[NDArray[np.int64]] = []
    for row in range(n_rows):
        more = 3.0 * (label % _TOPICS == topic[row]) + 3.0 * (hidden[row] & (label % 5 == 0))
        tags.append(np.flatnonzero(rng.logistic(size=n_labels) < log_odds + more))
    ends = np.concatenate([[0], np.cumsum([len(row) for row in tags])])
    Y = csr_array((np.ones(ends[-1], dtype=np.int8), np.concatenate(tags), ends), shape=(n_rows, n_labels))
    return X, Y
