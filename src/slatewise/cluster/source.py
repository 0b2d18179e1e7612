"""``slatewise.cluster.source``: rows that stay in their files, for a fit whose driver never holds them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from slatewise.data.row_source import RowSource


def source(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    labels: str,
    qid: str,
    features: Sequence[str] | None = None,
) -> RowSource:
    """Name Parquet files to learn from; workers read the row groups they hold, and nobody reads all.

    Parameters
    ----------
    paths
        Files, or one path with ``*``, whose files come by name. Every worker must find them under these names. They
        follow each other: a query may be cut by the end of a row group or of a file, but its rows stand together.
    labels, qid
        The columns of relevances (numbers) and of query ids (integers or strings).
    features
        The columns of features, numbers or booleans; default: all the others of the first file.

    Returns
    -------
    RowSource
        To be given to :meth:`slatewise.MarginRanker.fit` instead of X, y and qid; the fit has the bits of one on arrays
        with the same rows.

    Examples
    --------
    ::

        with slatewise.cluster.ray("auto"):
            rows = slatewise.cluster.source("clicks/*.parquet", labels="grade", qid="query")
            ranker = slatewise.MarginRanker("map").fit(rows)
    """
    if isinstance(paths, str | os.PathLike):
        text = os.fspath(paths)
        found = sorted(glob(text)) if "*" in text else [text]
        if not found:
            raise FileNotFoundError(f"paths: expected files like {text}, found none")
        paths = found
    return RowSource.of([str(Path(path).absolute()) for path in paths], features, labels, qid)
