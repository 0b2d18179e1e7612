"""The labels of a project: one per line, the column ``label`` (or the only one) of a CSV, or JSON."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from slatewise.core.errors import DataError
from slatewise.data.reading import open_source
from slatewise.labeling.exchange.json_lines import as_object, as_texts, parsed
from slatewise.labeling.store.acts import check_name

_COLUMNS = ("label", "name", "labels", "names")


def read_label_names(path: str | os.PathLike[str]) -> list[str]:
    r"""Read the names of labels in their order; blank lines are none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "labels.txt")
    ...     _ = file.write_text("sea\nsky\n")
    ...     read_label_names(file)
    ['sea', 'sky']
    """
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"--labels: expected a file with a label per line, found no {source}")
    with open_source(source) as opened:
        lines = [(number, text) for number, text in opened.text_lines() if text.strip()]
    endings = {ending.lower() for ending in source.suffixes}
    if endings & {".json", ".jsonl", ".ndjson"}:
        named = _of_json(str(source), lines)
    elif endings & {".csv", ".tsv"}:
        named = _of_csv(str(source), lines)
    else:
        named = [(number, text.strip()) for number, text in lines]
    return _checked(str(source), named)


def _of_csv(name: str, lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    header = lines[0][1] if lines else ""
    delimiter = next((one for one in ("\t", ",", ";") if one in header), ",")
    rows = [(number, next(csv.reader([text], delimiter=delimiter))) for number, text in lines]
    columns = [field.strip().lower() for field in rows[0][1]] if rows else []
    column = next((columns.index(one) for one in _COLUMNS if one in columns), None)
    if column is None and len(columns) > 1:
        raise DataError(name, 1, 1, "a column called label", ", ".join(columns))
    found: list[tuple[int, str]] = []
    for number, fields in rows[0 if column is None else 1 :]:
        if len(fields) <= (column or 0):
            raise DataError(name, number, 1, f"{len(columns)} fields as in the first line", str(len(fields)))
        found.append((number, fields[column or 0].strip()))
    return found


def _of_json(name: str, lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    text = "\n".join(line for _, line in lines)
    if text.lstrip().startswith('"'):  # a text per line
        named = [(number, parsed(name, number, line)) for number, line in lines]
        for number, value in named:
            if not isinstance(value, str):
                raise DataError(name, number, 1, "a text", type(value).__name__)
        return named
    value = parsed(name, 1, text)
    texts = as_texts((as_object(value) or {}).get("labels", value))
    if texts is None:
        raise DataError(name, 1, 1, 'a list of texts, or {"labels": [...]}', type(value).__name__)
    return [(1, one) for one in texts]


def _checked(name: str, named: Sequence[tuple[int, str]]) -> list[str]:
    seen: dict[str, int] = {}
    for number, label in named:
        try:
            check_name("label", label)
        except ValueError as error:
            raise DataError(
                name, number, 1, str(error).partition("expected ")[2].partition(", found")[0], label
            ) from None
        if label in seen:
            before = f", which is in line {seen[label]} too" if seen[label] != number else ""
            raise DataError(name, number, 1, "every label once", f"{label!r} again{before}")
        seen[label] = number
    if len(seen) < 2:
        raise DataError(name, 1, 1, "at least 2 labels", str(len(seen)))
    return list(seen)
