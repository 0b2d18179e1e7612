"""The systems of the command line: what each one reads, how it is fitted, ranked with and measured."""

from __future__ import annotations

import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from slatewise import (
    BestFeatureRanker,
    CStarMarginRanker,
    CStarRanker,
    LatentFeatureRanker,
    LatentRanker,
    MarginRanker,
    MatchingRanker,
    MetricRanker,
    SessionCooccurrence,
    SessionNeighbors,
    SessionRanker,
    datasets,
    metrics,
)
from slatewise.cli.inputs import (
    EVENT_OPTIONS,
    NO_EVENTS,
    NO_TAGS,
    TAG_OPTIONS,
    UNSAID,
    EventColumns,
    PairColumns,
    Part,
    TagColumns,
    document_ids,
    first_fields,
    has_labels,
    has_query_ids,
    is_json_lines,
    is_qrels,
    is_table_of_events,
    is_table_of_text,
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
from slatewise.core.rankings import Rankings
from slatewise.core.running.progress import tell
from slatewise.data import read_qrels
from slatewise.data.records import Ids, MultiLabel, Qrels, RowsToRank, Run, Sessions, Strings
from slatewise.metrics.evaluate import Ends, evaluate_with_ends
from slatewise.metrics.measure import mean


@dataclass(frozen=True, eq=False)
class Judgements:
    """What is relevant, and whether a query without a list counts, as 0, or is left out."""

    qrels: Qrels
    missing: Literal["skip", "zero"] = "skip"
    n_rows: int | None = None
    """How many rows there are to rank, where they are named by their number, from 0."""


@dataclass(frozen=True)
class Showing:
    """What the command line says of the items to show."""

    exclude_seen: bool | Literal["last"] = False
    candidates: str | None = None
    """A file with the ids of the only items to show."""
    exclude: str | None = None
    """A file of pairs: which query is not to be shown which item."""


EVERYTHING = Showing()
SHOWING_OPTIONS = "--exclude-seen, --exclude-last, --exclude, --candidates"


@dataclass(frozen=True, eq=False)
class Switches:
    """What is to be shown, read from its files."""

    given: dict[str, Any]
    """Of all queries alike."""
    excluded: dict[str, list[Any]] | None
    """Items that a query, called so, is not to be shown."""

    @classmethod
    def read(cls, shown: Showing, item_ids: Ids, names: Ids, header: bool | None = None) -> Self:
        """Read the files; ids become those of the model's kind. ``names``: what the queries are called.

        ``header``: what the command line says of the data. Only ``--no-header`` holds for these files, too.
        """
        header = False if header is False else None
        given: dict[str, Any] = {"exclude_seen": shown.exclude_seen, "unknown": "ignore"}
        if shown.candidates is not None:
            given["candidates"] = _as_known(shown.candidates, read_item_ids(shown.candidates, header), item_ids)
        if shown.exclude is None:
            return cls(given, None)
        pairs, excluded = read_excluded(shown.exclude, header), dict[str, list[Any]]()
        items = _as_known(shown.exclude, pairs.items, item_ids).tolist()
        for name, item in zip(pairs.queries.astype(np.str_).tolist(), items, strict=True):
            excluded.setdefault(name, []).append(item)
        if excluded.keys().isdisjoint(names.astype(np.str_).tolist()):  # some of them: a file of all visitors
            what = f"none of its {len(excluded)} queries is asked, so nothing is hidden"
            warnings.warn(f"{shown.exclude}: {what}; the first: {next(iter(excluded))!r}", stacklevel=2)
        return cls(given, excluded)

    def of(self, names: Ids) -> dict[str, Any]:
        """Return the switches of ``rank`` for queries that are called so."""
        if self.excluded is None:
            return self.given
        return self.given | {"exclude": [self.excluded.get(name, []) for name in names.astype(np.str_).tolist()]}


@dataclass(frozen=True)
class Task(ABC):
    """An estimator class and the kind of data it works on."""

    estimator: type[Any]

    def make(self, params: Sequence[str]) -> Any:
        """Build the estimator with ``name=value`` parameters (JSON values, or plain text).

        ``loss__k=3`` sets a field of a parameter that is a settings object; such parameters are set after the others.
        """
        chosen = self.estimator()
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

    def reading(self, columns: PairColumns, tagged: TagColumns = NO_TAGS) -> Self:
        """Return the task that reads files of pairs, or of tagged rows, like this; most have neither."""
        if columns.weight is not None:
            raise ValueError("--weight: expected with files of pairs, for latent, only")
        if columns.header is not None:
            raise ValueError("--header: expected with files of pairs or sessions, found other data")
        if tagged != NO_TAGS:
            raise ValueError(f"{TAG_OPTIONS}: expected with rows that have labels, for cstar and cstar-margin, only")
        return self

    def of_events(self, events: EventColumns) -> Self:
        """Return the task that reads tables of events like this; most have none."""
        if events != NO_EVENTS:
            raise ValueError(f"{EVENT_OPTIONS}: expected with sessions, of fit sessions, neighbors and cooccurrence")
        return self

    def showing(self, shown: Showing) -> Self:
        """Return the task that shows such items only; most show all."""
        if shown != EVERYTHING:
            raise ValueError(f"{SHOWING_OPTIONS}: expected with sessions, or with pairs of ids, only")
        return self

    @abstractmethod
    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Read the data and fit; ``run`` are arguments of ``fit`` that are no data."""

    @abstractmethod
    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank every list of the data and keep its best."""

    @abstractmethod
    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure the model on the data."""

    @abstractmethod
    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Read what a run on the data is measured against; ``catalogue`` is what fit read, where that matters."""


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

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the grades of every query's documents."""
        _without(catalogue)
        return Judgements(read_grades(data))


@dataclass(frozen=True)
class LabelTask(Task):
    """Labels of rows: a row is a list, and the labels are its items."""

    tagged: TagColumns = NO_TAGS
    takes_unknown: bool = False
    """Whether some labels may be unknown."""

    def reading(self, columns: PairColumns, tagged: TagColumns = NO_TAGS) -> Self:
        """Return the task that reads tables of tagged rows like this."""
        super().reading(columns)
        return replace(self, tagged=tagged)

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on rows with sets of labels; of tables the model keeps the names of the features."""
        rows = read_labels(data, part=Part.TRAIN, columns=self.tagged, partly_known=self.takes_unknown)
        Y = rows.Y if rows.known is None else np.where(rows.known, rows.Y.toarray(), -1)
        if self.takes_unknown:
            run = {**run, "answered": rows.answered}
        elif rows.answered is not None and not rows.answered.all():
            raise ValueError(f"{data}: expected answers for all labels, found some volunteered: only cstar takes these")
        estimator.fit(_dense(rows), Y, label_names=rows.label_names, **run)
        if is_tag_file(data) and rows.feature_names is not None:
            estimator.feature_names_in_ = rows.feature_names.astype(object)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the labels of every row by how much the best score falls without them; rows without id are named from 0.

        Labels have the names that fit saw; of a model without names those of the data.
        """
        rows = self._rows(model, data, require_labels=False)
        names = model.label_names_ if model.label_names_.dtype.kind == "U" else rows.label_names
        scores = _finite_scores(model, _dense(rows))
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        best = np.take_along_axis(scores, order, axis=1)
        return Rankings(_row_ids(rows), names[order], best).to_run()

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

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the labels of every row; rows without id are named from 0."""
        _without(catalogue)
        return Judgements(_labels_of_rows(data, self.tagged))

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
            columns=self.tagged,
            feature_names=None if features is None else features.tolist(),
            label_names=None if names is None else names.tolist(),
        )


class ExampleTask(Task):
    """Rows that ask for rows like themselves: every row of the data ranks the rows of the training data."""

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on rows with classes."""
        rows = read_classes(data, part=Part.TRAIN)
        estimator.fit(rows.X, rows.y, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Return the nearest training rows of every row; both are named by number, from 0."""
        X = read_classes(data, model.n_features_in_, Part.TEST, require_labels=False).X
        scores = model.scores(X)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return Rankings(np.arange(len(order)), order, np.take_along_axis(scores, order, axis=1)).to_run()

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure where the training rows of a row's own class stand."""
        if not hasattr(model, "classes_"):
            raise ValueError("model: expected one fitted on rows with classes, found one of labels or of lists")
        rows = read_classes(data, model.n_features_in_, Part.TEST)
        relevance = rows.y[:, None] == model.classes_[model.catalogue_labels_]
        scores = model.scores(rows.X)
        ids = np.arange(len(model.catalogue_labels_)).astype(np.str_)
        return [measure(relevance.astype(np.float64), scores, ids=ids) for measure in measures]

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the rows of a row's own class: those of ``catalogue``, or of the data where nothing else is said."""
        asking = read_classes(data, part=Part.TEST).y.astype(np.str_)
        own = read_classes(catalogue or data, part=Part.TRAIN).y.astype(np.str_)
        members = {name: np.flatnonzero(own == name) for name in np.unique(asking)}
        lengths = np.array([len(members[name]) for name in asking])
        if lengths.sum() > MOST_JUDGEMENTS:
            found = f"{lengths.sum()} pairs of one class"
            raise ValueError(f"{data}: expected at most {MOST_JUDGEMENTS} for a run, found {found}: evaluate the model")
        relevant = np.concatenate([members[name] for name in asking]).astype(np.str_)
        return Judgements(_with_every_row(lengths, relevant), n_rows=len(own))


@dataclass(frozen=True)
class CatalogueTask(Task):
    """Pairs of a query and an item: each query ranks all items."""

    columns: PairColumns = UNSAID
    shown: Showing = EVERYTHING

    def reading(self, columns: PairColumns, tagged: TagColumns = NO_TAGS) -> Self:
        """Return the task that reads files of pairs like this."""
        super().reading(UNSAID, tagged)
        return replace(self, columns=columns)

    def showing(self, shown: Showing) -> Self:
        """Return the task that shows such items only."""
        return replace(self, shown=shown)

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on observed pairs."""
        if has_labels(data):
            raise ValueError(f"{data}: expected pairs, or sessions, found rows with labels: fit latent-features")
        pairs = read_interactions(data, self.columns, Part.TRAIN)
        estimator.fit(pairs.queries, pairs.items, pairs.weights, **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank the items for every query of the data that the model knows."""
        queries = read_queries(data, self.columns, Part.TEST).astype(np.str_)
        return self._ranked(model, data, queries, top, "get no list")

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure where the items observed with a query stand, among its best ``DEEPEST``; without a list they miss."""
        observed = self._observed(data)
        run = self._ranked(model, data, observed.qid, DEEPEST, "count as misses")
        return list(metrics.evaluate_run(measures, run, observed, missing="zero").values())

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the items observed with each query, all of which count; or the labels of rows, named from 0."""
        if has_labels(data):
            return FeatureTask(self.estimator).judgements(data, catalogue)
        _without(catalogue)
        return Judgements(self._observed(data), missing="zero")

    def _observed(self, data: str) -> Qrels:
        pairs = read_interactions(data, self.columns, Part.TEST)
        both = np.stack([pairs.queries.astype(np.str_), pairs.items.astype(np.str_)], axis=1)
        queries, items = np.unique(both, axis=0).T
        return Qrels(queries, items, np.ones(len(items), dtype=np.int64))

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
        switches = Switches.read(self.shown, model.item_ids_, queries, self.columns.header).of(queries)
        return model.rank(queries, min(top, len(model.item_ids_)), **switches).to_run()


@dataclass(frozen=True)
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

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the labels of rows, named from 0."""
        _without(catalogue)
        return Judgements(_labels_of_rows(data))

    def _rows(self, model: Any, data: str, require_labels: bool = True) -> MultiLabel:
        n_items = len(model.item_ids_)
        return read_labels(data, model.n_features_in_, n_items, Part.TEST, require_labels=require_labels)


@dataclass(frozen=True)
class SessionTask(Task):
    """Sessions: each asks for the item that comes next."""

    events: EventColumns = NO_EVENTS
    shown: Showing = EVERYTHING
    header: bool | None = None

    def reading(self, columns: PairColumns, tagged: TagColumns = NO_TAGS) -> Self:
        """Return the task that takes the first line of a file of sessions for names, or for a session."""
        super().reading(replace(columns, header=None), tagged)
        return replace(self, header=columns.header)

    def of_events(self, events: EventColumns) -> Self:
        """Return the task that reads tables of events like this."""
        return replace(self, events=events)

    def showing(self, shown: Showing) -> Self:
        """Return the task that shows such items only."""
        return replace(self, shown=shown)

    def fit(self, estimator: Any, data: str, **run: Any) -> None:
        """Fit on sessions."""
        estimator.fit(read_session_log(data, self.events, Part.TRAIN, self.header), **run)

    def run(self, model: Any, data: str, top: int) -> Run:
        """Rank what comes after every session; sessions without id are named by number, from 0."""
        sessions = self._sessions(model, data)
        names = _names(sessions)
        switches = Switches.read(self.shown, model.item_ids_, names, self.header).of(names)
        return model.rank(sessions, min(top, len(model.item_ids_)), **switches).to_run()

    def evaluate(self, model: Any, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
        """Measure where the next item stands after every beginning of a session; one that is not shown is a miss."""
        sessions = self._sessions(model, data)
        prefixes, names = sessions.prefixes(), _names(sessions)
        if not len(prefixes):
            raise ValueError(f"{data}: expected a session of two items at least, to ask for the second, found none")
        cuts = [measure.name.partition("@")[2] for measure in measures]
        depth = min(max(map(int, cuts)) if all(map(str.isdigit, cuts)) else DEEPEST, len(model.item_ids_))
        fixed = [replace(measure, empty=0) for measure in measures]
        switches, totals = Switches.read(self.shown, model.item_ids_, names, self.header), np.zeros(len(measures))
        for first in range(0, len(prefixes), PREFIXES_AT_ONCE):
            part = prefixes[first : first + PREFIXES_AT_ONCE]
            found = model.rank(part, depth, **switches.of(names[part.sessions]))
            owners = np.repeat(np.arange(len(part)), [len(ids) for ids in found.lists()])
            hits = found.ids.reshape(-1) == part.next_items[owners]
            for place, measure in enumerate(fixed):
                totals[place] += measure.per_list(hits, found.scores.reshape(-1), owners).sum()
        return (totals / len(prefixes)).tolist()

    def judgements(self, data: str, catalogue: str | None) -> Judgements:
        """Return the items of each session, by its name: what those that were ranked for went on to take."""
        _without(catalogue)
        sessions = read_session_log(data, self.events, Part.TEST, self.header)
        lengths = np.diff(sessions.offsets)
        names = _names(sessions)
        items = sessions.items[sessions.offsets[0] : sessions.offsets[-1]]
        both = np.stack([np.repeat(names, lengths).astype(np.str_), items.astype(np.str_)], axis=1)
        queries, taken = np.unique(both, axis=0).T
        return Judgements(Qrels(queries, taken, np.ones(len(taken), dtype=np.int64)), missing="zero")

    def _sessions(self, model: Any, data: str) -> Sessions:
        sessions = read_session_log(data, self.events, Part.TEST, self.header)
        return replace(sessions, items=_as_known(data, sessions.items, model.item_ids_))


def _names(sessions: Sessions) -> Ids:
    return np.arange(len(sessions)) if sessions.ids is None else sessions.ids


def _as_known(data: str, ids: Ids, known: Ids) -> Ids:
    """Return ids of the model's kind: a file of numbers alone has whole numbers, one with a text has texts."""
    if known.dtype.kind == "U":
        return ids.astype(np.str_)
    if ids.dtype.kind == "U":
        raise ValueError(f"{data}: expected items that are whole numbers, as the model's, found others")
    return ids


PREFIXES_AT_ONCE = 4096
DEEPEST = 1000
"""Places of a catalogue's ranking that are looked at."""
MOST_JUDGEMENTS = 20_000_000
"""Pairs of one class that are written out to measure a run: some GB."""
TASKS: dict[str, Task] = {
    "cooccurrence": SessionTask(SessionCooccurrence),
    "cstar": LabelTask(CStarRanker, takes_unknown=True),
    "cstar-margin": LabelTask(CStarMarginRanker),
    "feature": DocumentTask(BestFeatureRanker),
    "latent": CatalogueTask(LatentRanker),
    "latent-features": FeatureTask(LatentFeatureRanker),
    "margin": DocumentTask(MarginRanker),
    "matching": DocumentTask(MatchingRanker),
    "metric": ExampleTask(MetricRanker),
    "neighbors": SessionTask(SessionNeighbors),
    "sessions": SessionTask(SessionRanker),
}


def task_named(system: str) -> Task:
    """Return the task a command names."""
    if system not in TASKS:
        raise ValueError(f"system: expected one of {', '.join(TASKS)}, found {system!r}")
    return TASKS[system]


def run_of(estimator: Any, checkpoint: Path | None) -> dict[str, Any]:
    """Return the arguments of ``fit`` that report rounds and keep a checkpoint; not every estimator has rounds."""
    known = inspect.signature(estimator.fit).parameters
    if checkpoint is not None and "checkpoint" not in known:
        raise ValueError(f"--checkpoint: expected an estimator that takes one, found {type(estimator).__name__}")
    run = {"callbacks": [tell], "checkpoint": checkpoint}
    return {name: value for name, value in run.items() if name in known}


def task_of(model: object) -> Task:
    """Return the task of a loaded model."""
    for task in TASKS.values():
        if task.estimator is type(model):
            return task
    raise ValueError(f"model: expected one of {', '.join(TASKS)}, found {type(model).__name__}: use it from Python")


def judgements_for(
    run: Run,
    data: str,
    system: str | None = None,
    columns: PairColumns = UNSAID,
    catalogue: str | None = None,
    tagged: TagColumns = NO_TAGS,
    events: EventColumns = NO_EVENTS,
) -> Judgements:
    """Read what a run is measured against: TREC qrels, or whatever fit reads.

    ``system`` says what made the run. Without it the file does: rows with ``qid:`` are documents, other rows of
    features have labels (classes, where the run's documents are none of the labels), as do JSON lines and whatever
    ``tagged`` speaks of, CSV and TSV are pairs (events, where the header says so and the run's queries are no users;
    classes, where they are the numbers of the lines), other lines are sessions.
    """
    if system is None and tagged != NO_TAGS:
        system = "cstar"
    if system is None and events != NO_EVENTS:
        system = "sessions"
    if system is None and columns == UNSAID and is_qrels(data):
        _without(catalogue)
        return Judgements(read_qrels(data))
    if system is None and Path(data).exists() and not Path(data).is_file():
        raise ValueError(f"{data}: expected a plain file, because judgements are looked at twice, found something else")
    task = task_named(_system_of(run, data) if system is None else system)
    judged = task.reading(columns, tagged).of_events(events).judgements(data, catalogue)
    if judged.n_rows is not None:
        known = {str(row) for row in range(judged.n_rows)}
        strange = next((name for name in run.doc_ids.tolist() if name not in known), None)
        if strange is not None:
            expected = f"a run of the {judged.n_rows} rows of {catalogue or data}, by number from 0"
            raise ValueError(f"--catalogue: expected {expected}, found {strange!r}: is it the file that fit read?")
    return judged


def measure_run(run: Run, name: str, judged: Judgements, data: str, measures: Sequence[metrics.Measure]) -> list[float]:
    """Measure a run, called ``name``, against the judgements of ``data``; say where its lists end too early for it."""
    found, ends = evaluate_with_ends(measures, run, judged.qrels, judged.missing)
    if _are_named_alike(run, name, judged.qrels, data):
        _warn_of_ends(name, ends)
    return [mean(values) for values in found.values.values()]


def _are_named_alike(run: Run, name: str, qrels: Qrels, data: str) -> bool:
    """Say it where nothing that a run ranks is judged: then its ids are most likely of another kind."""
    ranked = set(run.doc_ids.tolist())
    if not ranked or ranked & set(qrels.doc_ids.tolist()):
        return True
    what = f"none of the {len(ranked)} documents of the run, {run.doc_ids.tolist()[0]!r} the first, is judged"
    warnings.warn(f"{name}: {what} in {data}: are they named alike?", stacklevel=3)
    return False


def _warn_of_ends(name: str, ends: Ends) -> None:
    """Tell of lists that are cut before a measure has seen all it looks for, and of queries without a list.

    What cuts lists leaves as many documents in each; a list that is shorter than others has ended by itself.
    """
    n_lists, longest = len(ends.lengths), int(ends.lengths.max(initial=0))
    found = {measure: where & (ends.lengths == longest) for measure, where in ends.too_early.items()}
    cut = np.any(list(found.values()), axis=0)
    if longest and cut.any():
        names = ", ".join(measure for measure, where in found.items() if where.any())
        what = f"{cut.sum()} of {n_lists} lists end after {longest} documents, too early for {names}"
        lost = f"{ends.n_missing[cut].sum()} relevant documents behind the ends count as not found"
        warnings.warn(f"{name}: {what}: {lost}; rank with a larger --top if there are more", stacklevel=3)
    n_empty = int(np.sum(ends.lengths == 0))
    if n_empty:
        warnings.warn(f"{name}: {n_empty} of {n_lists} queries have no list and count as 0", stacklevel=3)


def _system_of(run: Run, data: str) -> str:
    if not Path(data).exists() and data in datasets.names():
        kind = datasets.describe(data).kind
        if kind not in _SYSTEMS:
            raise ValueError(f"{data}: expected a data set of {', '.join(_SYSTEMS)}, found one of {kind}")
        return _SYSTEMS[kind]
    if is_table_of_text(data):
        first = first_fields(data, "\t" if ".tsv" in data else ",")
        asked, rows = set(run.qid.tolist()), [str(row) for row in range(len(first))]
        if is_table_of_events(data, asked):
            return "sessions"
        is_by_row = asked == set(rows) or asked == set(rows[:-1])  # the first line may name the columns
        return "metric" if is_by_row and not asked <= set(first) else "latent"
    if data.endswith((".npz", ".arff")) or is_json_lines(data):
        return "cstar"
    if has_query_ids(data):
        return "margin"
    if not has_labels(data):
        return "latent"
    labels = first_fields(data)
    is_set = any("," in label or ":" in label for label in labels)
    return "cstar" if is_set or set(run.doc_ids.tolist()) <= set(labels) else "metric"


_SYSTEMS = {"multi-label": "cstar", "ranking": "margin", "labelled": "metric", "sessions": "latent"}


def _labels_of_rows(data: str, tagged: TagColumns = NO_TAGS) -> Qrels:
    rows = read_labels(data, part=Part.TEST, columns=tagged)
    Y = csr_array(rows.Y)
    return _with_every_row(np.diff(Y.indptr), rows.label_names[Y.indices], _row_ids(rows))


def _row_ids(rows: MultiLabel) -> NDArray[Any]:
    return np.arange(rows.Y.shape[0]) if rows.ids is None else rows.ids


def _with_every_row(lengths: NDArray[np.int64], relevant: Strings, ids: NDArray[Any] | None = None) -> Qrels:
    """Name rows from 0; one without anything relevant is judged too, so that it counts as it does for a model."""
    names = np.arange(len(lengths)) if ids is None else ids
    empty = lengths == 0
    qid = np.concatenate([np.repeat(names, lengths), names[empty]]).astype(np.str_)
    nothing = np.full(empty.sum(), "")
    relevance = np.concatenate([np.ones(len(relevant), dtype=np.int64), np.zeros(len(nothing), dtype=np.int64)])
    return Qrels(qid, np.concatenate([relevant, nothing]), relevance)


def _without(catalogue: str | None) -> None:
    if catalogue is not None:
        raise ValueError("--catalogue: expected with rows that have classes, for metric, only")


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
    """Score labels; one that must be in, or out, is above, or below, all others: runs and measures want numbers."""
    return np.nan_to_num(model.decision_function(X, k=k), posinf=1e30, neginf=-1e30)


def _features(rows: RowsToRank) -> Any:
    """Return X dense where few of its numbers are 0, else CSR: that is the quicker, and takes no more memory."""
    X, n = rows.X, rows.X.shape[0] * rows.X.shape[1]
    if isinstance(X, np.ndarray):
        return X if 3 * np.count_nonzero(X) >= n else csr_array(X)
    return rows.dense() if 3 * X.nnz >= n else X


def _dense(rows: MultiLabel) -> Any:
    return rows.X.toarray() if issparse(rows.X) else rows.X
