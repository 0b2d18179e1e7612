"""LETOR sets in five parts, their official runs and figures; and LightGBM's example."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np

from slatewise.data.records import RowsToRank
from slatewise.data.svmlight import read_svmlight
from slatewise.datasets.records import About, FigureSet, OfficialRun, Published, RankingSet
from slatewise.datasets.splits import Split


def load_parts(about: About, folder: Path, n_features: int, parts: str = ".") -> RankingSet:
    """Load part1 to part5 and the folds made of them; with the official runs and figures that lie beside them."""
    names = [f"part{part}" for part in range(1, 6)]
    read = [read_svmlight(folder / parts / f"{name}.txt.xz", n_features=n_features) for name in names]
    part = np.repeat(np.arange(5), [len(ranking.y) for ranking in read])
    folds: list[Split] = []
    for fold in json.loads((folder / "folds.json").read_text()).values():
        inside = [np.isin(part, [names.index(name) for name in fold[which]]) for which in ("train", "vali", "test")]
        folds.append(Split(*(np.flatnonzero(rows) for rows in inside)))
    whole = _joined(about, read, tuple(folds))
    published = _mq2007_figures(folder / "official_baselines", about.name)
    return RankingSet(
        about, whole.X, whole.y, whole.qid, whole.doc_ids, whole.folds, published, _official_runs(folder, whole)
    )


def load_lightgbm_example(about: About, folder: Path) -> RankingSet:
    """Load train and test; the test queries, numbered from 1 again in their file, go on after the training ones."""
    train = read_svmlight(folder / "train.txt.xz", n_features=300)
    test = read_svmlight(folder / "test.txt.xz", n_features=300)
    test = RowsToRank(test.X, test.y, test.qid + train.qid.max(), test.doc_ids)
    n, no_rows = len(train.y), np.zeros(0, dtype=np.int64)
    return _joined(about, [train, test], (Split(np.arange(n), no_rows, np.arange(n, n + len(test.y))),))


def load_figures(about: About, folder: Path) -> FigureSet:
    """Load the runs' figures of every fold, and the spreadsheets cell by cell."""
    published: list[Published] = []
    for path in sorted((folder / "official_runs").glob("*_perf.txt")):
        method, data, fold = path.name.removesuffix("_perf.txt").split("_")
        published.append(Published(method, data, int(fold.removeprefix("fold")), _perf_figures(path)))
    tables = {path.stem: _cells(path) for path in sorted(folder.glob("*.csv"))}
    return FigureSet(about, tuple(published), tables)


def _joined(about: About, parts: list[RowsToRank], folds: tuple[Split, ...]) -> RankingSet:
    doc_ids = [part.doc_ids for part in parts if part.doc_ids is not None]
    return RankingSet(
        about,
        np.vstack([part.dense() for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
        np.concatenate(doc_ids) if len(doc_ids) == len(parts) else None,
        folds,
    )


def _official_runs(folder: Path, whole: RankingSet) -> tuple[OfficialRun, ...]:
    runs: list[OfficialRun] = []
    for fold, split in enumerate(whole.folds, start=1):
        for path in sorted((folder / "official_runs").glob(f"*_fold{fold}_perf.txt")):
            name = path.name.removesuffix("_perf.txt")
            scores = np.loadtxt(path.with_name(f"{name}_scores.txt.xz"))
            rows = split.test
            if scores.shape != rows.shape:
                raise ValueError(f"{path.parent}: expected {len(rows)} scores for {name}, found {scores.size}")
            figures = _perf_figures(path)
            runs.append(OfficialRun(name, whole.name, fold, figures, whole.y[rows], scores, whole.qid[rows]))
    return tuple(runs)


def _perf_figures(path: Path) -> dict[str, float]:
    """Read the LETOR tool's output: precision at 1, 2, ..., MAP, NDCG at 1, 2, ..."""
    figures: dict[str, float] = {}
    for line in path.read_text().splitlines():
        title, colon, text = line.partition(":")
        if not colon:
            continue
        values = [float(value) for value in text.split()]
        name = {"precision": "P@{}", "MAP": "MAP", "NDCG": "NDCG@{}"}[title]
        figures |= {name.format(rank): value for rank, value in enumerate(values, start=1)}
    return figures


def _mq2007_figures(folder: Path, data: str) -> tuple[Published, ...]:
    """Read the figures on the test parts of the full MQ2007: tables of measures, a row for each of folds 1 to 5."""
    published: dict[tuple[str, int], dict[str, float]] = {}
    for path in sorted(folder.glob("*.MQ2007*")):
        method = path.name.split(".")[0]
        text = path.read_text().split("Performance on validation set")[0]
        rows = [re.split(r"[\t,]", line.strip()) for line in text.splitlines()]
        for start, (title, *measures) in enumerate(rows):
            if title not in ("Folds", "Para"):
                continue
            names = [measure.replace("Pre@", "P@") for measure in measures]
            for fold in range(1, 6):
                values = map(float, rows[start + fold][1:])
                published.setdefault((method, fold), {}).update(zip(names, values, strict=True))
    return tuple(Published(method, data, fold, figures) for (method, fold), figures in published.items())


def _cells(path: Path) -> tuple[tuple[str, ...], ...]:
    with path.open(newline="") as lines:
        return tuple(tuple(row) for row in csv.reader(lines))
