"""What the command line accepts as data: files by their content or ending, and data sets by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.data._source import open_source
from slatewise.data.records import Float, Ids, MultiLabel, Pairs, Qrels, Ranking, Run, Strings
from slatewise.datasets.records import LabelledSet, MultiLabelSet, RankingSet, SessionSet
from slatewise.errors import DataError

_TABLE_ENDINGS = (".parquet", ".arrow", ".feather")


def read_ranking(name: str, n_features: int | None = None) -> Ranking:
    """Read graded rows: an SVMlight or LETOR file, a Parquet or Arrow file, or a named data set.

    ``n_features`` is how many a model knows: a sparse file need not mention the last of them.
    """
    path = Path(name)
    if path.suffix in _TABLE_ENDINGS:
        rows = data.read_parquet(path, label="label", qid="qid", doc_id=None)
    elif path.exists():
        rows = data.read_svmlight(path, n_features=n_features)
    else:
        loaded = datasets.load(_known(name), RankingSet)
        rows = Ranking(csr_array(loaded.X), loaded.y, loaded.qid, loaded.doc_ids)
    _require_rows(name, len(rows.y))
    return rows


def read_labels(name: str, n_features: int | None = None, n_labels: int | None = None) -> MultiLabel:
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
        rows = MultiLabel(loaded.X, loaded.Y, loaded.label_names, loaded.feature_names, loaded.is_train)
    _require_rows(name, rows.Y.shape[0])
    if n_labels is not None and rows.Y.shape[1] != n_labels:
        raise ValueError(f"{name}: expected the {n_labels} labels of the model, found {rows.Y.shape[1]}")
    return rows


@dataclass(frozen=True, eq=False)
class Classes:
    """Rows with one class each."""

    X: Float
    y: Ids


def read_classes(name: str, n_features: int | None = None) -> Classes:
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
    return Classes(loaded.X, loaded.class_names[loaded.y])


def read_interactions(name: str) -> Pairs:
    """Read (query, item) pairs: CSV or TSV, the first two columns; a file of sessions or a named set of them.

    Of sessions, every item asks for the one after it.
    """
    path = Path(name)
    if {".csv", ".tsv"} & set(path.suffixes[-2:]):
        pairs = data.read_pairs(path)
    elif path.exists():
        pairs = data.read_sessions(path).pairs()
    else:
        pairs = datasets.load(_known(name), SessionSet).train.pairs()
    _require_rows(name, len(pairs.items))
    return pairs


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
    ranking = read_ranking(name)
    wrong = (ranking.y != np.floor(ranking.y)) | (np.abs(ranking.y) > 2.0**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: expected whole numbers as relevance, found {ranking.y[row]} in row {row}")
    return Qrels(ranking.qid.astype(str), document_ids(ranking), ranking.y.astype(np.int64))


def document_ids(ranking: Ranking) -> Strings:
    """Return the documents' ids; those without are named by their row, from 0."""
    rows = np.arange(len(ranking.y)).astype(np.str_)
    return rows if ranking.doc_ids is None else np.where(ranking.doc_ids == "", rows, ranking.doc_ids)


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
