"""The systems of the command line: what each one reads, how it is fitted, ranked with and measured."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from slatewise import BestFeatureRanker, CStarRanker, LatentRanker, MarginRanker, MatchingRanker, MetricRanker, metrics
from slatewise.data.records import MultiLabel, Qrels, Run, Strings
from slatewise.inputs import (
    UNSAID,
    PairColumns,
    Part,
    document_ids,
    has_labels,
    read_classes,
    read_interactions,
    read_labels,
    read_ranking,
)
from slatewise.progress import tell


@dataclass(frozen=True)
class Task(ABC):
    """An estimator class and the kind of data it works on."""

    estimator: type[Any]

    def make(self, params: Sequence[str]) -> Any:
        """Build the estimator with ``name=value`` parameters (JSON values, or plain text); it tells of its rounds."""
        chosen = self.estimator()
        if "callbacks" in chosen.get_params():
            chosen.set_params(callbacks=[tell])
        for text in params:
            name, equals, value = text.partition("=")
            if not equals or name not in chosen.get_params():
                known = ", ".join(chosen.get_params())
                raise ValueError(f"--param: expected name=value with a name from {known}, found {text!r}")
            chosen.set_params(**{name: _json_or_text(value)})
        return chosen

    def reading(self, columns: PairColumns) -> Self:
        """Return the task that reads files of pairs like this; the others have none."""
        if columns != UNSAID:
            raise ValueError("--header, --weight: expected with files of pairs, for latent, only")
        return self

    @abstractmethod
    def fit(self, estimator: Any, data: str) -> None:
        """Read the data and fit."""

    @abstractmethod
    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank every list of the data and keep its best."""

    @abstractmethod
    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the model on the data."""


class DocumentTask(Task):
    """Documents of queries: graded rows with query ids."""

    def fit(self, estimator: Any, data: str) -> None:
        """Fit on graded rows."""
        rows = read_ranking(data, part=Part.TRAIN)
        estimator.fit(rows.dense(), rows.y, qid=rows.qid)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the documents of every query."""
        rows = read_ranking(data, model.n_features_in_, Part.TEST)
        X = rows.dense()
        rankings = model.rank(X, rows.qid).top(top)
        qid = np.repeat(rankings.ids, np.diff(rankings.offsets)).astype(str)
        return Run(qid, document_ids(rows)[rankings.order], model.predict(X)[rankings.order])

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the documents of every query."""
        rows = read_ranking(data, model.n_features_in_, Part.TEST)
        scores = model.predict(rows.dense())
        return [measure(rows.y, scores, rows.qid, document_ids(rows)) for measure in measures]


class LabelTask(Task):
    """Labels of rows: a row is a list, and the labels are its items."""

    def fit(self, estimator: Any, data: str) -> None:
        """Fit on rows with sets of labels."""
        rows = read_labels(data, part=Part.TRAIN)
        estimator.fit(_dense(rows), rows.Y)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the labels of every row by how much the best score falls without them; rows are named from 0."""
        rows = _rows_for(model, data)
        scores = _finite_scores(model, _dense(rows))
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        qid = np.repeat(np.arange(len(order)), order.shape[1]).astype(str)
        return Run(qid, rows.label_names[order.ravel()], np.take_along_axis(scores, order, axis=1).ravel())

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the labels of every row; break-even precision selects as many as are relevant."""
        rows = _rows_for(model, data)
        relevance = rows.Y.toarray()
        X = _dense(rows)
        values: list[float] = []
        for measure in measures:
            k = relevance.sum(axis=1) if measure.name == "bep" else None
            values.append(measure(relevance, _finite_scores(model, X, k)))
        return values


class ExampleTask(Task):
    """Rows that ask for rows like themselves: every row of the data ranks the rows of the training data."""

    def fit(self, estimator: Any, data: str) -> None:
        """Fit on rows with classes."""
        rows = read_classes(data, part=Part.TRAIN)
        estimator.fit(rows.X, rows.y)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Return the nearest training rows of every row; both are named by number, from 0."""
        X = read_classes(data, model.n_features_in_, Part.TEST).X
        distances = model.distances(X)
        order = np.argsort(distances, axis=1, kind="stable")[:, :top]
        scores = 0.0 - np.take_along_axis(distances, order, axis=1)
        qid = np.repeat(np.arange(len(order)), order.shape[1]).astype(str)
        return Run(qid, order.ravel().astype(np.str_), scores.ravel())

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure where the training rows of a row's own class stand."""
        rows = read_classes(data, model.n_features_in_, Part.TEST)
        relevance = rows.y[:, None] == model.classes_[model.catalogue_labels_]
        scores = -model.distances(rows.X)
        return [measure(relevance.astype(np.float64), scores) for measure in measures]


@dataclass(frozen=True)
class CatalogueTask(Task):
    """Pairs of a query and an item, or rows with sets of labels, which are then the items: each ranks all items."""

    columns: PairColumns = UNSAID

    def reading(self, columns: PairColumns) -> Self:
        """Return the task that reads files of pairs like this."""
        return replace(self, columns=columns)

    def fit(self, estimator: Any, data: str) -> None:
        """Fit on observed pairs, or on features of the queries."""
        if self.columns == UNSAID and has_labels(data):
            rows = read_labels(data, part=Part.TRAIN)
            estimator.fit(rows.X, rows.Y)
            return
        pairs = read_interactions(data, self.columns, Part.TRAIN)
        estimator.fit(pairs.queries, pairs.items, pairs.weights)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the items for every query of the data that the model knows; rows of features are named from 0."""
        if model.by_features_:
            rows = self._rows(model, data)
            ids, scores = model.rank(rows.X, min(top, len(model.item_ids_)))
            return _run(np.arange(len(ids)), rows.label_names[ids], scores)
        queries = read_interactions(data, self.columns, Part.TEST).queries.astype(np.str_)
        return self._ranked(model, data, queries, top, "get no list")

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure where the items observed with a query stand, among its best ``DEEPEST``; without a list they miss."""
        if model.by_features_:
            rows = self._rows(model, data)
            scores, relevance = model.score(rows.X, model.item_ids_), rows.Y.toarray()
            return [measure(relevance, scores) for measure in measures]
        pairs = read_interactions(data, self.columns, Part.TEST)
        both = np.stack([pairs.queries.astype(np.str_), pairs.items.astype(np.str_)], axis=1)
        queries, items = np.unique(both, axis=0).T
        observed = Qrels(queries, items, np.ones(len(items), dtype=np.int64))
        run = self._ranked(model, data, queries, DEEPEST, "count as misses")
        return list(metrics.evaluate_run(measures, run, observed, missing="zero").values())

    def _rows(self, model: Any, data: str) -> MultiLabel:
        super().reading(self.columns)
        return read_labels(data, model.n_features_in_, len(model.item_ids_), Part.TEST)

    def _ranked(self, model: Any, data: str, asked: Strings, top: int, otherwise: str) -> Run:
        """Rank for the queries that the model knows, and say what happens to the others."""
        # Ids are numbers where all of a file are: only as text are they the same in every file.
        asked, known = np.unique(asked), model.query_ids_.astype(np.str_)
        unknown, queries = np.setdiff1d(asked, known), model.query_ids_[np.isin(known, asked)]
        if not len(queries):
            raise ValueError(f"{data}: expected queries that the model knows, found none")
        if len(unknown):
            what = f"{len(unknown)} of {len(asked)} queries, {str(unknown[0])!r} the first, are unknown to the model"
            warnings.warn(f"{data}: {what} and {otherwise}", stacklevel=2)
        return _run(queries, *model.rank(queries, min(top, len(model.item_ids_))))


DEEPEST = 1000
"""Places of a catalogue's ranking that are looked at."""
TASKS: dict[str, Task] = {
    "cstar": LabelTask(CStarRanker),
    "feature": DocumentTask(BestFeatureRanker),
    "latent": CatalogueTask(LatentRanker),
    "margin": DocumentTask(MarginRanker),
    "matching": DocumentTask(MatchingRanker),
    "metric": ExampleTask(MetricRanker),
}


def task_named(system: str) -> Task:
    """Return the task a command names."""
    if system not in TASKS:
        raise ValueError(f"system: expected one of {', '.join(TASKS)}, found {system!r}")
    return TASKS[system]


def task_of(model: object) -> Task:
    """Return the task of a loaded model."""
    for task in TASKS.values():
        if task.estimator is type(model):
            return task
    raise ValueError(f"model: expected one of {', '.join(TASKS)}, found {type(model).__name__}: use it from Python")


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _run(queries: Any, ids: Any, scores: Any) -> Run:
    qid = np.repeat(queries, ids.shape[1]).astype(np.str_)
    return Run(qid, ids.ravel().astype(np.str_), scores.ravel().astype(np.float64))


def _rows_for(model: Any, data: str) -> MultiLabel:
    return read_labels(data, model.n_features_in_, model.pair_.shape[1], Part.TEST)


def _finite_scores(model: Any, X: Any, k: Any = None) -> Any:
    """Score labels; one that must be in, or out, is above, or below, all others: runs and measures want numbers."""
    return np.nan_to_num(model.decision_function(X, k=k), posinf=1e30, neginf=-1e30)


def _dense(rows: MultiLabel) -> Any:
    return rows.X.toarray() if issparse(rows.X) else rows.X
