"""Collections for the ranking tables: features scaled per query, the source's folds, the source's own runs.

A name of :mod:`slatewise.datasets`, a LETOR folder (``Fold1`` to ``Fold5``, each with a training, a validation and a
test file: how TD2003 and TD2004 are distributed), or any file of graded rows, which is then cut into five folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise import datasets
from slatewise.cli.inputs import read_rows_to_rank
from slatewise.core.arrays import Floats
from slatewise.data import minmax_per_query, read_svmlight
from slatewise.datasets.records import FigureSet, OfficialRun, Published, RankingSet

QUICK_LISTS = 12


class Rows(NamedTuple):
    """Graded rows with their lists."""

    X: Floats
    y: Floats
    qid: NDArray[Any]

    def of(self, rows: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[rows], self.y[rows], self.qid[rows])


class Fold(NamedTuple):
    """What to learn from, what to choose by, and what to measure on."""

    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True, eq=False)
class RankingProblem:
    """A collection cut into folds."""

    name: str
    folds: tuple[Fold, ...]
    runs: tuple[OfficialRun, ...] = ()
    published: tuple[Published, ...] = ()

    def smaller(self) -> RankingProblem:
        """Return the first fold with few lists: enough to see every part at work."""
        return replace(self, folds=(Fold(*map(_first_lists, self.folds[0])),), runs=(), published=())

    def mean_published(self) -> Mapping[str, dict[str, float]]:
        """Return each method's published NDCG, as means over the folds."""
        by_method: dict[str, list[Mapping[str, float]]] = {}
        for row in self.published:
            by_method.setdefault(row.name, []).append(row.figures)
        return {
            method: {
                name: float(np.mean([one[name] for one in figures])) for name in figures[0] if name.startswith("NDCG@")
            }
            for method, figures in by_method.items()
        }


def load_ranking(name: str) -> RankingProblem:
    """Load a collection."""
    if name in datasets.names():
        return _named(datasets.load(name, RankingSet))
    if Path(name).is_dir():
        return _letor_folder(Path(name))
    rows = read_rows_to_rank(name)
    whole = Rows(_scaled(rows.dense(), rows.qid), rows.y, rows.qid)
    return RankingProblem(name, _cut(whole, datasets.k_fold_by_list(rows.qid, random_state=0)))


def _named(loaded: RankingSet) -> RankingProblem:
    whole = Rows(_scaled(loaded.X, loaded.qid), loaded.y, loaded.qid)
    return RankingProblem(loaded.name, _cut(whole, loaded.folds), loaded.runs, loaded.published)


def _letor_folder(folder: Path) -> RankingProblem:
    folds: list[Fold] = []
    for place in sorted(folder.glob("**/Fold[1-9]")):
        read = [read_svmlight(_only_file(place, start)) for start in ("train", "vali", "test")]
        n_features = max(part.X.shape[1] for part in read)
        wide = [np.pad(part.dense(), ((0, 0), (0, n_features - part.X.shape[1]))) for part in read]
        folds.append(Fold(*(Rows(_scaled(X, part.qid), part.y, part.qid) for X, part in zip(wide, read, strict=True))))
    if not folds:
        raise ValueError(f"{folder}: expected folders Fold1, Fold2, .. in it, found none")
    published = tuple(row for row in _letor_figures() if row.data.lower() == folder.name.lower())
    return RankingProblem(folder.name, tuple(folds), published=published)


def _only_file(folder: Path, start: str) -> Path:
    found = sorted(path for path in folder.iterdir() if path.name.lower().startswith(start))
    if len(found) != 1:
        raise ValueError(f"{folder}: expected one file whose name begins with {start!r}, found {len(found)}")
    return found[0]


def _letor_figures() -> tuple[Published, ...]:
    here = datasets.describe("letor-baselines").present
    return datasets.load("letor-baselines", FigureSet).published if here else ()


def _cut(whole: Rows, splits: tuple[datasets.Split, ...]) -> tuple[Fold, ...]:
    return tuple(Fold(*map(whole.of, (split.train, split.validation, split.test))) for split in splits)


def _scaled(X: Floats, qid: NDArray[Any]) -> Floats:
    return minmax_per_query(np.asarray(X, dtype=np.float64), qid)


def _first_lists(rows: Rows) -> Rows:
    _, first = np.unique(rows.qid, return_index=True)
    kept = rows.qid[np.sort(first)][:QUICK_LISTS]
    return rows.of(np.flatnonzero(np.isin(rows.qid, kept)))
