"""Figure 2, Figure 3 (right) and Table 1 of Petterson, Caetano, McAuley and Yu (2009): ranking documents by matchings.

NDCG@1 to 10 on the folds of a LETOR collection, with LETOR's discount (1 at ranks 1 and 2, then 1/log2(rank)) and, as
``NDCG@k log2``, with 1/log2(rank + 1), the one the paper prints. Figures are means over folds and, for systems that
draw slates, over five draws; on large collections they draw once, and their names say so. A row "A minus B" is a mean
over lists, ``_p`` its p value (randomization over lists); "the better official run" is, at each k, the one of RankSVM
and RankBoost with the larger mean. The paper gives its figures as curves only; beside official runs stand the figures
LETOR published for them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slatewise import metrics
from slatewise.core.arrays import Floats
from slatewise.core.running.progress import track
from slatewise.matching.slates.ranker import MatchingRanker
from slatewise.matching.slates.slates import Slates
from slatewise_papers.framework.reproduction import Row
from slatewise_papers.framework.running import expected_warnings, installed
from slatewise_papers.framework.statistics import compared
from slatewise_papers.rankmatch import systems
from slatewise_papers.rankmatch.data import Fold, RankingProblem, Rows
from slatewise_papers.rankmatch.systems import Surrogate, System

DEPTHS = range(1, 11)
REPEATS = 5
MOST_REPEATED = 20_000
"""With more training rows than this there is one draw."""
RANKMATCH, DORM, BETTER = "RankMatch, one document a rating", "DORM, the same slates", "the better official run"
CHOSEN, WHOLE = "RankMatch, M by validation", "RankMatch, whole queries"
SIZES = (3, 4, 5)
FRACTIONS, QUICK_FRACTIONS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0), (0.03, 0.4)
TABLE_1: Mapping[tuple[int, Surrogate], float] = {
    (3, "likelihood"): 0.0006661,
    (3, "max-margin"): 0.0008965,
    (4, "likelihood"): 0.0011277,
    (4, "max-margin"): 0.0016086,
    (5, "likelihood"): 0.0030187,
    (5, "max-margin"): 0.0015328,
    (20, "likelihood"): 36.03,
    (20, "max-margin"): 0.9334556,
}
"""Seconds of training an observation. The two of M = 5 could not be distinguished with certainty in our copy."""
_MEASURES = {
    **{f"NDCG@{k}": metrics.preset("letor").NDCG(k) for k in DEPTHS},
    **{f"NDCG@{k} log2": metrics.NDCG(k) for k in DEPTHS},
}
_FEW_LISTS = 6  # to time slates of 20 documents on


@dataclass(frozen=True, eq=False)
class Measured:
    """A system's measures of every test list: (measures, lists), fold after fold, a mean over its draws."""

    values: Floats
    fold: Floats

    def means(self) -> dict[str, float]:
        """Return LETOR's figures: lists of a fold first, then folds."""
        by_fold = [np.nanmean(self.values[:, self.fold == fold], axis=1) for fold in np.unique(self.fold)]
        return dict(zip(_MEASURES, np.mean(by_fold, axis=0).tolist(), strict=True))

    def minus(self, other: Measured) -> dict[str, float]:
        """Return the differences over lists, and their p values."""
        return compared(_MEASURES, self.values, other.values)


def figure_2(problem: RankingProblem, quick: bool = False) -> list[Row]:
    """Measure every system on every fold; ``quick``: one draw."""
    large = len(problem.folds[0].train.y) > MOST_REPEATED
    draws = 1 if quick or large else REPEATS
    found_by = _systems(problem)
    measured = {
        name: _measure(problem, system, draws if drawn else 1)
        for name, drawn, system in track(found_by, f"{problem.name}: system")
    }
    shown = {name: f"{name}, one draw" if drawn and large else name for name, drawn, _ in found_by}
    official, published = _official(problem), problem.mean_published()
    rows = [Row(shown[name], found.means(), published.get(name)) for name, found in measured.items()]
    rows += [Row(f"official {name}", found.means(), _figures(problem, name)) for name, found in official.items()]
    rows += [Row(f"published {name}", {}, figures) for name, figures in published.items() if name not in measured]
    ours = [name for name in (RANKMATCH, CHOSEN, WHOLE) if name in measured]
    rows += [Row(f"{shown[name]} minus {shown[DORM]}", measured[name].minus(measured[DORM]), None) for name in ours]
    if official:
        better = _better(list(official.values()))
        rows += [Row(f"{shown[name]} minus {BETTER}", measured[name].minus(better), None) for name in ours]
    return [Row(f"{problem.name}: {row.name}", row.measured, row.paper) for row in rows]


def consistency(problem: RankingProblem, quick: bool = False) -> list[Row]:
    """NDCG@1 of both estimators with growing numbers of slates."""
    rows: list[Row] = []
    for fraction in track(QUICK_FRACTIONS if quick else FRACTIONS, "number of slates"):
        for name, system in (
            ("RankMatch", systems.rankmatch(fraction)),
            ("DORM", systems.dorm(fraction)),
        ):
            found = _measure(problem, system, 1 if quick else REPEATS).means()
            measured = {key: found[key] for key in ("NDCG@1", "NDCG@1 log2", "NDCG@10")}
            rows.append(Row(f"{problem.name}: {name}, {fraction} D M slates", measured, None))
    return rows


def table_1(problem: RankingProblem, quick: bool = False) -> list[Row]:
    """Seconds of a whole training run, divided by its number of slates; at M = 20 one slate per query of a few."""
    rows: list[Row] = []
    for (size, surrogate), published in track(TABLE_1.items(), "size of slates"):
        fold = problem.folds[0]
        train = _with_slates(fold.train, size)
        if size == 20:
            train = train.of(np.flatnonzero(np.isin(train.qid, np.unique(train.qid)[: 1 if quick else _FEW_LISTS])))
        fraction = 0.4 if size < 20 else 1e-9
        sizes = np.unique(train.qid, return_counts=True)[1]
        observations = int(np.maximum(1, np.rint(fraction * size * sizes)).sum())
        slates = Slates(size, fraction, repeats=1, missing="skip")
        ranker = MatchingRanker(slates, surrogate=surrogate, random_state=0)
        few = train.of(np.flatnonzero(train.qid == train.qid[0]))
        with expected_warnings():
            if size < 20:
                ranker.fit(few.X, few.y, qid=few.qid)  # compiles what it needs
            start = time.perf_counter()
            ranker.fit(train.X, train.y, qid=train.qid)
        seconds = (time.perf_counter() - start) / observations
        rows.append(Row(f"training, M={size}, {surrogate}", {"seconds": seconds}, {"seconds": published}))
    return rows


def _systems(problem: RankingProblem) -> list[tuple[str, bool, System]]:
    """Name, whether it draws slates, and the system."""
    graded = len(np.unique(problem.folds[0].train.y)) > 2
    found: list[tuple[str, bool, System]] = [(RANKMATCH, True, systems.rankmatch())]
    if graded:
        found.append((CHOSEN, True, systems.rankmatch_choosing(SIZES)))
    found += [
        (WHOLE, False, systems.whole_queries),
        (DORM, True, systems.dorm()),
        ("ListNet", False, systems.listnet),
        ("AdaRank-MAP", False, systems.adarank(metrics.preset("letor").AP())),
        ("AdaRank-NDCG", False, systems.adarank(metrics.preset("letor").NDCG(10))),
        ("MarginRanker-MAP", False, systems.margin),
    ]
    if installed("lightgbm"):
        found.append(("LightGBM lambdarank", False, systems.lambdarank))
    return found


def _measure(problem: RankingProblem, system: System, draws: int) -> Measured:
    """Train and test on every fold; a draw has its own seed in every fold."""
    per_fold = [
        np.mean([_per_list(fold.test, system(fold, 100 * draw + place)) for draw in range(draws)], axis=0)
        for place, fold in enumerate(problem.folds)
    ]
    return Measured(np.hstack(per_fold), _fold_numbers(problem.folds))


def _official(problem: RankingProblem) -> dict[str, Measured]:
    """Measure the source's own runs on the same lists."""
    by_method: dict[str, list[Floats]] = {}
    for run in sorted(problem.runs, key=lambda run: run.fold):
        rows = Rows(np.empty((len(run.scores), 0)), run.relevance, run.qid)
        by_method.setdefault(_method(run.name), []).append(_per_list(rows, run.scores))
    folds = _fold_numbers(problem.folds)
    return {name: Measured(np.hstack(values), folds) for name, values in by_method.items()}


def _figures(problem: RankingProblem, method: str) -> dict[str, float]:
    """Return what the source printed for its own run, as means over folds."""
    printed = [run.figures for run in problem.runs if _method(run.name) == method]
    return {name: float(np.mean([one[name] for one in printed])) for name in _MEASURES if name in printed[0]}


def _method(run: str) -> str:
    return run.split("_")[0]


def _better(runs: list[Measured]) -> Measured:
    """Take, at each k, the run with the larger mean."""
    means = np.array([list(run.means().values()) for run in runs])
    chosen = [runs[int(best)].values[row] for row, best in enumerate(np.argmax(means, axis=0))]
    return Measured(np.array(chosen), runs[0].fold)


def _per_list(rows: Rows, scores: Floats) -> Floats:
    return np.array([measure.per_list(rows.y, scores, rows.qid) for measure in _MEASURES.values()])


def _fold_numbers(folds: tuple[Fold, ...]) -> Floats:
    sizes = [len(np.unique(fold.test.qid)) for fold in folds]
    return np.repeat(np.arange(float(len(folds))), sizes)


def _with_slates(rows: Rows, size: int) -> Rows:
    """Keep the lists that have a slate: every rating, and enough documents."""
    there = len(np.unique(rows.y))
    inside = {qid: rows.y[rows.qid == qid] for qid in np.unique(rows.qid)}
    kept = [qid for qid, y in inside.items() if len(y) >= size and len(np.unique(y)) >= min(size, there)]
    return rows.of(np.flatnonzero(np.isin(rows.qid, kept)))
