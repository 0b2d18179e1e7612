"""SVMlight with label sets, as LIBSVM writes it: ``label,label,... index:value ...``, a row per line.

- Labels are whole numbers from 0 in any order, each at most once per row; label l is column l of Y. Every column has a
  name, so that one large number would cost much memory: labels from 2^20 on need ``n_labels``.
- A row without labels starts with its first feature (blanks before it do not matter). A row with neither labels nor
  features looks like a blank line, which carries nothing.
- Everything else, features, numbers, comments and line ends, is as in :mod:`slatewise.data.svmlight`; comments are
  checked and dropped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import feature_rows
from slatewise.core.files import atomic_file
from slatewise.data.kernels import multilabel_svmlight, svmlight
from slatewise.data.kernels.text import count_byte
from slatewise.data.reading import MAX_LINE, OnError, PathOrFile, Problems, open_source, text_reader
from slatewise.data.records import MultiLabel
from slatewise.data.svmlight_text import (
    CHUNK_BYTES,
    IndexRange,
    Text,
    columns,
    csr_from_lengths,
    error_list,
    expected,
    ints,
    join_fields,
    map_texts,
    run_twice_if_hard,
    shortest,
)

_MOST_LABELS = 1 << 20


@text_reader
def read_multilabel_svmlight(
    path: PathOrFile,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool = False,
    on_error: OnError = "raise",
    max_line: int = MAX_LINE,
) -> MultiLabel:
    r"""Read a file with one row per line, its labels and its features; the module's text has the rules.

    Parameters
    ----------
    n_features, n_labels : int, optional
        Number of columns of X and of Y; an index or a label beyond is an error. None: as many as the file needs, of
        labels at most 2^20.
    zero_based : bool
        Whether feature index 0 is the first column of X. Otherwise index 1 is, and index 0 an error.

    Examples
    --------
    >>> from io import BytesIO
    >>> rows = read_multilabel_svmlight(BytesIO(b"2,0 1:0.5\n 1:3 2:4\n1 2:1\n"))
    >>> rows.Y.toarray(), rows.X.toarray()
    (array([[1, 0, 1],
            [0, 0, 0],
            [0, 1, 0]], dtype=int8),
     array([[0.5, 0. ],
            [3. , 4. ],
            [0. , 1. ]]))
    """
    indices = IndexRange.of(n_features, zero_based)
    end_label = columns("n_labels", _MOST_LABELS if n_labels is None else n_labels)
    problems = Problems(on_error)
    parts: list[_Part] = [_NO_ROWS]
    with open_source(path, max_line) as source:
        for parsed in map_texts(source, CHUNK_BYTES, _parse, _Rules(indices, end_label)):
            for position, code in parsed.errors:
                problems.add(parsed.text.error(position, expected(code, indices, end_label)))
            parts.append(parsed.part)
    labels, label_counts, lengths, features, values = join_fields(parts)
    Y = csr_from_lengths(np.ones(len(labels), dtype=np.int8), labels, label_counts, n_labels)
    return MultiLabel(csr_from_lengths(values, features, lengths, n_features), Y, skipped=problems.report())


def write_multilabel_svmlight(path: str | os.PathLike[str], data: MultiLabel) -> None:
    r"""Write rows so that :func:`read_multilabel_svmlight` gives them back; the file appears whole or not at all.

    Labels are written by number, and zeros of a dense X are left out. The ids of rows are comments, which are not read.

    Parameters
    ----------
    path : str or path
        ``.gz`` and ``.xz`` are compressed.
    data : MultiLabel
        A row with neither labels nor features is an error: the format cannot say it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> Y = csr_array([[1, 0, 1], [0, 0, 0]])
    >>> rows = MultiLabel(np.array([[0.5, 0.0], [3.0, 4.0]]), Y, np.array(["a", "b", "c"]))
    >>> with TemporaryDirectory() as folder:
    ...     write_multilabel_svmlight(Path(folder, "rows.txt"), rows)
    ...     Path(folder, "rows.txt").read_text()
    '0,2 1:0.5\n 1:3 2:4\n'
    """
    X, Y = csr_array(feature_rows("X", data.X)), csr_array(data.Y)
    Y.eliminate_zeros()
    for matrix in (X, Y):
        matrix.sum_duplicates()
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X: expected {Y.shape[0]} rows as in Y, found {X.shape[0]}")
    lines: list[str] = []
    for row in range(X.shape[0]):
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
        entries = slice(X.indptr[row], X.indptr[row + 1])
        pairs = zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
        features = "".join(f" {index + 1}:{shortest(value)}" for index, value in pairs)
        if not labels and not features:
            raise ValueError(f"X, Y: expected a label or a feature in every row, found neither in row {row}")
        comment = "" if data.ids is None else f" # {data.ids[row]}"
        if not comment.isprintable():
            raise ValueError(f"ids: expected printable text, found {comment.removeprefix(' # ')!r}")
        lines.append(f"{','.join(map(str, labels))}{features}{comment}\n")
    with atomic_file(path) as file:
        file.write("".join(lines).encode())


class _Part(NamedTuple):
    """Rows read: ``label_counts`` and ``lengths`` count each row's labels and entries."""

    labels: NDArray[np.int32]
    label_counts: Ints
    lengths: Ints
    indices: NDArray[np.int32]
    values: Floats


_NO_ROWS = _Part(np.empty(0, np.int32), ints(0), ints(0), np.empty(0, np.int32), np.empty(0))


@dataclass(frozen=True, eq=False)
class _Parsed:
    text: Text
    part: _Part
    errors: list[tuple[int, int]]
    """(position in the text, code) of each bad row."""


class _Rules(NamedTuple):
    indices: IndexRange
    end_label: int


def _parse(given: _Rules, text: Text) -> _Parsed:
    data = np.frombuffer(text.data, dtype=np.uint8)
    n_lines = count_byte(data, ord("\n"))
    rules = svmlight.Rules(given.indices.first, given.indices.end, False, False)
    labels = np.empty(n_lines + count_byte(data, ord(",")), dtype=np.int32)
    rows = multilabel_svmlight.MultiLabelRows(labels, ints(n_lines), ints(n_lines))
    errors = svmlight.Errors(ints(n_lines), ints(n_lines))
    entries, (size, count, wrong) = run_twice_if_hard(
        text,
        n_lines,
        lambda entries: multilabel_svmlight.multilabel_rows(data, rules, given.end_label, entries, rows, errors),
    )
    label_counts = rows.label_counts[:count]
    part = _Part(
        rows.labels[: int(label_counts.sum())],
        label_counts,
        rows.lengths[:count],
        entries.indices[:size],
        entries.values[:size],
    )
    return _Parsed(text, part, error_list(errors, wrong))
