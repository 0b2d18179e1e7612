"""Four measures of 10,000 lists x 100 items against ranx, and what importing costs.

Fresh inputs each repetition. ranx gets its objects built and its kernels compiled before the clock starts, judgements
of the relevant documents only, and no bookkeeping; the cold row of ours is the first result of a new process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.bench._table import Row, Table, best_seconds, installed
from slatewise.metrics.conventions import Float

Pair: TypeAlias = tuple[NDArray[np.int64], Float]
_MEASURES = ("ndcg@10", "map", "mrr", "p@10")
_RANX_MEASURES = ["ndcg@10", "map", "mrr", "precision@10"]
_COLD = """
import sys, time
from slatewise import metrics
from slatewise.bench.metrics import make_lists
relevance, scores = make_lists(int(sys.argv[1]), int(sys.argv[2]))
start = time.perf_counter()
metrics.evaluate({measures!r}, relevance, scores, engine="numpy")
print(time.perf_counter() - start)
"""


def make_lists(n_lists: int, seed: int) -> Pair:
    """Draw lists of 100 items, one in ten relevant, with distinct scores."""
    rng = np.random.default_rng(seed)
    return (rng.random((n_lists, 100)) < 0.1).astype(np.int64), rng.random((n_lists, 100))


def run(quick: bool = False) -> Table:
    """Measure; ``quick`` takes a tenth of the lists."""
    n_lists, repetitions = (1_000, 3) if quick else (10_000, 7)

    def lists(first_seed: int) -> Iterator[Pair]:
        return (make_lists(n_lists, first_seed + number) for number in range(repetitions))

    metrics.evaluate(_MEASURES, *make_lists(100, 0), engine="compiled")
    cold = _median_output(_COLD.format(measures=_MEASURES), repetitions, str(n_lists))
    warm = best_seconds(lambda pair: metrics.evaluate(_MEASURES, *pair, engine="numpy"), lists(100))
    compiled = best_seconds(lambda pair: metrics.evaluate(_MEASURES, *pair, engine="compiled"), lists(200))
    theirs = _ranx_seconds(lists(300)) if installed("ranx") else None
    peer = None if theirs is None else "ranx, warm"
    what = f"{len(_MEASURES)} measures, {n_lists} lists x 100"
    rows = [
        Row(f"{what}: NumPy, first result of a new process", cold, peer, theirs, bar="ratio >= 5, ours <= 0.5 s"),
        Row(f"{what}: NumPy, warm", warm, peer, theirs),
        Row(f"{what}: compiled, warm", compiled, peer, theirs, bar="ratio >= 10"),
        *_import_rows(repetitions),
    ]
    return Table("metrics", rows, [] if theirs is not None else ["ranx"], ["import times: median over new processes"])


def _ranx_seconds(lists: Iterator[Pair]) -> float:
    ranx: Any = import_module("ranx")
    docs = [f"d{item}" for item in range(100)]

    def built(pair: Pair) -> tuple[Any, Any]:
        relevance, scores = pair
        marked = [[docs[item] for item in np.flatnonzero(row)] or docs[:1] for row in relevance]
        qrels = {f"q{number}": dict.fromkeys(found, 1) for number, found in enumerate(marked)}
        answers = {f"q{number}": dict(zip(docs, row, strict=True)) for number, row in enumerate(scores.tolist())}
        return ranx.Qrels(qrels), ranx.Run(answers)

    def ask(objects: tuple[Any, Any]) -> object:
        return ranx.evaluate(*objects, _RANX_MEASURES, save_results_in_run=False)

    ask(built(make_lists(100, 0)))
    return best_seconds(ask, map(built, lists))


def _import_rows(repetitions: int) -> list[Row]:
    bare = _median_seconds("pass", repetitions)
    numpy = _median_seconds("import numpy", repetitions) - bare
    package = _median_seconds("import slatewise", repetitions) - bare
    measures = _median_seconds("from slatewise import metrics", repetitions) - bare
    return [
        Row("import slatewise", package, bar="ours <= 0.05 s"),
        Row("from slatewise import metrics", measures, "import numpy", numpy, bar="ours <= 0.2 s"),
    ]


def _median_seconds(code: str, repetitions: int) -> float:
    """Time whole processes, from outside."""
    seconds: list[float] = []
    for _ in range(repetitions):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def _median_output(code: str, repetitions: int, argument: str) -> float:
    """Take what new processes print, each with its own seed."""
    commands = [[sys.executable, "-c", code, argument, str(seed)] for seed in range(repetitions)]
    return median(
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for command in commands
    )
