"""Tables to rank: pandas, polars and Arrow frames through narwhals. One row per document, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from narwhals.typing import IntoDataFrame
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError
from slatewise.data.records import Ids, RowsToRank


def from_frame(
    frame: IntoDataFrame, *, label: str, qid: str, doc_id: str | None = None, features: Sequence[str] | None = None
) -> RowsToRank:
    """Take the rows of a frame; rows of one query need not stand together.

    Parameters
    ----------
    frame : pandas, polars or Arrow data frame
        One row per document.
    label, qid : str
        The columns of relevances (numbers) and of query ids (integers or strings).
    doc_id : str, optional
        The column of document ids.
    features : list of str, optional
        The columns of features, numbers or booleans. By default all the others, in the frame's order.

    Raises
    ------
    DataError
        With the column, the row (from 0) and what was expected: nothing may be missing, NaN or infinite.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"query": ["a", "b", "a"], "rel": [2, 0, 1], "bm25": [7.5, 0.0, 3.0]})
    >>> rows = from_frame(frame, label="rel", qid="query")
    >>> rows.qid.tolist(), rows.y.tolist(), rows.dense().ravel().tolist()
    (['a', 'b', 'a'], [2.0, 0.0, 1.0], [7.5, 0.0, 3.0])
    """
    table = table_of(frame, "frame")
    return rows_of(table, Columns.among(table.columns, "frame", label, qid, doc_id, features), "frame")


def table_of(frame: IntoDataFrame, name: str) -> nw.DataFrame[Any]:
    """Return a frame of whatever library as a table; a column that is there twice is an error of the argument."""
    try:
        return nw.from_native(frame, eager_only=True)
    except DuplicateError as error:
        raise DataError(name, 0, 0, "every column name once", " ".join(str(error).split())) from None


@dataclass(frozen=True)
class Columns:
    """Which column of a table serves as what."""

    label: str | None
    qid: str
    doc_id: str | None
    features: tuple[str, ...]

    @classmethod
    def among(
        cls,
        names: Sequence[str],
        table: str,
        label: str | None,
        qid: str,
        doc_id: str | None,
        features: Sequence[str] | None,
    ) -> Columns:
        """Check that the columns exist; features default to those that serve as nothing else."""
        taken = [name for name in (label, qid, doc_id) if name is not None]
        chosen = [name for name in names if name not in taken] if features is None else list(features)
        require_columns(names, table, [*taken, *chosen])
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"features: expected every column once, found {chosen}")
        return cls(label, qid, doc_id, tuple(chosen))

    @property
    def all(self) -> list[str]:
        """Every column that is needed, once."""
        own = [name for name in (self.label, self.qid, self.doc_id) if name is not None]
        return list(dict.fromkeys([*own, *self.features]))


def require_columns(names: Sequence[str], table: str, wanted: Sequence[str]) -> None:
    """Raise DataError where a table has a name twice, or lacks a column."""
    if len(set(names)) != len(names):
        raise DataError(table, 0, 0, "every column name once", f"the columns {', '.join(map(repr, names))}")
    for name in wanted:
        if name not in names:
            raise DataError(table, 0, 0, f"a column called {name!r}", f"the columns {', '.join(map(repr, names))}")


def rows_of(table: nw.DataFrame[Any], columns: Columns, name: str, first_row: int = 0) -> RowsToRank:
    """Check and convert the columns of a table whose first row is row ``first_row`` of the source ``name``."""
    X = np.empty((len(table), len(columns.features)))
    for place, feature in enumerate(columns.features):
        X[:, place] = numbers_of(table[feature], name, first_row)
    y = np.zeros(len(table)) if columns.label is None else numbers_of(table[columns.label], name, first_row)
    qid = ids_of(table[columns.qid], name, first_row)
    doc_ids = None if columns.doc_id is None else ids_of(table[columns.doc_id], name, first_row).astype(np.str_)
    return RowsToRank(csr_array(X), y, qid, doc_ids)


def ids_of(series: nw.Series[Any], name: str, first_row: int) -> Ids:
    """Return a column of integer or string ids, none of them missing."""
    missing = np.flatnonzero(series.is_null().to_numpy())
    if len(missing):
        raise column_fault(series, name, first_row, int(missing[0]), "an id", "a missing value")
    if series.dtype.is_integer():
        values = series.to_numpy()
        if len(values) and values.max() > np.iinfo(np.int64).max:
            raise column_fault(series, name, first_row, int(values.argmax()), "an id within int64", str(values.max()))
        return values.astype(np.int64)
    if isinstance(series.dtype, nw.String | nw.Categorical | nw.Enum):
        return np.array(series.cast(nw.String).to_list(), dtype=np.str_)
    raise column_fault(series, name, first_row, 0, "integer or string ids", f"a column of {series.dtype}")


def numbers_of(series: nw.Series[Any], name: str, first_row: int) -> Floats:
    """Return a column of finite numbers, none of them missing."""
    values = floats_of(series, name, first_row)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        found = "a missing value" if bool(series.is_null().to_numpy()[row]) else str(values[row])
        raise column_fault(series, name, first_row, row, "a finite number", found)
    return values


def floats_of(series: nw.Series[Any], name: str, first_row: int) -> Floats:
    """Return a column of numbers or booleans; what is missing is NaN."""
    if not series.dtype.is_numeric() and series.dtype != nw.Boolean:
        raise column_fault(series, name, first_row, 0, "numbers", f"a column of {series.dtype}")
    whole = series.dtype.is_integer() and not series.is_null().any()
    # Straight to NumPy where that is safe: Arrow refuses to cast integers that float64 would round.
    return np.asarray((series if whole else series.cast(nw.Float64)).to_numpy(), dtype=np.float64)


def column_fault(series: nw.Series[Any], name: str, first_row: int, row: int, expected: str, found: str) -> DataError:
    """Return the error for one cell."""
    return DataError(f"{name}, column {series.name!r}, row {first_row + row}", 0, 0, expected, found)
