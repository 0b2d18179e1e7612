"""Features of the items, or scores of their labels from elsewhere: npz, npy, CSV, TSV, JSON lines, Parquet, Arrow.

Rows are the items in their order; or, where an archive has ``ids`` or a table has a column of them, those with these
ids. Columns of scores are the labels in their order; or, where a table or an archive names them, those with these
names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import Features
from slatewise.core.errors import DataError
from slatewise.data import read_npz, read_tags
from slatewise.data.fields import Splitter
from slatewise.data.npz import DAMAGE, array_of, check_sizes
from slatewise.data.reading import header_line, is_table, open_source

_LEAST_CHANCE = 1e-6
"""Of scores that are probabilities: none is taken to be certain."""


@dataclass(frozen=True, eq=False)
class ItemMatrix:
    """A row per item."""

    X: Features
    ids: list[str] | None
    columns: list[str] | None
    """Names of the columns, where the file has some."""


def read_matrix(path: str | os.PathLike[str], id: str | None = None) -> ItemMatrix:
    r"""Read a row of numbers per item.

    Parameters
    ----------
    path
        The file.
    id
        The column of a table that names the items; default: ``id``, if there is one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "features.csv")
    ...     _ = file.write_text("id,blue\na.png,0.5\nb.png,0.25\n")
    ...     matrix = read_matrix(file)
    ...     matrix.X.tolist(), matrix.ids
    ([[0.5], [0.25]], ['a.png', 'b.png'])
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{file}: expected a file with a row per item, found none")
    if file.suffix == ".npy":
        return ItemMatrix(_npy(file), None, None)
    if file.suffix == ".npz":
        archive = read_npz(file, require_labels=False)
        ids = None if archive.ids is None else [str(one) for one in archive.ids]
        names = archive.feature_names
        return ItemMatrix(archive.X, ids, None if names is None else [str(name) for name in names])
    column = id if id is not None else "id" if _has_column(file, "id") else None
    rows = read_tags(file, id=column, require_labels=False)
    ids = None if rows.ids is None else [str(one) for one in rows.ids]
    names = None if rows.feature_names is None else [str(name) for name in rows.feature_names]
    return ItemMatrix(rows.X, ids, names)


def as_log_odds(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Return scores as log-odds, and whether they were probabilities: all from 0 to 1."""
    if values.size and values.min() >= 0.0 and values.max() <= 1.0:
        chance = values.clip(_LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
        return np.log(chance) - np.log1p(-chance), True
    return values, False


def _npy(file: Path) -> NDArray[np.float64]:
    try:
        array = array_of(file.read_bytes())
    except DAMAGE as error:
        raise DataError(str(file), 0, 0, "an array as numpy.save writes it", str(error)) from None
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise DataError(str(file), 0, 0, "numbers, a row per item", f"{array.dtype} of shape {array.shape}")
    check_sizes(str(file), array)
    return array.astype(np.float64)


def _has_column(file: Path, name: str) -> bool:
    if is_table(file):
        from slatewise.data.parquet import read_table  # pyarrow, which need not be there

        there: list[str] = []
        read_table(file, lambda names, _: there.extend(names) or names[:1])
        return name in there
    with open_source(file) as source:
        header = header_line(source, source.lines(), "a line that names the columns, or a JSON object")
    if header.text.lstrip().startswith("{"):
        return True  # read_tags looks for the key "id" anyway
    return name in Splitter.of(None, header, default=",").split(header)
