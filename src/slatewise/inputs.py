"""What the command line accepts as data: files by their content or ending, and data sets by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from slatewise import data, datasets
from slatewise.data._source import open_source
from slatewise.data.records import MultiLabel, Qrels, Ranking
from slatewise.datasets.records import MultiLabelSet, RankingSet
from slatewise.errors import DataError

_TABLE_ENDINGS = (".parquet", ".arrow", ".feather")


def read_ranking(name: str) -> Ranking:
    """Read graded rows: an SVMlight or LETOR file, a Parquet or Arrow file, or a named data set."""
    path = Path(name)
    if path.suffix in _TABLE_ENDINGS:
        return data.read_parquet(path, label="label", qid="qid", doc_id=None)
    if path.exists():
        return data.read_svmlight(path)
    loaded = datasets.load(_known(name), RankingSet)
    return Ranking(csr_array(loaded.X), loaded.y, loaded.qid, loaded.doc_ids)


def read_labels(name: str) -> MultiLabel:
    """Read rows with sets of labels: npz, ARFF with its XML beside it, multi-label SVMlight, or a named data set."""
    path = Path(name)
    if path.suffix == ".npz":
        return data.read_npz(path)
    if path.suffix == ".arff":
        return data.read_arff(path, labels=path.with_suffix(".xml"))
    if path.exists():
        return data.read_multilabel_svmlight(path)
    loaded = datasets.load(_known(name), MultiLabelSet)
    return MultiLabel(loaded.X, loaded.Y, loaded.label_names, loaded.feature_names, loaded.is_train)


def read_judgements(name: str) -> Qrels:
    """Read qrels; a file of rows with ``qid:`` serves too, through its documents' ids."""
    path = Path(name)
    if path.exists() and path.suffix not in _TABLE_ENDINGS and not _has_query_tokens(path):
        return data.read_qrels(path)
    ranking = read_ranking(name)
    whole = ranking.y.astype(np.int64)
    if (whole != ranking.y).any():
        row = int(np.flatnonzero(whole != ranking.y)[0])
        raise ValueError(f"{name}: expected whole numbers as relevance, found {ranking.y[row]} in row {row}")
    return Qrels(ranking.qid.astype(str), document_ids(ranking), whole)


def document_ids(ranking: Ranking) -> Any:
    """Return the documents' ids; those without are named by their row."""
    return np.arange(len(ranking.y)).astype(str) if ranking.doc_ids is None else ranking.doc_ids


def _known(name: str) -> str:
    if name not in datasets.names():
        raise ValueError(f"{name}: expected a file or one of the names that `slatewise datasets` lists, found neither")
    return name


def _has_query_tokens(path: Path) -> bool:
    with open_source(path) as source:
        for _, line in source.lines():
            if line.strip() and not line.lstrip().startswith(b"#"):
                return b"qid:" in line
    raise DataError(str(path), 1, 1, "judgements", "an empty file")
