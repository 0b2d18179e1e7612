"""The data that the command line reads: files by their content or ending, and data sets by name.

A named data set with a split of its own, or with folds (the first is taken), has a part for fit and one for rank and
evaluate. Files are read whole. Data to rank need no labels: ``require_labels=False`` reads files with and without them.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.cli.console import as_options
from slatewise.cli.options import DEFAULT_DATA, EVENT_OPTIONS, TAG_OPTIONS, DataOptions
from slatewise.core.arrays import Floats, Ints
from slatewise.core.errors import DataError
from slatewise.data.arff import labels_in_relation
from slatewise.data.fields import Splitter, name_columns
from slatewise.data.reading import Line, open_source
from slatewise.data.records import Ids, MultiLabel, Pairs, Qrels, RowsToRank, Run, Sessions, Strings
from slatewise.datasets.records import LabelledSet, MultiLabelSet, RankingSet, SessionSet
from slatewise.datasets.splits import Split

_TABLE_ENDINGS = (".parquet", ".arrow", ".feather")
_JSON_ENDINGS = {".jsonl", ".ndjson"}
_SVMLIGHT_LINE = re.compile(rb"\S*([ \t]+\d+:\S+)+\s*")
_WITHOUT_LABEL = re.compile(rb"[ \t]*(qid|\d+):")
_SHOWN = 40
_NO_TEXT = bytes({*range(9), *range(14, 27), *range(28, 32)})
"""Bytes that no text has: control characters except blanks, line ends and the escape of old encodings."""


class Part(Enum):
    """Which rows of a named data set, where its source tells them apart."""

    TRAIN = auto()
    TEST = auto()


def read_rows_to_rank(
    name: str, n_features: int | None = None, part: Part | None = None, *, require_labels: bool = True
) -> RowsToRank:
    """Read graded rows: an SVMlight or LETOR file, a Parquet or Arrow file, or a named data set.

    ``n_features`` is how many a model knows: a sparse file need not mention the last of them. ``part`` is taken from
    the first fold of a named set. Without labels, SVMlight rows start with ``qid:``, and a table has no column
    "label"; all grades are then 0.
    """
    path = Path(name)
    if path.suffix in _TABLE_ENDINGS:
        rows = data.read_parquet(path, label="label", qid="qid", doc_id=None, require_label=require_labels)
    elif path.exists():
        rows = _read_svmlight(path, n_features, require_qid=True, require_labels=require_labels)
    else:
        loaded = datasets.load(_known(name), RankingSet)
        chosen = _chosen(name, part, len(loaded.y), loaded.folds[0] if loaded.folds else None)
        doc_ids = None if loaded.doc_ids is None else loaded.doc_ids[chosen]
        rows = RowsToRank(loaded.X[chosen], loaded.y[chosen], loaded.qid[chosen], doc_ids)
    _require_rows(name, len(rows.y))
    return rows


def read_labels(
    name: str,
    n_features: int | None = None,
    n_labels: int | None = None,
    part: Part | None = None,
    *,
    require_labels: bool = True,
    partly_known: bool = False,
    options: DataOptions = DEFAULT_DATA,
    feature_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
) -> MultiLabel:
    """Read rows with sets of labels: npz, ARFF, multi-label SVMlight, tables and JSON lines, or a named data set.

    ``n_features`` and ``n_labels`` are how many a model knows: a sparse file need not mention the last of them.
    Without labels, an npz archive has no Y, ARFF has no XML beside it, and SVMlight rows start with a feature; labels
    without names are named by their number, from 0. The labels of ARFF are in the XML beside it, or in MEKA's ``-C``,
    those of tables in ``options``. Columns are found by the names that a model knows. An npz archive may have unknown
    labels, which is an error unless ``partly_known``.
    """
    path = Path(name)
    if options.tagged and not is_tag_file(name):
        raise ValueError(f"{TAG_OPTIONS}: expected with CSV, TSV, JSON lines, Parquet or Arrow, found {name}")
    if is_tag_file(name):
        rows = _read_tag_file(name, options, feature_names, label_names, require_labels)
    elif path.suffix == ".npz":
        rows = data.read_npz(path, require_labels=require_labels)
    elif path.suffix == ".arff":
        rows = _read_arff(path, n_features, require_labels)
    elif path.exists():
        _require_text(path)
        rows = data.read_multilabel_svmlight(path, n_features=n_features, n_labels=n_labels)
    else:
        loaded = datasets.load(_known(name), MultiLabelSet)
        chosen = _chosen(name, part, int(loaded.Y.shape[0]), _split(loaded.is_train))
        is_train = None if loaded.is_train is None else loaded.is_train[chosen]
        rows = MultiLabel(loaded.X[chosen], loaded.Y[chosen], loaded.label_names, loaded.feature_names, is_train)
    _require_rows(name, rows.Y.shape[0])
    if require_labels and not partly_known and rows.known is not None and not rows.known.all():
        unknown = rows.known.size - int(rows.known.sum())
        raise ValueError(
            f"{name}: expected labels that are all known, found {unknown} that are not: only cstar learns from these"
        )
    if n_labels is not None and not require_labels and rows.Y.shape[1] == 0:
        names = np.arange(n_labels).astype(np.str_)
        rows = replace(rows, Y=csr_array((rows.Y.shape[0], n_labels), dtype=np.int8), label_names=names)
    if n_labels is not None and rows.Y.shape[1] != n_labels:
        raise ValueError(f"{name}: expected the {n_labels} labels of the model, found {rows.Y.shape[1]}")
    return rows


def is_tag_file(name: str) -> bool:
    """Tell tables and JSON lines by the ending, compressed or not."""
    return is_table_of_text(name) or is_json_lines(name) or Path(name).suffix in _TABLE_ENDINGS


def is_json_lines(name: str) -> bool:
    """Tell JSON lines by the ending, compressed or not."""
    return bool(_JSON_ENDINGS & set(Path(name).suffixes[-2:]))


def _read_tag_file(
    name: str,
    options: DataOptions,
    feature_names: Sequence[str] | None,
    label_names: Sequence[str] | None,
    require_labels: bool,
) -> MultiLabel:
    if Path(name).suffix not in _TABLE_ENDINGS:
        _require_text(Path(name))
    if require_labels and not is_json_lines(name) and options.labels is None and options.tags is None:
        raise ValueError(
            f"--labels, --tags: expected one of them, which says where {name} has its labels, found neither"
        )
    if options.tags is not None and options.separator is None and is_table_of_text(name):
        raise ValueError(f"--separator: expected what stands between two tags in {options.tags!r}, found none")
    features = feature_names if options.features is None else _several(options.features)
    rows = data.read_tags(
        name,
        labels=None if options.labels is None else _several(options.labels),
        tags=options.tags,
        separator=options.separator,
        id=options.id,
        features=features,
        label_names=label_names,
        require_labels=require_labels,
    )
    if require_labels:
        return rows
    # Rows that are only ranked may have tags that the model does not know.
    return replace(
        rows, Y=csr_array((len(rows.Y.indptr) - 1, 0), dtype=np.int8), label_names=np.empty(0, dtype=np.str_)
    )


def _several(text: str) -> str | list[str]:
    """Return a prefix, or names where there are commas."""
    return [name.strip() for name in text.split(",") if name.strip()] if "," in text else text


def _read_arff(path: Path, n_features: int | None, require_labels: bool) -> MultiLabel:
    _require_text(path)
    labels = path.with_suffix(".xml")
    if labels.exists():
        return data.read_arff(path, labels=labels)
    if labels_in_relation(path):
        return data.read_arff(path)
    missing = f"{path}: expected the file {labels.name} beside it, which names the attributes that are labels"
    if require_labels:
        raise ValueError(f"{missing}, found none")
    rows = data.read_arff(path, labels=None)
    if n_features is not None and rows.X.shape[1] != n_features:
        raise ValueError(f"{missing}, or the model's {n_features} features and no labels, found {rows.X.shape[1]}")
    return rows


@dataclass(frozen=True, eq=False)
class Classes:
    """Rows with one class each."""

    X: Floats
    y: Ids


def has_labels(name: str) -> bool:
    """Tell rows with sets of labels from pairs and sessions: npz, ARFF, multi-label SVMlight, or a named data set."""
    path = Path(name)
    if path.suffix in (".npz", ".arff") or is_json_lines(name):
        return True
    if is_table_of_text(name):
        return False  # pairs, whose ids may look like features
    if not path.is_file():
        return name in datasets.names() and datasets.describe(name).kind == "multi-label"
    with open_source(path) as source:
        return any(_SVMLIGHT_LINE.fullmatch(line) for _, line in islice(source.lines(), 1))


def read_classes(
    name: str, n_features: int | None = None, part: Part | None = None, *, require_labels: bool = True
) -> Classes:
    """Read rows with classes: CSV whose last column is the class, SVMlight, or a named data set.

    A first line of CSV without a single number names the columns. ``n_features`` is how many a model knows: a sparse
    file need not mention the last of them. Without classes, CSV has these columns and no more, and SVMlight rows start
    with a feature; every class is then the empty text.
    """
    path = Path(name)
    if ".csv" in path.suffixes[-2:]:
        return _csv_classes(name, None if require_labels else n_features)
    if path.exists():
        rows = _read_svmlight(path, n_features, require_qid=False, require_labels=require_labels)
        _require_rows(name, len(rows.y))
        return Classes(rows.dense(), rows.y)
    loaded = datasets.load(_known(name), LabelledSet)
    chosen = _chosen(name, part, len(loaded.y), _split(loaded.is_train))
    return Classes(loaded.X[chosen], loaded.class_names[loaded.y[chosen]])


def read_interactions(name: str, options: DataOptions = DEFAULT_DATA, part: Part | None = None) -> Pairs:
    """Read (query, item) pairs: CSV or TSV, the first two columns; a file of sessions or a named set of them.

    In sessions, every item is a query for the next one.
    """
    path = Path(name)
    _require_text(path)
    if is_table_of_text(name):
        pairs = _read_pairs(name, options, part)
    elif options.weight is not None:
        raise ValueError(f"--weight: expected a file of pairs, .csv or .tsv, found {name}")
    elif path.exists():
        pairs = _read_sessions(name, options.header).pairs()
    else:
        _require_file(name, options.header)
        loaded = datasets.load(_known(name), SessionSet)
        pairs = (loaded.test if part is Part.TEST else loaded.train).pairs()
    _require_rows(name, len(pairs.items))
    return pairs


def read_queries(name: str, options: DataOptions = DEFAULT_DATA, part: Part | None = None) -> Ids:
    """Read queries: the first column of CSV or TSV, which may be the only one; the items of sessions.

    In sessions, every item except the last is a query, and so is a single item.
    """
    path = Path(name)
    if is_table_of_text(name):
        alone = len(_first_fields(name)) == 1
        return _read_pairs(name, options, part, (0, 0) if alone else (0, 1)).queries
    if path.exists() and options.weight is None:
        _require_text(path)
        sessions = _read_sessions(name, options.header)
        _require_rows(name, len(sessions.items))
        alone = sessions.items[sessions.offsets[:-1][np.diff(sessions.offsets) == 1]]
        return np.concatenate([sessions.pairs().queries, alone])
    return read_interactions(name, options, part).queries


_EVENT_COLUMNS = ("session", "item", "time", "user")


def read_session_log(name: str, options: DataOptions = DEFAULT_DATA, part: Part | None = None) -> Sessions:
    """Read sessions: CSV or TSV of events, a file with one session per line, or a named set of them."""
    path = Path(name)
    _require_text(path)
    if is_table_of_text(name):
        if options.header is False:
            raise ValueError(f"--no-header: expected a file of one session per line, found a table, {name}")
        gap: dict[str, Any] = {} if options.gap is None else {"gap": options.gap}
        sessions = data.read_events(name, **_event_columns(options.columns), **gap)
    elif options.events:
        raise ValueError(f"{EVENT_OPTIONS}: expected with a table of events, .csv or .tsv, found {name}")
    elif path.exists():
        sessions = _read_sessions(name, options.header)
    else:
        _require_file(name, options.header)
        loaded = datasets.load(_known(name), SessionSet)
        sessions = loaded.test if part is Part.TEST else loaded.train
    _require_rows(name, len(sessions.items))
    return sessions


def is_table_of_events(name: str, queries: set[str]) -> bool:
    """Tell a log of events from pairs by its header: columns item and session, or item, user and time.

    Users with times are pairs if the ``queries`` of a run are users, not sessions.
    """
    names = set(_first_fields(name))
    if {"item", "session"} <= names:
        return True
    if not {"item", "user", "time"} <= names:
        return False
    users = data.read_pairs(name, columns=("user", "item"), header=True).queries
    return not queries <= set(users.astype(np.str_).tolist())


def _event_columns(text: str | None) -> dict[str, str]:
    pairs = [] if text is None else [part.partition("=") for part in text.split(",")]
    for own, equals, column in pairs:
        if not equals or not column.strip() or own.strip() not in _EVENT_COLUMNS:
            known = ", ".join(_EVENT_COLUMNS)
            raise ValueError(f"--columns: expected name=column with names from {known}, and commas, found {text!r}")
    return {own.strip(): column.strip() for own, _, column in pairs}


def read_item_ids(name: str, header: bool | None = None) -> Ids:
    """Read ids of items, one per line."""
    _require_text(Path(name))
    items = _read_sessions(name, header).items
    _require_rows(name, len(items))
    return items


def read_excluded(name: str, header: bool | None = None) -> Pairs:
    """Read pairs of a query and an item not to show: CSV or TSV, the first two columns.

    A first line of text above numbers is data: ids of queries may be of any kind. Well-known names are a header.
    """
    if not is_table_of_text(name):
        raise ValueError(f"--exclude: expected a file of pairs, .csv or .tsv, found {name}")
    is_header = header is None and name_columns(_first_fields(name)[:2])
    return read_interactions(name, DataOptions(header=None if is_header else False))


def _read_sessions(name: str, header: bool | None) -> Sessions:
    with _in_words_of_options():
        return data.read_sessions(name, header=header)


@contextmanager
def _in_words_of_options() -> Generator[None]:
    """Name options instead of arguments in errors of readers; ``main`` does the same in warnings."""
    try:
        yield
    except DataError as error:
        raise DataError(error.name, error.line, error.column, as_options(error.expected), error.found) from None


def _require_file(name: str, header: bool | None) -> None:
    if header is not None:
        raise ValueError(f"--header: expected a file of pairs or sessions, found {name}")


def is_table_of_text(name: str) -> bool:
    """Tell CSV and TSV by the ending, compressed or not."""
    return bool({".csv", ".tsv"} & set(Path(name).suffixes[-2:]))


def _read_pairs(name: str, options: DataOptions, part: Part | None, places: tuple[int, int] = (0, 1)) -> Pairs:
    weight, header = options.weight, options.header
    column = int(weight) if weight is not None and weight.isascii() and weight.isdigit() else weight
    if isinstance(column, str):
        if header is False:
            raise ValueError(f"--weight: expected a column's number, from 0, with --no-header, found {weight!r}")
        header = True
    with _in_words_of_options():
        pairs = data.read_pairs(name, columns=places, weight=column, header=header)
    if pairs.weights is not None and not ((pairs.weights >= 0).all() and pairs.weights.any()):
        raise ValueError(f"--weight: expected numbers >= 0, and one > 0, in {name}, found {pairs.weights.min()}")
    if header is None and places[0] != places[1]:
        _warn_of_names(name, pairs)
    if weight is None and part is Part.TRAIN:
        _warn_of_more_columns(name)
    return pairs


def _warn_of_names(name: str, pairs: Pairs) -> None:
    """Warn of texts in the first line that occur in no other; above numbers they were an error already."""
    first = [str(ids[0]) for ids in (pairs.queries[:1], pairs.items[:1]) if len(ids)]
    if first != _first_fields(name)[:2]:
        return  # the header was recognized, or there is nothing
    others = np.concatenate([ids[1:].astype(np.str_) for ids in (pairs.queries, pairs.items)])
    texts = all(ids.dtype.kind == "U" for ids in (pairs.queries, pairs.items))
    if texts and len(others) and not np.isin(first, others).any():
        what = f"{first[0]!r} and {first[1]!r}"
        warnings.warn(f"{name}:1: {what} occur in no other line; --header if they name the columns", stacklevel=2)


def _warn_of_more_columns(name: str) -> None:
    width = len(_first_fields(name))
    if width > 2:
        warnings.warn(
            f"{name}: two of {width} columns are read; --weight 2, or a name, if one of them weighs the pairs",
            stacklevel=2,
        )


def _first_fields(name: str) -> list[str]:
    """Return the fields of the first line of a table of text."""
    _require_text(Path(name))
    with open_source(name) as source:
        number, text = next(((number, text) for number, text in source.text_lines() if text.strip()), (1, ""))
    line = Line(name, number, text)
    return Splitter.of(None, line).split(line)


def _csv_classes(name: str, n_features: int | None = None) -> Classes:
    """Read rows of numbers and a class; where the first line has ``n_features`` fields there are no classes."""
    _require_text(Path(name))
    rows: list[list[float]] = []
    classes: list[str] = []
    width = 0
    with open_source(name) as source:
        for number, line in source.text_lines():
            fields = [field.strip() for field in line.split(",")]
            label = "" if len(fields) == n_features else fields.pop()
            if not line.strip() or (not rows and not width and not any(map(_is_number, fields))):
                width = len(fields)
                continue
            wrong = [place for place, field in enumerate(fields) if not _is_number(field)]
            if wrong:
                column = sum(len(field) + 1 for field in line.split(",")[: wrong[0]]) + 1
                raise DataError(name, number, column, "a finite number", repr(fields[wrong[0]][:_SHOWN]))
            width = width or len(fields)
            has_label = bool(label) or (n_features is not None and len(line.split(",")) == n_features)
            if len(fields) != width or not width or not has_label:
                raise DataError(name, number, 1, f"{max(width, 1)} numbers and a class", repr(line[:_SHOWN]))
            rows.append([float(field) for field in fields])
            classes.append(label)
    _require_rows(name, len(rows))
    if len(set(map(bool, classes))) > 1:
        raise ValueError(f"{name}: expected a class in every row, or in none, found both")
    return Classes(np.array(rows), np.array(classes))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def read_run(name: str) -> Run:
    """Read what ``slatewise rank`` writes: a TREC run; with another ending, CSV or Parquet."""
    endings = Path(name.lower()).suffixes
    if ".parquet" not in endings[-1:]:
        _require_text(Path(name))
    if ".parquet" in endings[-1:]:
        rows = data.read_parquet(name, label="score", qid="qid", doc_id="doc_id", features=[])
        return Run(rows.qid.astype(np.str_), document_ids(rows), rows.y)
    if ".csv" in endings[-2:]:
        pairs = data.read_pairs(name, columns=("qid", "doc_id"), weight="score", delimiter=",", header=True)
        return Run(pairs.queries.astype(np.str_), pairs.items.astype(np.str_), np.asarray(pairs.weights))
    return data.read_run(name)


def is_qrels(name: str) -> bool:
    """Tell TREC judgments by their first line: four words, the last of them a whole number."""
    path = Path(name)
    if not path.is_file() or path.suffix in (*_TABLE_ENDINGS, ".npz", ".arff") or is_tag_file(name):
        return False
    fields = _first_line(path).split()
    return len(fields) == 4 and b":" not in fields[1] and re.fullmatch(rb"[+-]?\d+", fields[3]) is not None


def read_grades(name: str) -> Qrels:
    """Read the documents of every query, named by their ids, as judgments."""
    rows = read_rows_to_rank(name, part=Part.TEST)
    wrong = (rows.y != np.floor(rows.y)) | (np.abs(rows.y) > 2.0**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: expected whole numbers as relevance, found {rows.y[row]} in row {row}")
    return Qrels(rows.qid.astype(str), document_ids(rows), rows.y.astype(np.int64))


def document_ids(rows: RowsToRank) -> Strings:
    """Return the documents' ids; those without are named by their row, from 0."""
    numbers = np.arange(len(rows.y)).astype(np.str_)
    return numbers if rows.doc_ids is None else np.where(rows.doc_ids == "", numbers, rows.doc_ids)


def _chosen(name: str, part: Part | None, n_rows: int, split: Split | None) -> Ints:
    """Return the rows of a part of a named data set: all of them where it has no parts."""
    if split is None and part is Part.TEST:
        warnings.warn(f"{name}: has no test part of its own, so these are the rows that fit reads too", stacklevel=2)
    if split is None or part is None:
        return np.arange(n_rows)
    return split.train if part is Part.TRAIN else split.test


def _split(is_train: NDArray[np.bool_] | None) -> Split | None:
    if is_train is None:
        return None
    return Split(np.flatnonzero(is_train), np.empty(0, dtype=np.int64), np.flatnonzero(~is_train))


def _known(name: str) -> str:
    if name not in datasets.names():
        raise ValueError(f"{name}: expected a file or one of the names that `slatewise datasets` lists, found neither")
    return name


def _require_rows(name: str, n_rows: int) -> None:
    if n_rows == 0:
        raise DataError(name, 1, 1, "at least one row", "none")


def has_query_ids(name: str) -> bool:
    """Tell documents of queries, by ``qid:`` in the first row, from other rows of SVMlight."""
    path = Path(name)
    return path.suffix in _TABLE_ENDINGS or (path.is_file() and b"qid:" in _first_line(path))


def first_fields(name: str, delimiter: str | None = None) -> list[str]:
    """Return the first field of every line of a text file, without comments."""
    with open_source(name) as source:
        lines = (line for _, line in source.text_lines())
        return [line.split(delimiter, 1)[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def _first_line(path: Path) -> bytes:
    """Return the first line that is neither empty nor a comment."""
    if not path.is_file():
        raise ValueError(f"{path}: expected a plain file, because it is looked at twice, found something else")
    _require_text(path)
    with open_source(path) as source:
        for _, line in source.lines():
            if line.strip() and not line.lstrip().startswith(b"#"):
                return line
    raise DataError(str(path), 1, 1, "at least one row", "none")


def _require_text(path: Path) -> None:
    """Refuse binary files before any of their content is shown; a pipe can be read only once and is not checked."""
    if not path.is_file():
        return
    with open_source(path) as source:
        start = next(source.chunks(1 << 13), b"")
    if start.translate(None, _NO_TEXT) != start:
        raise DataError(str(path), 0, 0, "a text file", "binary data")


class _NamedBytes(io.BytesIO):
    """Bytes with the name of the file they come from, for errors of readers."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _read_svmlight(path: Path, n_features: int | None, *, require_qid: bool, require_labels: bool) -> RowsToRank:
    """Read SVMlight rows; those without labels get the label 0."""
    _require_text(path)
    if require_labels or not path.is_file() or not _WITHOUT_LABEL.match(_first_line(path)):
        return data.read_svmlight(path, n_features=n_features, require_qid=require_qid)
    with open_source(path) as source:
        lines = [line for _, line in source.lines()]
    labelled = b"\n".join(b"0 " + line if line.strip() and line.lstrip()[:1] != b"#" else line for line in lines)
    try:
        return data.read_svmlight(_NamedBytes(labelled, str(path)), n_features=n_features, require_qid=require_qid)
    except DataError as error:
        column = max(error.column - 2, 1)  # as in the file, where the label is not
        raise DataError(error.name, error.line, column, error.expected, error.found) from None
