"""What is to be labeled: the files of a folder, the rows of a table (CSV or JSON lines), or tasks of Label Studio.

In a folder, pictures and sounds are items by their path, texts (.txt) by their content, in the order of their names
(``2.png`` before ``10.png``). A table has one of the columns ``image``, ``audio``, ``text``, ``link`` and ``file`` in
every row, and may have ``id``; paths are relative to the folder of the table. Links and texts are shown, never followed
or run.

Tasks of Label Studio also contain labels and predictions. A label that the last prediction of a task chose is as likely
as its score, one that it did not choose is unlikely, and in a task without a prediction every label is as likely as it
was chosen in the others. Nothing is taken to be certain: a prediction is where questions begin, not an answer.
"""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import DataError, DataWarning, printable
from slatewise.core.rules import short_repr
from slatewise.core.running.progress import track
from slatewise.data.reading import open_source
from slatewise.labeling.exchange.json_lines import as_object, parsed
from slatewise.labeling.exchange.label_studio import read_tasks
from slatewise.labeling.setup.item_matrices import ItemMatrix
from slatewise.labeling.store.records import Item, Kind

_IMAGES = frozenset({".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"})
_SOUNDS = frozenset({".flac", ".m4a", ".mp3", ".ogg", ".opus", ".wav"})
_TEXTS = frozenset({".txt"})
_COLUMNS = ("image", "audio", "text", "link", "file")
_STARTS = {
    ".png": (b"\x89PNG\r\n\x1a\n",), ".gif": (b"GIF87a", b"GIF89a"), ".bmp": (b"BM",), ".webp": (b"RIFF",),
    ".jpg": (b"\xff\xd8\xff",), ".jpeg": (b"\xff\xd8\xff",),
}  # fmt: skip
_MOST_TEXT = 1_000_000
_MOST_NAMED = 3
_UNSAYABLE = re.compile(r"[\\:\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class FoundItems:
    """Items in their order."""

    items: tuple[Item, ...]
    rows: tuple[int, ...]
    """Which of those found each is: others cannot be read."""
    n_found: int
    """With those that cannot be read."""


class _Found(NamedTuple):
    item: Item
    problem: str | None
    """Why it cannot be read."""


def read_items(path: str | os.PathLike[str]) -> FoundItems:
    r"""Find the items of a folder, or of a table; those that cannot be read are left out with a warning.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("id,text\nr1,Waves on a beach.\nr2,A street at night.\n")
    ...     [item.id for item in read_items(table).items]
    ['r1', 'r2']
    """
    source = Path(path)
    if source.is_dir():
        found = list(track(_of_folder(source), "item"))
    elif source.is_file():
        found = list(track(_of_table(source), "item"))
    else:
        raise ValueError(f"--items: expected a folder, or a table .csv or .jsonl, found no {source}")
    _require_once(source, found)
    good = [place for place, one in enumerate(found) if one.problem is None]
    bad = [f"{one.item.id} ({one.problem})" for one in found if one.problem is not None]
    if not good:
        what = _some(bad) if bad else "none: pictures, sounds or .txt in a folder, or rows in a table, are items"
        raise ValueError(f"{source}: expected at least one item that can be read, found {what}")
    if bad:
        left_out = f"{len(bad)} of {len(found)} items cannot be read and are left out"
        warnings.warn(f"{source}: {left_out}: {_some(bad)}", DataWarning, stacklevel=2)
    return FoundItems(tuple(found[place].item for place in good), tuple(good), len(found))


# --- folders ---------------------------------------------------------------------------------------------------------


def _of_folder(folder: Path) -> Iterator[_Found]:
    others: Counter[str] = Counter()
    for path in sorted(_files(folder), key=_natural):
        kind = _kind(path)
        if kind is None:
            others[Path(path).suffix.lower() or "none"] += 1
        elif kind == "text":
            yield _text_file(folder, path)
        else:
            yield _Found(Item(path, kind, path, folder), _problem(folder, path))
    if others:
        endings = ", ".join(ending for ending, _ in others.most_common(_MOST_NAMED))
        what = f"{others.total()} files that are no pictures, sounds or .txt are left out (ending: {endings})"
        warnings.warn(f"{folder}: {what}", DataWarning, stacklevel=2)


def _files(folder: Path) -> Iterator[str]:
    """Yield paths below a folder, with slashes; hidden ones are none of ours."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(place).relative_to(folder)
        yield from ((inside / name).as_posix() for name in names if not name.startswith("."))


def _natural(path: str) -> list[tuple[int, int | str]]:
    """Order numbers in names as numbers."""
    parts = re.split(r"([0-9]+)", path)
    return [(0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts]


def _kind(path: str) -> Kind | None:
    ending = Path(path).suffix.lower()
    return "image" if ending in _IMAGES else "audio" if ending in _SOUNDS else "text" if ending in _TEXTS else None


def _text_file(folder: Path, path: str) -> _Found:
    problem = _problem(folder, path)
    text = ""
    if problem is None:
        try:
            text = (folder / path).read_text(encoding="utf-8-sig").strip()
            problem = _text_problem(text)
        except UnicodeDecodeError:
            problem = "no UTF-8"
    return _Found(Item(path, "text", text), problem)


def _text_problem(text: str) -> str | None:
    if not text.strip():
        return "empty"
    return None if len(text) <= _MOST_TEXT else f"longer than {_MOST_TEXT} characters"


def _problem(folder: Path, path: str) -> str | None:
    """Say why a file cannot be shown; None if it looks as its ending says. Browsers may still find fault."""
    if _UNSAYABLE.search(path):
        return "a name with characters that addresses have not"
    home, real = os.path.realpath(folder), os.path.realpath(folder / path)
    if os.path.commonpath([home, real]) != home:
        return "outside the folder"
    try:
        with open(real, "rb") as file:
            start = file.read(16)
    except OSError as error:
        return error.strerror or "not to be opened"
    ending = Path(path).suffix.lower()
    if not start:
        return "empty"
    if not start.startswith(_STARTS.get(ending, (b"",))):
        return f"no {ending[1:].upper()}"
    return None


# --- tables ----------------------------------------------------------------------------------------------------------


def _of_table(table: Path) -> Iterator[_Found]:
    with open_source(table) as source:
        text = "".join(f"{line}\n" for _, line in source.text_lines())
    rows = _json_rows(str(table), text) if text.lstrip().startswith("{") else _csv_rows(str(table), text)
    folder = table.resolve().parent
    for number, (line, row) in enumerate(rows, 1):
        yield _of_row(str(table), line, row, number, folder)


def _json_rows(name: str, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for line, one in enumerate(text.split("\n"), 1):
        if not one.strip():
            continue
        fields = as_object(parsed(name, line, one))
        if fields is None:
            raise DataError(name, line, 1, "an object per line", one[:40])
        for key in {"id", *_COLUMNS} & set(fields):
            value = fields[key]
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise DataError(name, line, 1, f"{key} as text", repr(value))
        yield line, {key: str(value) for key, value in fields.items()}


def _csv_rows(name: str, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    first = text.split("\n", 1)[0]
    delimiter = next((one for one in ("\t", ",", ";") if one in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for fields in reader:
            line, started = reader.line_num + 1, line
            if not fields:
                continue
            if header is None:
                header = _checked_header(name, started, [field.strip() for field in fields])
            elif len(fields) != len(header):
                expected = f"{len(header)} fields as in the first line (quotes around a text that has {delimiter!r})"
                raise DataError(name, started, 1, expected, str(len(fields)))
            else:
                yield started, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise DataError(name, line, 1, "a table with quotes that are closed", str(error)) from None


def _checked_header(name: str, line: int, header: list[str]) -> list[str]:
    if len(set(header)) < len(header):
        raise DataError(name, line, 1, "every column once", ", ".join(header))
    if not set(_COLUMNS) & set(header):
        raise DataError(name, line, 1, f"a column called {_or(_COLUMNS)}", ", ".join(header))
    return header


def _of_row(name: str, line: int, row: Mapping[str, str], number: int, folder: Path) -> _Found:
    filled = [column for column in _COLUMNS if row.get(column, "").strip()]
    if len(filled) != 1:
        raise DataError(name, line, 1, f"one of {_or(_COLUMNS)}", " and ".join(filled) or "none")
    (column,) = filled
    content = row[column].strip()
    item_id = row.get("id", "").strip()
    if column == "link":
        problem = None if content.startswith(("http://", "https://")) else "no address that starts with http"
        return _Found(Item(item_id or str(number), "link", content), problem)
    if column == "text":
        return _Found(Item(item_id or str(number), "text", content), _text_problem(content))
    kind = _kind(content) if column == "file" else "image" if column == "image" else "audio"
    if kind is None:
        endings = _or(sorted(ending for ending in _IMAGES | _SOUNDS | _TEXTS))
        raise DataError(name, line, 1, f"a file that ends with {endings}", content)
    if Path(content).is_absolute() or ".." in Path(content).parts:
        expected = f"a path that starts where the table is, {folder}, and stays below it"
        raise DataError(name, line, 1, expected, content)
    path = Path(content).as_posix()
    if kind == "text":
        found = _text_file(folder, path)
        return _Found(Item(item_id or path, "text", found.item.content), found.problem)
    return _Found(Item(item_id or path, kind, path, folder), _problem(folder, path))


def _require_once(source: Path, found: Iterable[_Found]) -> None:
    seen: set[str] = set()
    for one in found:
        if one.item.id in seen:
            raise ValueError(f"{source}: expected every item once, found the id {printable(one.item.id)!r} again")
        seen.add(one.item.id)


def _or(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return printable(", ".join(names[:_MOST_NAMED]) + more)


_NOT_LIKELY = 0.05


@dataclass(frozen=True, eq=False)
class FoundTasks:
    """What a project begins with."""

    items: FoundItems
    labels: list[str]
    scores: ItemMatrix | None
    """Probabilities of the labels; None if nothing was predicted."""


def is_task_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file of items is one of tasks, by its ending."""
    endings = [ending.lower() for ending in Path(path).suffixes if ending not in (".gz", ".xz")]
    return Path(path).is_file() and endings[-1:] == [".json"]


def read_task_items(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> FoundTasks:
    r"""Read tasks; pictures and sounds lie beside the file.

    Parameters
    ----------
    path
        The file, as Label Studio exports it as JSON.
    labels
        The labels of the project. Default: those that annotations and predictions mention, in alphabetical order.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> chosen = '{"score": 0.8, "result": [{"type": "choices", "value": {"choices": ["sea"]}}]}'
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "tasks.json")
    ...     _ = file.write_text(f'[{{"id": 7, "data": {{"text": "Waves."}}, "predictions": [{chosen}]}}]')
    ...     tasks = read_task_items(file, ["sea", "sky"])
    >>> tasks.items.items[0].id, tasks.scores.X.tolist()
    ('7', [[0.8, 0.05]])
    """
    source = Path(path)
    tasks = read_tasks(source, source.resolve().parent)
    if not tasks.items:
        raise ValueError(f"{source}: expected at least one task, found none")
    names = tasks.labels if labels is None else list(labels)
    if len(names) < 2:
        expected = "at least 2 labels in annotations and predictions, or --labels"
        raise ValueError(f"{source}: expected {expected}, found {len(names)}")
    strange = [name for name in tasks.labels if name not in names]
    if strange:
        what = f"{len(strange)} labels that are not among --labels, such as {short_repr(strange[0])}"
        warnings.warn(f"{source}: predictions of {what}, are left out", DataWarning, stacklevel=2)
    places = {name: place for place, name in enumerate(tasks.labels)}
    nothing = np.full(len(tasks.items), np.nan)
    columns = [tasks.scores[:, places[name]] if name in places else nothing for name in names]
    found = FoundItems(tuple(tasks.items), tuple(range(len(tasks.items))), len(tasks.items))
    return FoundTasks(found, names, _probabilities(source, np.column_stack(columns), names))


def _probabilities(source: Path, chosen: NDArray[np.float64], names: list[str]) -> ItemMatrix | None:
    """Return how likely all labels are, by the scores of those that were chosen."""
    is_chosen = ~np.isnan(chosen)
    if not is_chosen.any():
        return None
    wrong = chosen[is_chosen & ~((chosen >= 0.0) & (chosen <= 1.0))]
    if len(wrong):
        raise ValueError(f"{source}: expected scores of predictions from 0 to 1, found {wrong[0]:g}: give --scores")
    predicted = is_chosen.any(axis=1)
    chances = np.where(is_chosen, chosen, _NOT_LIKELY)
    chances[~predicted] = is_chosen[predicted].mean(axis=0)
    return ItemMatrix(chances.clip(_NOT_LIKELY, 1.0 - _NOT_LIKELY), None, names)
