"""Answers as tasks of Label Studio: a JSON list, in the format it exports and imports.

https://labelstud.io/guide/task_format. Labels are the choices of one ``<Choices choice="multiple">``. Answers
go out as one annotation per person and item, with the yes as choices. All answers, with how they came about, go into
the ``meta`` of the result, which Label Studio keeps, with the order of the answers of several reviewers: the last is
right. Coming back, ``meta`` counts while it agrees with the choices. An annotation without it, or changed
there, was made later and with all labels in view: what is not ticked is a no.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import unquote
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.errors import DataError, DataWarning
from slatewise.core.files import atomic_file
from slatewise.core.rules import short_repr
from slatewise.data.reading import PathOrFile, open_source
from slatewise.labeling.exchange.json_lines import as_list, as_object, as_objects, as_texts, parsed, read_object
from slatewise.labeling.exchange.statements import Names, Statement, as_fields, project_statements, time_of
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Item

_TAGS = {"image": "Image", "text": "Text", "audio": "Audio", "link": "Text"}
_CONTROL, _OBJECT, _OURS, _ORDER = "labels", "item", "slatewise", "slatewise_order"
_LAST = math.inf
_MOST_PARTS = 20
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
"""What Label Studio puts before the name of a file that is uploaded."""
_ENDINGS = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp"), "image"),
    **dict.fromkeys((".mp3", ".wav", ".ogg", ".flac", ".m4a"), "audio"),
}


def label_studio_config(project: Project) -> str:
    """Return the labeling interface to give to a project of Label Studio before its tasks are imported.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with Project.create(Path(folder, "tags.db"), ["sea"], [Item("a", "text", "Waves.")]) as project:
    ...         print(label_studio_config(project))
    <View>
      <Text name="item" value="$text"/>
      <Choices name="labels" toName="item" choice="multiple">
        <Choice value="sea"/>
      </Choices>
    </View>
    """
    kind = _kind(project.items.all())
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in project.labels.names())
    return (
        f'<View>\n  <{_TAGS[kind]} name="{_OBJECT}" value="${kind}"/>\n'
        f'  <Choices name="{_CONTROL}" toName="{_OBJECT}" choice="multiple">\n{choices}\n  </Choices>\n</View>'
    )


def write_label_studio(
    project: Project,
    path: str | PathLike[str],
    *,
    probabilities: ArrayLike | None = None,
    model_version: str = "slatewise",
    prefix: str = "",
) -> None:
    """Write tasks with annotations and, where ``probabilities`` (items, labels) are given, predictions.

    ``prefix`` goes before the paths of files, as ``/data/local-files/?d=`` where Label Studio serves their folder.
    """
    items, labels = project.items.all(), project.labels.names()
    kind = _kind(items)
    chances = None if probabilities is None else _checked(probabilities, (len(items), len(labels)))
    by_item: list[dict[str, list[tuple[int, Statement]]]] = [{} for _ in items]
    for place, one in enumerate(project_statements(project)):
        by_item[one.item].setdefault(one.annotator, []).append((place, one))
    tasks: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        content = prefix + item.content if item.folder is not None else item.content
        task: dict[str, Any] = {"data": {kind: content, "item": item.id}}
        task["annotations"] = _annotations(list(by_item[number].values()), labels)
        if chances is not None:
            task["predictions"] = [_prediction(chances[number], labels, model_version)]
        tasks.append(task)
    with atomic_file(path) as file:
        file.write(json.dumps(tasks, ensure_ascii=False, indent=1).encode() + b"\n")


def read_label_studio(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read the annotations of tasks; predictions are read by :func:`read_tasks`."""
    statements: list[Statement] = []
    others = 0
    for task in _tasks(path):
        found = task.list("annotations")
        item = task.item(names) if found else -1
        ordered: list[tuple[float, Statement]] = []
        for place, annotation in enumerate(found):
            own, strange = _read_annotation(task, annotation, f"annotations[{place}]", item, names, annotator)
            ordered += own
            others += strange
        statements += [one for _, one in sorted(ordered, key=lambda pair: pair[0])]
    if others:
        warnings.warn(f"left out {others} results of annotations that are no choices", DataWarning, stacklevel=3)
    return statements


@dataclass(frozen=True, eq=False)
class Tasks:
    """What tasks of Label Studio are about, to make a project of."""

    items: list[Item]
    labels: list[str]
    """All choices that annotations and predictions mention, in alphabetical order."""
    scores: NDArray[np.float64]
    """(items, labels) of the last prediction: its score where it chose the label, NaN elsewhere."""


def read_tasks(path: PathOrFile, folder: str | PathLike[str] | None = None) -> Tasks:
    """Read tasks with predictions: items, the labels that are mentioned, and scores.

    An item is a text, an ``http`` address, or the file below ``folder`` that the path in the task ends with.
    Its id is ``data.item``, else the task's. Label Studio exports predictions only with a snapshot that asks for them.
    """
    items: list[Item] = []
    chosen: list[dict[str, float]] = []
    mentioned: set[str] = set()
    for task in _tasks(path):
        items.append(task.new_item(None if folder is None else Path(folder)))
        scores: dict[str, float] = {}
        for place, prediction in enumerate(task.list("predictions")):
            score = prediction.get("score")
            if score is not None and (not isinstance(score, int | float) or isinstance(score, bool)):
                raise task.fault(f"predictions[{place}].score: a number", score)
            labels, _ = task.choices(prediction, f"predictions[{place}]")
            scores = dict.fromkeys(labels, 1.0 if score is None else float(score))
            mentioned.update(labels)
        for place, annotation in enumerate(task.list("annotations")):
            mentioned.update(task.choices(annotation, f"annotations[{place}]")[0])
        chosen.append(scores)
    labels = sorted(mentioned)
    matrix = np.array([[scores.get(name, np.nan) for name in labels] for scores in chosen], dtype=np.float64)
    return Tasks(items, labels, matrix.reshape(len(items), len(labels)))


def _kind(items: Sequence[Item]) -> str:
    kinds = sorted({item.kind for item in items})
    if len(kinds) != 1:
        raise ValueError(f"items: expected one kind, which an interface of Label Studio shows, found {kinds}")
    return kinds[0]


def _checked(probabilities: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    chances = np.asarray(probabilities, dtype=np.float64)
    if chances.shape != shape or not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError(f"probabilities: expected numbers from 0 to 1 of shape {shape}, found shape {chances.shape}")
    return chances


def _annotations(people: Sequence[Sequence[tuple[int, Statement]]], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return one annotation per person; with the order in time, where what is right depends on it."""
    annotations = [_annotation([one for _, one in own], labels) for own in people]
    if sum(any(one.how == "reviewed" for _, one in own) for own in people) > 1:
        for annotation, own in zip(annotations, people, strict=True):
            annotation["result"][0]["meta"][_ORDER] = [place for place, _ in own]
    return annotations


def _annotation(answers: Sequence[Statement], labels: Sequence[str]) -> dict[str, Any]:
    result = _result([labels[one.label] for one in answers if one.label is not None and one.value == 1])
    result["meta"] = {_OURS: [as_fields(one, labels) for one in answers]}
    lengths = {(one.time, one.milliseconds) for one in answers if one.milliseconds is not None}
    return {
        "result": [result],
        "was_cancelled": answers[-1].kind == "skip",
        "ground_truth": False,
        "lead_time": sum(length or 0 for _, length in lengths) / 1000,
    }


def _prediction(chances: NDArray[np.float64], labels: Sequence[str], model_version: str) -> dict[str, Any]:
    sure = float(np.maximum(chances, 1 - chances).mean()) if len(chances) else 0.0
    chosen = [name for name, chance in zip(labels, chances.tolist(), strict=True) if chance >= 0.5]
    return {"model_version": model_version, "score": sure, "result": [_result(chosen)]}


def _result(choices: list[str]) -> dict[str, Any]:
    return {"from_name": _CONTROL, "to_name": _OBJECT, "type": "choices", "value": {"choices": choices}}


def _read_annotation(
    task: _Task, annotation: dict[str, Any], place: str, item: int, names: Names, annotator: str
) -> tuple[list[tuple[float, Statement]], int]:
    """Return what an annotation says, each with its place in time, and how many of its results say something else."""
    choices, others = task.choices(annotation, place)
    ticked: set[int] = set()
    for name in choices:
        if name not in names.labels:
            raise task.fault(f"{place}: choices that are labels of the project", name)
        ticked.add(names.labels[name])
    ours = [
        read_object(answer, item, names, annotator, f"{place}.meta[{number}]", task.fault)
        for number, answer in enumerate(task.ours(annotation, place))
    ]
    if ours and ticked == {one.label for one in ours if one.label is not None and one.value == 1}:
        return list(zip(task.order(annotation, place, len(ours)), ours, strict=True)), others
    who = annotation.get("completed_by")
    person = (as_object(who) or {}).get("email", who)
    name = annotator if person is None else check_name("annotator", f"label-studio {person}")
    time = time_of(annotation.get("updated_at")) or time_of(annotation.get("created_at"))
    seconds = annotation.get("lead_time")
    if seconds is not None and not (isinstance(seconds, int | float) and 0 <= seconds < 1e9):
        raise task.fault(f"{place}.lead_time: seconds", seconds)
    length = None if seconds is None else round(seconds * 1000)
    if annotation.get("was_cancelled"):
        return [(_LAST, Statement("skip", item, name, time, length))], others
    # All labels were in view: a tick confirms, a label without one is closed by being done.
    answers = [
        Statement(
            "answer", item, name, time, length, None, label, int(is_ticked), "confirmed" if is_ticked else "closed"
        )
        for label, is_ticked in ((label, label in ticked) for label in sorted(set(names.labels.values())))
    ]
    answers.append(Statement("done", item, name, time, length))
    return [(_LAST, one) for one in answers], others


class _Task:
    """A task as it stands in the file."""

    def __init__(self, file: str, number: int, task: Any) -> None:
        self._file, self._number = file, number
        own = as_object(task) or {}
        data = as_object(own.get("data"))
        if data is None:
            raise self.fault("an object with data, as of an export as JSON (not JSON-MIN)", task)
        self._task, self._data = own, data

    def fault(self, expected: str, found: object) -> DataError:
        return DataError(f"{self._file}[{self._number}]", 0, 0, expected, short_repr(found))

    def list(self, key: str) -> list[dict[str, Any]]:
        """Return a list of objects, empty if there is none; a plain export has predictions as their numbers only."""
        found = as_list(self._task.get(key) or [])
        objects = None if found is None else as_objects([one for one in found if not isinstance(one, int)])
        if objects is None:
            raise self.fault(f"{key}: a list of objects", self._task[key])
        return objects

    def choices(self, holder: dict[str, Any], place: str) -> tuple[list[str], int]:
        """Return the choices of all results, and how many results are something else."""
        chosen: dict[str, None] = {}
        others = 0
        for number, result in enumerate(self._results(holder, place)):
            if result.get("type") != "choices":
                others += 1
                continue
            value = as_object(result.get("value")) or {}
            choices = as_texts(value.get("choices"))
            if choices is None:
                raise self.fault(f"{place}.result[{number}].value.choices: a list of texts", value.get("choices"))
            chosen.update(dict.fromkeys(choices))
        return list(chosen), others

    def ours(self, annotation: dict[str, Any], place: str) -> list[dict[str, Any]]:
        """Return what an export of a project left in the meta of the results."""
        metas = [as_object(result.get("meta")) or {} for result in self._results(annotation, place)]
        return [one for meta in metas for one in as_objects(meta.get(_OURS)) or []]

    def order(self, annotation: dict[str, Any], place: str, n_answers: int) -> list[float]:
        """Return the place in time of each of :meth:`ours`; where the file has none, behind those that have one."""
        metas = [as_object(result.get("meta")) or {} for result in self._results(annotation, place)]
        places = [number for meta in metas for number in as_list(meta.get(_ORDER)) or []]
        known = len(places) == n_answers and all(isinstance(number, int) for number in places)
        return places if known else [_LAST] * n_answers

    def item(self, names: Names) -> int:
        """Return the item that the task is about: by its id, by what its file is called, or by what it says."""
        for text in self._texts():
            for name in (text, *_tails(text)):
                if name in names.items:
                    return names.items[name]
            if text in names.contents:
                return names.contents[text]
        raise self.fault(
            "data with the id of an item of the project, a path that ends with one, or its text", self._data
        )

    def new_item(self, folder: Path | None) -> Item:
        """Return an item that a project can have."""
        item_id = str(self._data.get("item", self._task.get("id", self._number)))
        for text in self._texts():
            if text == self._data.get("item"):
                continue
            tails = _tails(text)
            kind = _ENDINGS.get(PurePosixPath(tails[-1]).suffix.lower()) if tails else None
            files = [tail for tail in tails if folder is not None and os.path.isfile(folder / tail)]
            if kind is not None and files:
                return Item(item_id, cast("Any", kind), files[0], folder)
            if text.startswith(("http://", "https://")):
                return Item(item_id, "link", text)
            if kind is None:
                return Item(item_id, "text", text)
        raise self.fault("data with a text, an address, or a path to a file of the folder", self._data)

    def _texts(self) -> list[str]:
        own = [self._data["item"]] if isinstance(self._data.get("item"), str) else []
        return own + [value for key, value in self._data.items() if key != "item" and isinstance(value, str)]

    def _results(self, holder: dict[str, Any], place: str) -> list[dict[str, Any]]:
        found = as_objects(holder.get("result") or [])
        if found is None:
            raise self.fault(f"{place}.result: a list of objects", holder["result"])
        return found


def _tails(path: str) -> list[str]:
    """Return what a path or an address ends with, the longest first; last the name of a file before its upload.

    Examples
    --------
    >>> _tails("/data/local-files/?d=beach/a%20b.jpg"), _tails("/data/upload/1/0f1e2d3c-c.png")[-2:]
    (['beach/a b.jpg', 'a b.jpg'], ['0f1e2d3c-c.png', 'c.png'])
    """
    parts = [part for part in unquote(path.partition("?d=")[2] or path.partition("?")[0]).split("/") if part]
    if ".." in parts:
        parts = parts[-1:]
    tails = ["/".join(parts[start:]) for start in range(max(len(parts) - _MOST_PARTS, 0), len(parts))]
    before = _UPLOADED.sub("", parts[-1]) if parts else ""
    return [*tails, before] if before and before != parts[-1] else tails


def _tasks(path: PathOrFile) -> Iterator[_Task]:
    with open_source(path) as source:
        text = "\n".join(line for _, line in source.text_lines())
        tasks = as_list(parsed(source.name, 1, text))
        if tasks is None:
            raise DataError(source.name, 1, 1, "a list of tasks", short_repr(text))
        for number, task in enumerate(tasks):
            yield _Task(source.name, number, task)
