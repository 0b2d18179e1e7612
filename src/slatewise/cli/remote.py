"""``slatewise rank --url``: a service ranks the queries of a file; the run equals that of the model file."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slatewise._registry import ESTIMATORS, Data
from slatewise.cli.inputs import (
    Part,
    document_ids,
    is_tag_file,
    read_classes,
    read_labels,
    read_queries,
    read_rows_to_rank,
)
from slatewise.cli.options import DEFAULT_DATA, DataOptions, FilterOptions
from slatewise.cli.tasks import TASKS, RankFilters, Task
from slatewise.client import Client, ServiceError
from slatewise.core.groups import group_rows
from slatewise.core.rankings import Rankings
from slatewise.data.records import MultiLabel, Run

TOKEN = "SLATEWISE_TOKEN"
"""The environment variable with the token, because all users of a machine can see its command lines."""
_AT_ONCE, _MOST_BYTES = 128, 2 << 20
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class RemoteTask:
    """The task of a kind of data, with its options, and a function that ranks such data with a service."""

    own: Task
    rank: Callable[[Remote, Task, str, int], Run]

    def reading(self, options: DataOptions, filters: FilterOptions) -> RemoteTask:
        """Return the task with these options; refuse those that its kind of data does not have."""
        return replace(self, own=self.own.reading(options, filters))

    def run(self, remote: Remote, data: str, top: int) -> Run:
        """Rank every query of a file."""
        try:
            return self.rank(remote, self.own, data, top)
        finally:
            remote.close()


class Remote:
    """A model at a service."""

    def __init__(self, url: str, name: str) -> None:
        self._client, self._name = Client(url, os.environ.get(TOKEN)), name
        self.about = self._checked(lambda: self._client.model(name))
        if not self.about["ready"]:
            self.close()
            found = self.about["refused"] or "one that is not yet"
            raise ValueError(f"{name} at the service: expected a model that is loaded, found {found}")

    @property
    def task(self) -> RemoteTask:
        """The task that reads data for the model and ranks them with the service."""
        estimator = str(self.about["estimator"])
        if estimator not in TASKS:
            raise ValueError(f"{self._name}: expected one of {', '.join(TASKS)}, found {estimator}: use the client")
        return RemoteTask(TASKS[estimator], _BY_DATA[ESTIMATORS[estimator].data])

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def answers(self, question: str, queries: Sequence[Any], **fields: Any) -> Iterator[dict[str, Any]]:
        """Send the queries in parts, so that no request is too large."""
        for part in _parts(queries):
            yield from self._checked(lambda part=part: self._client.ask(self._name, question, part, **fields).answers)

    def _checked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except ServiceError as error:
            self.close()
            raise ValueError(f"{self._name} at the service: {error}") from None


def _parts(queries: Sequence[Any]) -> Iterator[list[Any]]:
    """Split queries into parts of a size that a service takes; the service refuses a query that is larger."""
    part: list[Any] = []
    size = 0
    for query in queries:
        own = len(json.dumps(query))
        if part and (len(part) == _AT_ONCE or size + own > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(query)
        size += own
    if part:
        yield part


def _documents(remote: Remote, task: Task, data: str, top: int) -> Run:
    rows = read_rows_to_rank(data, remote.about["n_features"], Part.TEST, require_labels=False)
    groups, X, names = group_rows(rows.qid, len(rows.qid)), rows.dense(), document_ids(rows)
    order = np.arange(len(X)) if groups.order is None else groups.order
    lists = [order[groups.offsets[n] : groups.offsets[n + 1]] for n in range(len(groups.ids))]
    queries = [{"rows": X[own].tolist(), "ids": names[own].tolist()} for own in lists]
    return _run(groups.ids, list(remote.answers("rank", queries, k=top)))


def _labels(remote: Remote, task: Task, data: str, top: int) -> Run:
    rows = _label_rows(remote, data, task.options)
    found = list(remote.answers("scores", _dense(rows)))
    has_names = isinstance(remote.about["labels"][0], str)
    for one in found:
        one["ids"] = one["ids"] if has_names else rows.label_names.tolist()
        # Infinite scores are null in JSON; without known labels, they are those of labels that are certainly in.
        scores = np.array([np.nan if score is None else score for score in one["scores"]])
        order = np.argsort(-np.nan_to_num(scores, nan=1e30), kind="stable")[:top]
        one["ids"], one["scores"] = [one["ids"][n] for n in order], np.nan_to_num(scores[order], nan=1e30).tolist()
    return _run(np.arange(len(found)) if rows.ids is None else rows.ids, found)


def _examples(remote: Remote, task: Task, data: str, top: int) -> Run:
    X = read_classes(data, remote.about["n_features"], Part.TEST, require_labels=False).X
    n_rows = int(remote.about["n_items"])
    return _run(np.arange(len(X)), list(remote.answers("rank", X.tolist(), k=min(top, n_rows))))


def _features(remote: Remote, task: Task, data: str, top: int) -> Run:
    rows = _label_rows(remote, data, DEFAULT_DATA)
    found = list(remote.answers("rank", _dense(rows), k=min(top, int(remote.about["n_items"]))))
    for one in found:
        one["ids"] = rows.label_names[one["ids"]].tolist()
    return _run(np.arange(len(found)), found)


def _pairs(remote: Remote, task: Task, data: str, top: int) -> Run:
    k = min(top, int(remote.about["n_items"]))
    names = np.unique(read_queries(data, task.options, Part.TEST).astype(np.str_))
    whole = remote.about["ids"] == "whole numbers"
    queries: list[Any] = [int(one) for one in names if _WHOLE.fullmatch(one)] if whole else names.tolist()
    kind = np.int64 if whole else np.str_
    filters = RankFilters.read(task.filters, np.empty(0, kind), np.empty(0), task.options.header)
    found = list(remote.answers("rank", queries, k=k, **_fields(filters.given)))
    known = [one for one in found if not one["unknown"]]
    if not known:
        raise ValueError(f"{data}: expected queries that the model knows, found none")
    n_unknown = len(names) - len(known)
    if n_unknown:
        what = f"{n_unknown} of {len(names)} queries are unknown to the model and get no list"
        warnings.warn(f"{data}: {what}", stacklevel=2)
    known.sort(key=lambda one: one["query"])
    return _run(np.array([one["query"] for one in known]), known)


class _SessionRanker:
    """A model of a service with the part of the interface that the task of sessions uses."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        kind = np.int64 if remote.about["ids"] == "whole numbers" else np.str_
        self.item_ids_ = np.zeros(int(remote.about["n_items"]), dtype=kind)  # the task uses their number and type only

    def rank(self, sessions: Any, k: int, **filters: Any) -> Rankings:
        """Rank the next items of every session."""
        fields = _fields(filters) | {"k": k}
        queries = [items.tolist() for items in sessions]
        names = np.arange(len(queries)) if sessions.ids is None else sessions.ids
        found = list(self._remote.answers("rank", queries, **fields))
        n_unknown = sum(one["unknown"] for one in found)
        if n_unknown:
            what = f"queries: {n_unknown} of {sum(map(len, queries))} ids were not seen in fit"
            warnings.warn(f"{what} and are left out of their sessions", stacklevel=2)
        nothing = np.array([one["nothing_known"] for one in found], dtype=np.bool_)
        if nothing.any():
            what = f"queries: {int(nothing.sum())} of {len(queries)} have no item that fit saw"
            first = names[int(np.argmax(nothing))].item()
            warnings.warn(f"{what} and get the list of everybody; the first: query {first!r}", stacklevel=2)
        return _rankings(names, found, nothing if nothing.any() else None)


def _fields(filters: dict[str, Any]) -> dict[str, Any]:
    """Return filters as fields of a request."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in filters.items()}


def _sessions(remote: Remote, task: Task, data: str, top: int) -> Run:
    return task.run(_SessionRanker(remote), data, top)


def _label_rows(remote: Remote, data: str, options: DataOptions) -> MultiLabel:
    about = remote.about
    return read_labels(
        data,
        about["n_features"],
        about["n_items"],
        Part.TEST,
        require_labels=False,
        options=options,
        feature_names=about["feature_names"] if is_tag_file(data) else None,
    )


def _dense(rows: MultiLabel) -> list[Any]:
    X: Any = rows.X
    return (X if isinstance(X, np.ndarray) else X.toarray()).tolist()


def _run(query_ids: Any, found: list[dict[str, Any]]) -> Run:
    return _rankings(query_ids, found).to_run()


def _rankings(query_ids: Any, found: list[dict[str, Any]], nothing_known: Any = None) -> Rankings:
    offsets = np.concatenate(([0], np.cumsum([len(one["ids"]) for one in found]))).astype(np.int64)
    ids = np.array([name for one in found for name in one["ids"]])
    scores = np.array([score for one in found for score in one["scores"]], dtype=np.float64)
    return Rankings.of_lists(query_ids, ids, scores, offsets, nothing_known)


_BY_DATA: Mapping[Data, Callable[[Remote, Task, str, int], Run]] = {
    "examples": _examples,
    "feature pairs": _features,
    "label sets": _labels,
    "lists": _documents,
    "pairs": _pairs,
    "sessions": _sessions,
}
