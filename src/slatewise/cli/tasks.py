"""What the command line does with each kind of data: read it, fit, rank and measure.

A :class:`Task` joins an estimator with its kind of data: "lists" are graded rows of queries, "label sets" rows with
labels, "examples" rows with classes, "pairs" queries with items, "interactions" users with items, "feature pairs" rows
whose labels are the items, and "sessions" lists of items. :data:`TASKS` has one for each estimator of the registry that
the command line fits.
"""

from __future__ import annotations

import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from slatewise import metrics
from slatewise._registry import ESTIMATORS, Data, estimator_class
from slatewise.cli.inputs import (
    Part,
    document_ids,
    has_labels,
    is_tag_file,
    read_classes,
    read_excluded,
    read_grades,
    read_interactions,
    read_item_ids,
    read_labels,
    read_queries,
    read_rows_to_rank,
    read_session_log,
)
from slatewise.cli.options import (
    DEFAULT_DATA,
    EVENT_OPTIONS,
    FILTER_OPTIONS,
    NO_FILTERS,
    TAG_OPTIONS,
    DataOptions,
    FilterOptions,
)
from slatewise.core.rankings import Rankings
from slatewise.core.running.progress import tell
from slatewise.data.records import Ids, MultiLabel, Qrels, RowsToRank, Run, Sessions, Strings

PREFIXES_AT_ONCE = 4096
DEEPEST = 1000
"""Ranks of a catalog that are measured."""
MAX_JUDGEMENTS = 20_000_000
"""Pairs of one class that are written out to measure a run: some GB."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """The relevant documents, and whether a query without a list counts as 0 or is left out."""

    qrels: Qrels
    missing: Literal["skip", "zero"] = "skip"
    n_rows: int | None = None
    """The number of rows to rank, if they are named by their number, from 0."""


@dataclass(frozen=True, eq=False)
class RankFilters:
    """The filters of ``rank``, read from their files."""

    given: dict[str, Any]
    """For all queries."""
    excluded: dict[str, list[Any]] | None
    """The excluded items of a query, by its name."""

    @classmethod
    def read(cls, options: FilterOptions, item_ids: Ids, names: Ids, header: bool | None = None) -> Self:
        """Read the files, with ids of the model's kind; ``names`` are those of the queries.

        Of the option ``header`` of the data, only ``--no-header`` applies to these files, too.
        """
        header = False if header is False else None
        given: dict[str, Any] = {"exclude_seen": options.exclude_seen, "unknown": "ignore"}
        if options.candidates is not None:
            name = str(options.candidates)
            given["candidates"] = _as_known(name, read_item_ids(name, header), item_ids)
        if options.exclude is None:
            return cls(given, None)
        name = str(options.exclude)
        pairs, excluded = read_excluded(name, header), dict[str, list[Any]]()
        items = _as_known(name, pairs.items, item_ids).tolist()
        for query, item in zip(pairs.queries.astype(np.str_).tolist(), items, strict=True):
            excluded.setdefault(query, []).append(item)
        if excluded.keys().isdisjoint(names.astype(np.str_).tolist()):
            what = f"none of its {len(excluded)} queries is ranked, so nothing is hidden"
            warnings.warn(f"{name}: {what}; the first: {next(iter(excluded))!r}", stacklevel=2)
        return cls(given, excluded)

    def of(self, names: Ids) -> dict[str, Any]:
        """Return the filters for queries with these names, as arguments of ``rank``."""
        if self.excluded is None:
            return self.given
        return self.given | {"exclude": [self.excluded.get(name, []) for name in names.astype(np.str_).tolist()]}


@dataclass(frozen=True)
class Task(ABC):
    """An estimator, by its name, and the kind of data it works on."""

    name: str
    options: DataOptions = field(default=DEFAULT_DATA, compare=False)
    filters: FilterOptions = field(default=NO_FILTERS, compare=False)

    takes: ClassVar[frozenset[str]] = frozenset()
    """Options of this kind of data: header, weight, tags, events, filters, catalogue."""

    def make(self, params: Sequence[str]) -> Any:
        """Build the estimator with ``name=value`` parameters (JSON values, or plain text).

        ``loss__k=3`` sets a field of a parameter that is a settings object; such parameters are set after the others.
        """
        chosen = estimator_class(self.name)()
        known = chosen.get_params(deep=False)
        for text in sorted(params, key=lambda text: "__" in text.partition("=")[0]):
            name, equals, value = text.partition("=")
            if not equals or name.partition("__")[0] not in known:
                raise ValueError(f"--param: expected name=value with a name from {', '.join(known)}, found {text!r}")
            try:
                chosen.set_params(**{name: _json_or_text(name, value)})
            except ValueError as error:
                raise ValueError(f"--param {error}") from None
        return chosen

    def reading(self, options: DataOptions, filters: FilterOptions = NO_FILTERS) -> Self:
        """Return the task with these options; refuse those that its kind of data does not have."""
        wrong = {
            "weight": options.weight is not None
            and "--weight: expected with files of pairs, for latent and collaborative, only",
            "header": options.header is not None
            and "--header: expected with files of pairs or sessions, found other data",
            "tags": options.tagged
            and f"{TAG_OPTIONS}: expected with rows that have labels, for cstar and cstar-margin, only",
            "events": options.events
            and f"{EVENT_OPTIONS}: expected with sessions, of fit sessions, neighbors and cooccurrence",
            "filters": filters != NO_FILTERS
            and f"{FILTER_OPTIONS}: expected with sessions, or with pairs of ids, only",
        }
        for option, message in wrong.items():
            if message and option not in self.takes:
                raise ValueError(message)
        return replace(self, options=options, filters=filters)

    @abstractmethod
    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Read the data and fit; ``run`` are further arguments of ``fit``."""

    @abstractmethod
    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank every list of the data and keep its best."""

    @abstractmethod
    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the model on the data."""

    @abstractmethod
    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Read the relevant documents of a run; ``catalogue`` is the file that fit read, for rows with classes."""


class DocumentTask(Task):
    """Documents of queries: graded rows with query ids."""

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on graded rows."""
        rows = read_rows_to_rank(data, part=Part.TRAIN)
        estimator.fit(_features(rows), rows.y, qid=rows.qid, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the documents of every query."""
        rows = read_rows_to_rank(data, model.n_features_in_, Part.TEST, require_labels=False)
        return model.rank(_features(rows), rows.qid, doc_ids=document_ids(rows)).top(top).to_run()

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the documents of every query."""
        rows = read_rows_to_rank(data, model.n_features_in_, Part.TEST)
        scores = model.predict(_features(rows))
        return [measure(rows.y, scores, rows.qid, document_ids(rows)) for measure in measures]

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the grades of every query's documents."""
        return Judgements(read_grades(data))


class LabelTask(Task):
    """Labels of rows: a row is a list, and the labels are its items."""

    takes = frozenset({"tags"})

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on rows with sets of labels; from tables the model keeps the names of the features."""
        takes_unknown = self.name == "CStarRanker"
        rows = read_labels(data, part=Part.TRAIN, options=self.options, partly_known=takes_unknown)
        Y = rows.Y if rows.known is None else np.where(rows.known, rows.Y.toarray(), -1)
        if takes_unknown:
            run = {**run, "answered": rows.answered}
        elif rows.answered is not None and not rows.answered.all():
            raise ValueError(f"{data}: expected answers for all labels, found some volunteered: only cstar takes these")
        estimator.fit(_dense(rows), Y, label_names=rows.label_names, **run)
        if is_tag_file(data) and rows.feature_names is not None:
            estimator.feature_names_in_ = rows.feature_names.astype(object)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the labels of every row by how much the best score falls without them; rows without id are named from 0.

        Labels have the names of fit; for a model without names, those of the data.
        """
        rows = self._rows(model, data, require_labels=False)
        own: Ids = model.label_names_
        names = own if own.dtype.kind == "U" else rows.label_names
        return _best(_finite_scores(model, _dense(rows)), top, names, _row_ids(rows))

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the labels of every row; break-even precision selects as many as are relevant."""
        rows = self._rows(model, data)
        relevance = rows.Y.toarray()
        X = _dense(rows)
        values: list[float] = []
        for measure in measures:
            k = relevance.sum(axis=1) if measure.name == "bep" else None
            values.append(measure(relevance, _finite_scores(model, X, k), ids=rows.label_names))
        return values

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the labels of every row; rows without id are named from 0."""
        return Judgements(_labels_of_rows(data, self.options))

    def _rows(self, model: Any, data: str, require_labels: bool = True) -> MultiLabel:
        # Columns are found by name here; scikit-learn would warn of rows without names.
        features: Any = cast("Any", vars(model)).pop("feature_names_in_", None) if is_tag_file(data) else None
        names = model.label_names_ if model.label_names_.dtype.kind == "U" and require_labels else None
        return read_labels(
            data,
            model.n_features_in_,
            model.pair_.shape[1],
            Part.TEST,
            require_labels=require_labels,
            options=self.options,
            feature_names=None if features is None else features.tolist(),
            label_names=None if names is None else names.tolist(),
        )


class ExampleTask(Task):
    """Rows with classes: every row of the data ranks the rows of the training data."""

    takes = frozenset({"catalogue"})

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on rows with classes."""
        rows = read_classes(data, part=Part.TRAIN)
        estimator.fit(rows.X, rows.y, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Return the nearest training rows of every row; both are named by number, from 0."""
        scores = model.scores(read_classes(data, model.n_features_in_, Part.TEST, require_labels=False).X)
        return _best(scores, top, np.arange(int(scores.shape[1])), np.arange(len(scores)))

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the ranks of the training rows of a row's own class."""
        if not hasattr(model, "classes_"):
            raise ValueError("model: expected one fitted on rows with classes, found one of labels or of lists")
        rows = read_classes(data, model.n_features_in_, Part.TEST)
        relevance = rows.y[:, None] == model.classes_[model.catalogue_labels_]
        scores = model.scores(rows.X)
        ids = np.arange(len(model.catalogue_labels_)).astype(np.str_)
        return [measure(relevance.astype(np.float64), scores, ids=ids) for measure in measures]

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the rows of a row's own class: those of ``catalogue``, by default of the data."""
        classes = read_classes(data, part=Part.TEST).y.astype(np.str_)
        own = read_classes(catalogue or data, part=Part.TRAIN).y.astype(np.str_)
        members = {name: np.flatnonzero(own == name) for name in np.unique(classes)}
        lengths = np.array([len(members[name]) for name in classes])
        if lengths.sum() > MAX_JUDGEMENTS:
            found = f"{lengths.sum()} pairs of one class"
            raise ValueError(f"{data}: expected at most {MAX_JUDGEMENTS} for a run, found {found}: evaluate the model")
        relevant = np.concatenate([members[name] for name in classes]).astype(np.str_)
        return Judgements(_with_every_row(lengths, relevant, np.arange(len(lengths))), n_rows=len(own))


class PairTask(Task):
    """Pairs of a query and an item: each query ranks all items."""

    takes = frozenset({"header", "weight", "filters"})

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on observed pairs."""
        if has_labels(data):
            raise ValueError(f"{data}: expected pairs, or sessions, found rows with labels: fit latent-features")
        pairs = read_interactions(data, self.options, Part.TRAIN)
        estimator.fit(pairs.queries, pairs.items, pairs.weights, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the items for every query of the data that the model knows."""
        queries = read_queries(data, self.options, Part.TEST).astype(np.str_)
        return self._ranked(model, data, queries, top, "get no list")

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the ranks of the observed items of a query among its best ``DEEPEST``; no list counts as a miss."""
        observed = self._observed(data)
        run = self._ranked(model, data, observed.qid, DEEPEST, "count as misses")
        return list(metrics.evaluate_run(measures, run, observed, missing="zero").values())

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the observed items of each query, all of which count; or the labels of rows, named from 0."""
        if has_labels(data):
            return Judgements(_labels_of_rows(data))
        return Judgements(self._observed(data), missing="zero")

    def _observed(self, data: str) -> Qrels:
        pairs = read_interactions(data, self.options, Part.TEST)
        return _relevant_pairs(pairs.queries, pairs.items)

    def _ranked(self, model: Any, data: str, queries: Strings, top: int, otherwise: str) -> Run:
        """Rank for the queries that the model knows, and warn of the others."""
        # Ids are numbers where all of a file are: only as text are they the same in every file.
        ids = self._known_queries(model)
        wanted, known = np.unique(queries), ids.astype(np.str_)
        unknown, found = np.setdiff1d(wanted, known), ids[np.isin(known, wanted)]
        if not len(found):
            raise ValueError(f"{data}: expected queries that the model knows, found none")
        if len(unknown):
            what = f"{len(unknown)} of {len(wanted)} queries, {str(unknown[0])!r} the first, are unknown to the model"
            warnings.warn(f"{data}: {what} and {otherwise}", stacklevel=2)
        filters = RankFilters.read(self.filters, model.item_ids_, found, self.options.header).of(found)
        return model.rank(found, min(top, len(model.item_ids_)), **filters).to_run()

    def _known_queries(self, model: Any) -> Ids:
        return model.query_ids_


class InteractionTask(PairTask):
    """Users and their items: each user ranks the items that it does not have."""

    def reading(self, options: DataOptions, filters: FilterOptions = NO_FILTERS) -> Self:
        """Return the task with these options; items of the history are never shown."""
        if filters.last:
            raise ValueError("--exclude-last: expected with sessions or pairs of ids; histories of users have no order")
        return super().reading(options, replace(filters, seen=True))

    def _known_queries(self, model: Any) -> Ids:
        return model.user_ids_


class FeatureTask(Task):
    """Rows with sets of labels, which are the items: each row ranks all items."""

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on rows of features and their items."""
        rows = read_labels(data, part=Part.TRAIN)
        estimator.fit(rows.X, rows.Y, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the items for every row; rows are named from 0."""
        rows = self._rows(model, data, require_labels=False)
        found = model.rank(rows.X, min(top, len(model.item_ids_)))
        return replace(found, ids=rows.label_names[found.ids]).to_run()

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure how the items of every row are ranked."""
        rows = self._rows(model, data)
        scores, relevance = model.scores(rows.X, model.item_ids_), rows.Y.toarray()
        return [measure(relevance, scores, ids=rows.label_names) for measure in measures]

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the labels of rows, named from 0."""
        return Judgements(_labels_of_rows(data))

    def _rows(self, model: Any, data: str, require_labels: bool = True) -> MultiLabel:
        n_items = len(model.item_ids_)
        return read_labels(data, model.n_features_in_, n_items, Part.TEST, require_labels=require_labels)


class SessionTask(Task):
    """Sessions: each ranks the items that may come next."""

    takes = frozenset({"header", "events", "filters"})

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on sessions."""
        estimator.fit(read_session_log(data, self.options, Part.TRAIN), **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the next items of every session; sessions without id are named by number, from 0."""
        sessions = self._sessions(model, data)
        names = _names(sessions)
        filters = RankFilters.read(self.filters, model.item_ids_, names, self.options.header).of(names)
        return model.rank(sessions, min(top, len(model.item_ids_)), **filters).to_run()

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the rank of the next item for every prefix of a session; one that is not shown is a miss."""
        sessions = self._sessions(model, data)
        prefixes, names = sessions.prefixes(), _names(sessions)
        if not len(prefixes):
            raise ValueError(f"{data}: expected a session of two items at least, to ask for the second, found none")
        cuts = [measure.name.partition("@")[2] for measure in measures]
        depth = min(max(map(int, cuts)) if all(map(str.isdigit, cuts)) else DEEPEST, len(model.item_ids_))
        fixed = [replace(measure, empty=0) for measure in measures]
        filters, totals = (
            RankFilters.read(self.filters, model.item_ids_, names, self.options.header),
            np.zeros(len(cuts)),
        )
        for first in range(0, len(prefixes), PREFIXES_AT_ONCE):
            part = prefixes[first : first + PREFIXES_AT_ONCE]
            found = model.rank(part, depth, **filters.of(names[part.sessions]))
            owners = np.repeat(np.arange(len(part)), [len(ids) for ids in found.lists()])
            hits = found.ids.reshape(-1) == part.next_items[owners]
            for number, measure in enumerate(fixed):
                totals[number] += measure.per_list(hits, found.scores.reshape(-1), owners).sum()
        return (totals / len(prefixes)).tolist()

    def judgements(self, data: str, catalogue: str | None = None) -> Judgements:
        """Return the items of each session, by its name: those that came next after the sessions of the run."""
        sessions = read_session_log(data, self.options, Part.TEST)
        names = np.repeat(_names(sessions), np.diff(sessions.offsets))
        items = sessions.items[sessions.offsets[0] : sessions.offsets[-1]]
        return Judgements(_relevant_pairs(names, items), missing="zero")

    def _sessions(self, model: Any, data: str) -> Sessions:
        sessions = read_session_log(data, self.options, Part.TEST)
        return replace(sessions, items=_as_known(data, sessions.items, model.item_ids_))


_BY_DATA: Mapping[Data, type[Task]] = {
    "examples": ExampleTask,
    "feature pairs": FeatureTask,
    "interactions": InteractionTask,
    "label sets": LabelTask,
    "lists": DocumentTask,
    "pairs": PairTask,
    "sessions": SessionTask,
}
TASKS: Mapping[str, Task] = {name: _BY_DATA[row.data](name) for name, row in ESTIMATORS.items() if row.command}
"""By the name of the estimator."""
_BY_COMMAND: Mapping[str, Task] = dict(sorted((ESTIMATORS[name].command or "", task) for name, task in TASKS.items()))


def task_named(command: str) -> Task:
    """Return the task of ``slatewise fit COMMAND``."""
    if command not in _BY_COMMAND:
        raise ValueError(f"system: expected one of {', '.join(_BY_COMMAND)}, found {command!r}")
    return _BY_COMMAND[command]


def task_for_model(model: object) -> Task:
    """Return the task of a loaded model."""
    name = type(model).__name__
    if name not in TASKS:
        raise ValueError(f"model: expected one of {', '.join(_BY_COMMAND)}, found {name}: use it from Python")
    return TASKS[name]


def fit_arguments(estimator: Any, checkpoint: Path | None) -> dict[str, Any]:
    """Return the arguments of ``fit`` that report rounds and keep a checkpoint, as far as the estimator has them."""
    known = inspect.signature(estimator.fit).parameters
    if checkpoint is not None and "checkpoint" not in known:
        raise ValueError(f"--checkpoint: expected an estimator that takes one, found {type(estimator).__name__}")
    run = {"callbacks": [tell], "checkpoint": checkpoint}
    return {name: value for name, value in run.items() if name in known}


def _names(sessions: Sessions) -> Ids:
    return np.arange(len(sessions)) if sessions.ids is None else sessions.ids


def _as_known(data: str, ids: Ids, known: Ids) -> Ids:
    """Return ids of the model's kind: a file of numbers alone has whole numbers, one with a text has texts."""
    if known.dtype.kind == "U":
        return ids.astype(np.str_)
    if ids.dtype.kind == "U":
        raise ValueError(f"{data}: expected items that are whole numbers, as the model's, found others")
    return ids


def _best(scores: NDArray[Any], top: int, names: Ids, row_ids: Ids) -> Run:
    """Return the best names of every row of scores."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return Rankings(row_ids, names[order], np.take_along_axis(scores, order, axis=1)).to_run()


def _relevant_pairs(queries: Ids, items: Ids) -> Qrels:
    both = np.stack([queries.astype(np.str_), items.astype(np.str_)], axis=1)
    names, relevant = np.unique(both, axis=0).T
    return Qrels(names, relevant, np.ones(len(relevant), dtype=np.int64))


def _labels_of_rows(data: str, options: DataOptions = DEFAULT_DATA) -> Qrels:
    rows = read_labels(data, part=Part.TEST, options=options)
    Y = csr_array(rows.Y)
    return _with_every_row(np.diff(Y.indptr), rows.label_names[Y.indices], _row_ids(rows))


def _row_ids(rows: MultiLabel) -> Ids:
    return np.arange(rows.Y.shape[0]) if rows.ids is None else rows.ids


def _with_every_row(lengths: NDArray[np.int64], relevant: Strings, names: Ids) -> Qrels:
    """Return judgments with a line for rows without anything relevant too, so that they count as for a model."""
    empty = lengths == 0
    qid = np.concatenate([np.repeat(names, lengths), names[empty]]).astype(np.str_)
    nothing = np.full(empty.sum(), "")
    relevance = np.concatenate([np.ones(len(relevant), dtype=np.int64), np.zeros(len(nothing), dtype=np.int64)])
    return Qrels(qid, np.concatenate([relevant, nothing]), relevance)


def _json_or_text(name: str, text: str) -> Any:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    parts = cast("list[Any]", value if isinstance(value, list) else [value])
    if any(isinstance(part, dict | list) for part in parts):
        raise ValueError(f"--param: expected a number, a text, true, false, null or a list of these for {name}")
    return cast("Any", value)


def _finite_scores(model: Any, X: Any, k: Any = None) -> Any:
    """Return finite scores of labels for runs and measures; certain labels are above, or below, all others."""
    return np.nan_to_num(model.decision_function(X, k=k), posinf=1e30, neginf=-1e30)


def _features(rows: RowsToRank) -> Any:
    """Return X dense if a third of its numbers are not 0, else CSR: that is faster, and takes no more memory."""
    X, n = rows.X, rows.X.shape[0] * rows.X.shape[1]
    if isinstance(X, np.ndarray):
        return X if 3 * np.count_nonzero(X) >= n else csr_array(X)
    return rows.dense() if 3 * X.nnz >= n else X


def _dense(rows: MultiLabel) -> Any:
    return rows.X.toarray() if issparse(rows.X) else rows.X
