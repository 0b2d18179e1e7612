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
    features: str | int | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    qid: str | None = None,
) -> RowSource:
    """Name files to learn from; each worker reads its own part, and no process reads all.

    Parameters
    ----------
    paths
        Files, or one path with ``*``, whose files come by name: all Parquet, all SVMlight as plain text, or all npz.
        Every worker must find them under these names. They follow each other: a query may be cut by the end of a row
        group or of a file, but its rows stand together.
    features
        Of Parquet: the columns of features, numbers or booleans; default: all the others of the first file. Of
        SVMlight: how many there are. Of npz: the member with a row of features per row; default: "X".
    labels
        The column, or the member of an npz, of relevances (numbers) or classes; or a list of columns, or a member with
        a column each, of labels (0, 1, and what is missing is not known). Lines of SVMlight have theirs in front.
    qid
        The column, or the member of an npz, of query ids (integers or strings), for rankers of queries.

    Returns
    -------
    RowSource
        To be given to the fit of :class:`~slatewise.MarginRanker`, :class:`~slatewise.MatchingRanker`,
        ``CStarRanker(base="precomputed")`` or ``CStarMarginRanker(unary="linear", solver="bundle")`` instead of X, y
        and qid, or of :class:`~slatewise.MetricRanker` instead of X and y, or of ``queries``; the fit has the bits of
        one on arrays with the same rows.

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
    for path in paths:
        if Path(path).is_dir():
            raise IsADirectoryError(f"paths: expected files, or one path with *, found the folder {path}")
    return RowSource.of([str(Path(path).absolute()) for path in paths], features, labels, qid)
