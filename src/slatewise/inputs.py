"""What the command line accepts as data: files by their content or ending, and data sets by name.

A named data set with a split of its own, or with folds, of which the first is taken, has a part for fit and one for
rank and evaluate. Files are read whole.
"""

from __future__ import annotations

import csv
import re
import warnings
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.data._delimited import guess_delimiter
from slatewise.data._source import open_source
from slatewise.data.records import Float, Ids, Int, MultiLabel, Pairs, Qrels, Ranking, Run, Strings
from slatewise.datasets.records import LabelledSet, MultiLabelSet, RankingSet, SessionSet
from slatewise.datasets.splits import Split
from slatewise.errors import DataError

_TABLE_ENDINGS = (".parquet", ".arrow", ".feather")
_SVMLIGHT_LINE = re.compile(rb"\S*([ \t]+\d+:\S+)+\s*")


class Part(Enum):
    """Which rows of a named data set, where its source tells them apart."""

    TRAIN = auto()
    TEST = auto()


def read_ranking(name: str, n_features: int | None = None, part: Part | None = None) -> Ranking:
    """Read graded rows: an SVMlight or LETOR file, a Parquet or Arrow file, or a named data set.

    ``n_features`` is how many a model knows: a sparse file need not mention the last of them. ``part`` is taken from
    the first fold of a named set.
    """
    path = Path(name)
    if path.suffix in _TABLE_ENDINGS:
        rows = data.read_parquet(path, label="label", qid="qid", doc_id=None)
    elif path.exists():
        rows = data.read_svmlight(path, n_features=n_features)
    else:
        loaded = datasets.load(_known(name), RankingSet)
        chosen = _chosen(name, part, len(loaded.y), loaded.folds[0] if loaded.folds else None)
        doc_ids = None if loaded.doc_ids is None else loaded.doc_ids[chosen]
        rows = Ranking(csr_array(loaded.X[chosen]), loaded.y[chosen], loaded.qid[chosen], doc_ids)
    _require_rows(name, len(rows.y))
    return rows


def read_labels(
    name: str, n_features: int | None = None, n_labels: int | None = None, part: Part | None = None
) -> MultiLabel:
    """Read rows with sets of labels: npz, ARFF with its XML beside it, multi-label SVMlight, or a named data set.

    ``n_features`` and ``n_labels`` are how many a model knows: a sparse file need not mention the last of them.
    """
    path = Path(name)
    if path.suffix == ".npz":
        rows = data.read_npz(path)
    elif path.suffix == ".arff":
        rows = data.read_arff(path, labels=path.with_suffix(".xml"))
    elif path.exists():
        rows = data.read_multilabel_svmlight(path, n_features=n_features, n_labels=n_labels)
    else:
        loaded = datasets.load(_known(name), MultiLabelSet)
        chosen = _chosen(name, part, int(loaded.Y.shape[0]), _split(loaded.is_train))
        is_train = None if loaded.is_train is None else loaded.is_train[chosen]
        rows = MultiLabel(loaded.X[chosen], loaded.Y[chosen], loaded.label_names, loaded.feature_names, is_train)
    _require_rows(name, rows.Y.shape[0])
    if n_labels is not None and rows.Y.shape[1] != n_labels:
        raise ValueError(f"{name}: expected the {n_labels} labels of the model, found {rows.Y.shape[1]}")
    return rows


@dataclass(frozen=True, eq=False)
class Classes:
    """Rows with one class each."""

    X: Float
    y: Ids


def has_labels(name: str) -> bool:
    """Tell rows with sets of labels from pairs and sessions: npz, ARFF, multi-label SVMlight, or a named data set."""
    path = Path(name)
    if path.suffix in (".npz", ".arff"):
        return True
    if {".csv", ".tsv"} & set(path.suffixes[-2:]):
        return False  # pairs, whose ids may look like features
    if not path.is_file():
        return name in datasets.names() and datasets.describe(name).kind == "multi-label"
    with open_source(path) as source:
        return any(_SVMLIGHT_LINE.fullmatch(line) for _, line in islice(source.lines(), 1))


def read_classes(name: str, n_features: int | None = None, part: Part | None = None) -> Classes:
    """Read rows with classes: CSV whose last column is the class, SVMlight, or a named data set.

    A first line of CSV without a single number names the columns. ``n_features`` is how many a model knows: a sparse
    file need not mention the last of them.
    """
    path = Path(name)
    if ".csv" in path.suffixes[-2:]:
        return _csv_classes(name)
    if path.exists():
        rows = data.read_svmlight(path, n_features=n_features, require_qid=False)
        _require_rows(name, len(rows.y))
        return Classes(rows.dense(), rows.y)
    loaded = datasets.load(_known(name), LabelledSet)
    chosen = _chosen(name, part, len(loaded.y), _split(loaded.is_train))
    return Classes(loaded.X[chosen], loaded.class_names[loaded.y[chosen]])


@dataclass(frozen=True)
class PairColumns:
    """What the command line says of a file of pairs."""

    header: bool | None = None
    """Whether ``--header`` or ``--no-header`` was said."""
    weight: str | None = None
    """The column of weights: its number, from 0, or its name in the header."""


UNSAID = PairColumns()


def read_interactions(name: str, columns: PairColumns = UNSAID, part: Part | None = None) -> Pairs:
    """Read (query, item) pairs: CSV or TSV, the first two columns; a file of sessions or a named set of them.

    Of sessions, every item asks for the one after it.
    """
    path = Path(name)
    if {".csv", ".tsv"} & set(path.suffixes[-2:]):
        pairs = _read_pairs(name, columns, part)
    elif columns != UNSAID:
        raise ValueError(f"--header, --weight: expected a file of pairs, .csv or .tsv, found {name}")
    elif path.exists():
        pairs = data.read_sessions(path).pairs()
    else:
        loaded = datasets.load(_known(name), SessionSet)
        pairs = (loaded.test if part is Part.TEST else loaded.train).pairs()
    _require_rows(name, len(pairs.items))
    return pairs


def _read_pairs(name: str, columns: PairColumns, part: Part | None) -> Pairs:
    weight, header = columns.weight, columns.header
    column = int(weight) if weight is not None and weight.isascii() and weight.isdigit() else weight
    if isinstance(column, str):
        if header is False:
            raise ValueError(f"--weight: expected a column's number, from 0, with --no-header, found {weight!r}")
        header = True
    try:
        pairs = data.read_pairs(name, weight=column, header=header)
    except DataError as error:
        expected = error.expected.replace("header=True", "--header").replace("header=False", "--no-header")
        raise DataError(error.name, error.line, error.column, expected, error.found) from None
    if pairs.weights is not None and not ((pairs.weights >= 0).all() and pairs.weights.any()):
        raise ValueError(f"--weight: expected numbers >= 0, and one > 0, in {name}, found {pairs.weights.min()}")
    if header is None:
        _warn_of_names(name, pairs)
    if weight is None and part is Part.TRAIN:
        _warn_of_more_columns(name)
    return pairs


def _warn_of_names(name: str, pairs: Pairs) -> None:
    """Tell of texts in the first line that occur in no other; above numbers they were an error already."""
    first = [str(ids[0]) for ids in (pairs.queries, pairs.items)]
    others = np.concatenate([ids[1:].astype(np.str_) for ids in (pairs.queries, pairs.items)])
    texts = all(ids.dtype.kind == "U" for ids in (pairs.queries, pairs.items))
    if texts and len(others) and not np.isin(first, others).any():
        what = f"{first[0]!r} and {first[1]!r}"
        warnings.warn(f"{name}:1: {what} occur in no other line; --header if they name the columns", stacklevel=2)


def _warn_of_more_columns(name: str) -> None:
    with open_source(name) as source:
        line = next(text for _, text in source.text_lines() if text.strip())
    width = len(next(csv.reader([line], delimiter=guess_delimiter(line) or " ")))
    if width > 2:
        warnings.warn(
            f"{name}: two of {width} columns are read; --weight 2, or a name, if one of them weighs the pairs",
            stacklevel=2,
        )


def _csv_classes(name: str) -> Classes:
    rows: list[list[float]] = []
    classes: list[str] = []
    width = 0
    with open_source(name) as source:
        for number, line in source.text_lines():
            *fields, label = (field.strip() for field in line.split(","))
            if not line.strip() or (not rows and not width and not any(map(_is_number, fields))):
                width = len(fields)
                continue
            wrong = [place for place, field in enumerate(fields) if not _is_number(field)]
            if wrong:
                column = sum(len(field) + 1 for field in line.split(",")[: wrong[0]]) + 1
                raise DataError(name, number, column, "a finite number", repr(fields[wrong[0]]))
            width = width or len(fields)
            if len(fields) != width or not width or not label:
                raise DataError(name, number, 1, f"{max(width, 1)} numbers and a class", repr(line))
            rows.append([float(field) for field in fields])
            classes.append(label)
    _require_rows(name, len(rows))
    return Classes(np.array(rows), np.array(classes))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def read_run(name: str) -> Run:
    """Read what ``slatewise rank`` writes: a TREC run; with another ending, CSV or Parquet."""
    endings = Path(name.lower()).suffixes
    if ".parquet" in endings[-1:]:
        rows = data.read_parquet(name, label="score", qid="qid", doc_id="doc_id", features=[])
        return Run(rows.qid.astype(np.str_), document_ids(rows), rows.y)
    if ".csv" in endings[-2:]:
        pairs = data.read_pairs(name, columns=("qid", "doc_id"), weight="score", delimiter=",", header=True)
        return Run(pairs.queries.astype(np.str_), pairs.items.astype(np.str_), np.asarray(pairs.weights))
    return data.read_run(name)


def read_judgements(name: str) -> Qrels:
    """Read qrels; a file of rows with ``qid:`` serves too, through its documents' ids."""
    path = Path(name)
    if path.exists() and path.suffix not in _TABLE_ENDINGS and not _has_query_tokens(path):
        return data.read_qrels(path)
    ranking = read_ranking(name, part=Part.TEST)
    wrong = (ranking.y != np.floor(ranking.y)) | (np.abs(ranking.y) > 2.0**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: expected whole numbers as relevance, found {ranking.y[row]} in row {row}")
    return Qrels(ranking.qid.astype(str), document_ids(ranking), ranking.y.astype(np.int64))


def document_ids(ranking: Ranking) -> Strings:
    """Return the documents' ids; those without are named by their row, from 0."""
    rows = np.arange(len(ranking.y)).astype(np.str_)
    return rows if ranking.doc_ids is None else np.where(ranking.doc_ids == "", rows, ranking.doc_ids)


def _chosen(name: str, part: Part | None, n_rows: int, split: Split | None) -> Int:
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


def _has_query_tokens(path: Path) -> bool:
    if not path.is_file():
        raise ValueError(f"{path}: expected a plain file, because judgements are looked at twice, found something else")
    with open_source(path) as source:
        for _, line in source.lines():
            if line.strip() and not line.lstrip().startswith(b"#"):
                return b"qid:" in line
    raise DataError(str(path), 1, 1, "judgements", "an empty file")
