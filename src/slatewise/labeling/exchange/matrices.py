"""Answers as rows with sets of labels, which ``slatewise fit`` reads.

npz can say that a label is not known, multi-label SVMlight cannot.
"""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.checks import feature_rows
from slatewise.core.errors import DataError, DataWarning
from slatewise.core.rules import short_repr
from slatewise.data import read_npz, write_multilabel_svmlight, write_npz
from slatewise.data._source import PathOrFile
from slatewise.data.records import MultiLabel
from slatewise.labeling.exchange.statements import Names, Statement
from slatewise.labeling.store.project import Project


def labelled_rows(project: Project, X: Any) -> MultiLabel:
    """Return the items with features X, one row per item, and what is known of their labels."""
    known = project.known()
    rows = feature_rows("X", X)
    if rows.shape[0] != len(known.values):
        raise ValueError(f"X: expected a row per item, {len(known.values)}, found {rows.shape[0]}")
    return MultiLabel(
        cast("csr_array", rows),
        csr_array((known.values == 1).astype(np.int8)),
        np.array(project.labels.names(), dtype=np.str_),
        ids=np.array([item.id for item in project.items.all()], dtype=np.str_),
        known=known.values >= 0,
        answered=known.answered,
    )


def write_answers_npz(project: Project, path: str | PathLike[str], X: Any) -> None:
    """Write features and labels; what is not known is said to be."""
    write_npz(path, labelled_rows(project, X))


def write_answers_svmlight(project: Project, path: str | PathLike[str], X: Any) -> None:
    """Write features and labels by number; what is not known counts as no, with a warning."""
    lost = lost_in_svmlight(project)
    if lost:
        warnings.warn(lost, DataWarning, stacklevel=3)
    write_multilabel_svmlight(path, labelled_rows(project, X))


def lost_in_svmlight(project: Project) -> str:
    """Return what the format cannot say of a project, in words; nothing where it says all."""
    known = project.known().values >= 0
    unknown = known.size - int(known.sum())
    if not unknown:
        return ""
    return f"{unknown} of {known.size} labels are not known and count as no; npz keeps them apart"


def read_answers_npz(path: PathOrFile, names: Names, annotator: str) -> list[Statement]:
    """Read what is known, by the ids of rows and the names of labels."""
    rows = read_npz(path)
    name = str(getattr(path, "name", path))
    items, labels = (
        _numbers(name, "ids", rows.ids, names.items),
        _numbers(name, "label_names", rows.label_names, names.labels),
    )
    yes = rows.Y.toarray()
    known = np.ones(yes.shape, dtype=np.bool_) if rows.known is None else rows.known
    answered = known if rows.answered is None else rows.answered
    return [
        Statement(
            "answer", items[row], annotator, label=labels[column], said=int(yes[row, column]),
            how="asked" if answered[row, column] else "volunteered",
        )
        for row, column in np.argwhere(known).tolist()
    ]  # fmt: skip


def _numbers(file: str, member: str, given: Any, known: dict[str, int]) -> list[int]:
    if given is None:
        raise DataError(f"{file}[{member}]", 0, 0, "the ids of the rows", "none")
    texts = [str(name) for name in given.tolist()]
    strange = [text for text in texts if text not in known]
    if strange:
        raise DataError(f"{file}[{member}]", 0, 0, "names that the project has", short_repr(strange[0]))
    return [known[text] for text in texts]
