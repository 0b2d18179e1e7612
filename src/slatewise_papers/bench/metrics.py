"""Four measures of 10,000 lists x 100 items against ranx, and what importing costs.

Fresh inputs each repetition. ranx gets its objects built and its kernels compiled before the clock starts, judgments
of the relevant documents only, and no bookkeeping; the cold row of ours is the first result of a new process.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise import metrics
from slatewise.core.arrays import Floats
from slatewise.metrics.standings import Engine
from slatewise_papers.framework.benchmark import Row, Table
from slatewise_papers.framework.running import installed
from slatewise_papers.framework.timing import best_seconds, numbers_printed, seconds

Pair: TypeAlias = tuple[NDArray[np.int64], Floats]
_MEASURES = ("ndcg@10", "map", "mrr", "p@10")
_RANX_MEASURES = ["ndcg@10", "map", "mrr", "precision@10"]
_COLD = """
import sys, time
from slatewise import metrics
from slatewise_papers.bench.metrics import make_lists
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
    engines: dict[str, Callable[[int], float]] = {
        "cold": lambda seed: numbers_printed(_COLD.format(measures=_MEASURES), n_lists, seed)[0],
        "numpy": lambda seed: _our_seconds(make_lists(n_lists, seed), "numpy"),
        "compiled": lambda seed: _our_seconds(make_lists(n_lists, seed), "compiled"),
    }
    metrics.evaluate(_MEASURES, *make_lists(100, 0), engine="compiled")
    if installed("ranx"):
        _ranx_seconds(make_lists(100, 0))
        engines["ranx"] = lambda seed: _ranx_seconds(make_lists(n_lists, seed))
    # Round after round, not one after the other: what else the machine does then falls on all alike.
    rounds = [{name: time_of(seed) for name, time_of in engines.items()} for seed in range(1, repetitions + 1)]
    best = {name: min(seconds[name] for seconds in rounds) for name in engines}
    theirs = best.get("ranx")
    peer = None if theirs is None else "ranx, warm"
    what = f"{len(_MEASURES)} measures, {n_lists} lists x 100"
    rows = [
        Row(f"{what}: NumPy, first result of a new process", best["cold"], peer, theirs, bar="ratio >= 5, <= 0.5 s"),
        Row(f"{what}: NumPy, warm", best["numpy"], peer, theirs),
        Row(f"{what}: compiled, warm", best["compiled"], peer, theirs, bar="ratio >= 10"),
        *_import_rows(repetitions),
    ]
    return Table(
        "metrics",
        rows,
        [] if theirs is not None else ["ranx"],
        ["shortest times of several rounds; imports are new processes, less an empty one"],
    )


def _our_seconds(pair: Pair, engine: Engine) -> float:
    return best_seconds(lambda given: metrics.evaluate(_MEASURES, *given, engine=engine), [pair])


def _ranx_seconds(pair: Pair) -> float:
    ranx: Any = import_module("ranx")
    relevance, scores = pair
    docs = [f"d{item}" for item in range(scores.shape[1])]
    marked = [[docs[item] for item in np.flatnonzero(row)] or docs[:1] for row in relevance]
    qrels = ranx.Qrels({f"q{number}": dict.fromkeys(found, 1) for number, found in enumerate(marked)})
    answers = {f"q{number}": dict(zip(docs, row, strict=True)) for number, row in enumerate(scores.tolist())}
    objects = qrels, ranx.Run(answers)
    return best_seconds(lambda given: ranx.evaluate(*given, _RANX_MEASURES, save_results_in_run=False), [objects])


def _import_rows(repetitions: int) -> list[Row]:
    codes = [
        "pass",
        "import numpy",
        "import slatewise",
        "from slatewise import metrics",
        "import sklearn.base",
        "from slatewise import BestFeatureRanker",
        "from slatewise import CStarRanker",
    ]
    rounds = [[seconds(lambda code=code: numbers_printed(code)) for code in codes] for _ in range(repetitions)]
    bare, numpy, package, measures, sklearn, feature, cstar = (min(each) for each in zip(*rounds, strict=True))
    beyond = "<= 0.25 s more than the peer"
    return [
        Row("import slatewise", package - bare, bar="<= 0.05 s"),
        Row("from slatewise import metrics", measures - bare, "import numpy", numpy - bare, bar="<= 0.2 s"),
        Row(
            "from slatewise import BestFeatureRanker", feature - bare, "import sklearn.base", sklearn - bare, bar=beyond
        ),
        Row("from slatewise import CStarRanker", cstar - bare, "import sklearn.base", sklearn - bare, bar=beyond),
    ]
