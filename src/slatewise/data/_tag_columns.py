"""Which columns of a table of tagged rows serve as what, and the rows that become a :class:`MultiLabel`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from slatewise.core.arrays import Floats
from slatewise.core.errors import DataError, Skipped
from slatewise.core.rules import short_repr
from slatewise.data._tokens import as_ids
from slatewise.data.records import MultiLabel, Strings

Fault: TypeAlias = "Callable[[str, str], DataError]"
"""Of what was expected and what was found, at the place of the names of columns."""


@dataclass(frozen=True)
class Wanted:
    """What the caller says of a file of tagged rows; see :func:`slatewise.data.read_tags`."""

    labels: str | tuple[str, ...] | None
    tags: str | None
    separator: str | None
    id: str | None
    features: str | tuple[str, ...] | None
    label_names: tuple[str, ...] | None
    require_labels: bool

    def __post_init__(self) -> None:
        if self.labels is not None and self.tags is not None:
            raise ValueError("labels, tags: expected one of them, found both")
        if self.separator == "":
            raise ValueError("separator: expected a text that is not empty, found ''")
        for argument, names in (
            ("labels", self.labels),
            ("features", self.features),
            ("label_names", self.label_names),
        ):
            if names is not None and (not names or (not isinstance(names, str) and len(set(names)) < len(names))):
                expected = "names, each once" if argument == "label_names" else "a prefix, or names, each once"
                raise ValueError(f"{argument}: expected {expected}, found {short_repr(names)}")

    @cached_property
    def known_labels(self) -> frozenset[str]:
        """The labels that there are, where that is said."""
        return frozenset(self.label_names or ())


@dataclass(frozen=True)
class Columns:
    """Names of columns by what they serve as."""

    labels: dict[str, str]
    """Label by column."""
    tags: str | None
    id: str | None
    features: list[str]

    @classmethod
    def among(cls, names: Sequence[str], wanted: Wanted, fault: Fault) -> Columns:
        """Find the columns of a table that has these."""
        for name in names:
            if not name or name != name.strip(" \t"):
                raise fault("names of columns, not empty and without blanks around them", repr(name))
        if len(set(names)) < len(names):
            raise fault("every column name once", f"{first_again(names)!r} again")
        if wanted.labels is None and wanted.tags is None and wanted.require_labels:
            raise fault("labels or tags to say where a table has its labels, or a JSON object", _listed(names))
        labels = _label_columns(names, wanted, fault)
        tags = wanted.tags
        if tags is not None and tags not in names and not wanted.require_labels:
            tags = None
        own = [name for name in (*labels, tags, wanted.id) if name is not None]
        _require(names, own, fault)
        features = _feature_columns(names, own, wanted, fault)
        served = [*own, *features]
        if len(set(served)) < len(served):
            raise fault("every column to serve as one thing", f"{first_again(served)!r} as two")
        return cls(labels, tags, wanted.id, features)


def _label_columns(names: Sequence[str], wanted: Wanted, fault: Fault) -> dict[str, str]:
    if wanted.labels is None:
        return {}
    if isinstance(wanted.labels, str):
        prefix = wanted.labels
        labels = {name: name.removeprefix(prefix) for name in names if name.startswith(prefix)}
        if "" in labels.values():
            raise fault(f"a label's name after {prefix!r}", repr(prefix))
        if not labels and wanted.require_labels:
            raise fault(f"columns whose names start with {prefix!r}", _listed(names))
    else:
        labels = {name: name for name in wanted.labels}
        if not wanted.require_labels and not set(labels) & set(names):
            return {}
        _require(names, labels, fault)
    if labels and wanted.label_names is not None:
        column = {label: name for name, label in labels.items()}
        if set(column) != set(wanted.label_names):
            raise fault(f"columns of the labels {_listed(wanted.label_names)}", f"those of {_listed(list(column))}")
        labels = {column[label]: label for label in wanted.label_names}
    return labels


def _feature_columns(names: Sequence[str], own: Sequence[str], wanted: Wanted, fault: Fault) -> list[str]:
    taken = set(own)
    if wanted.features is None:
        features = [name for name in names if name not in taken]
    elif isinstance(wanted.features, str):
        features = [name for name in names if name.startswith(wanted.features) and name not in taken]
    else:
        features = list(wanted.features)
        _require(names, features, fault)
    if not features:
        raise fault("at least one column of features", f"none in {_listed(names)}")
    return features


def _require(names: Sequence[str], wanted: Iterable[str], fault: Fault) -> None:
    present = set(names)
    for name in wanted:
        if name not in present:
            raise fault(f"a column called {name!r}", _listed(names))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def first_again(names: Iterable[str]) -> str | None:
    """Return the first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def tag_fault(name: object, before: Container[str], wanted: Wanted) -> tuple[str, str] | None:
    """Return what is wrong with a tag that comes after others of its row, None where nothing is."""
    if not isinstance(name, str) or not name or name != name.strip():
        return "a tag, not empty and without blanks around it", repr(name)
    if name in before:
        return "every tag once per row", f"{name!r} again"
    if wanted.label_names is not None and name not in wanted.known_labels:
        return "a tag that is known", repr(name)
    return None


@dataclass(frozen=True)
class TaggedRow:
    """One row: its features by place or by name, its tags, and its id where there is one."""

    features: list[float] | dict[str, float]
    tags: list[str]
    id: str | None


def tagged_rows(
    rows: Sequence[TaggedRow],
    label_names: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    skipped: Skipped,
) -> MultiLabel:
    """Put rows together; labels that nobody names are the tags that occur, in order."""
    names = sorted({tag for row in rows for tag in row.tags}) if label_names is None else list(label_names)
    ids = None if not rows or rows[0].id is None else as_ids([row.id or "" for row in rows])
    X, columns = _features(rows, feature_names)
    return MultiLabel(
        X,
        label_matrix([row.tags for row in rows], names),
        np.array(names, dtype=np.str_),
        columns,
        skipped=skipped,
        ids=ids,
    )


def label_matrix(tags: Sequence[Sequence[str]], names: Sequence[str]) -> csr_array:
    """Return (rows, names) with a 1 for every tag of a row."""
    places = {name: place for place, name in enumerate(names)}
    indices = [place for row in tags for place in sorted(places[tag] for tag in row)]
    indptr = np.cumsum([0, *map(len, tags)], dtype=np.int64)
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_array((ones, np.array(indices, dtype=np.int64), indptr), shape=(len(tags), len(names)))


def _features(
    rows: Sequence[TaggedRow], feature_names: Sequence[str] | None
) -> tuple[csr_array | Floats, Strings | None]:
    named = [row.features for row in rows if isinstance(row.features, dict)]
    names = sorted({name for row in named for name in row}) if named and feature_names is None else feature_names
    columns = None if names is None else np.array(names, dtype=np.str_)
    if named and names is not None:
        places = {name: place for place, name in enumerate(names)}
        entries = [sorted((places[name], value) for name, value in row.items()) for row in named]
        indices = np.array([place for row in entries for place, _ in row], dtype=np.int64)
        values = np.array([value for row in entries for _, value in row], dtype=np.float64)
        indptr = np.cumsum([0, *map(len, entries)], dtype=np.int64)
        return csr_array((values, indices, indptr), shape=(len(rows), len(names))), columns
    width = len(rows[0].features) if rows else len(names or ())
    return np.array([row.features for row in rows], dtype=np.float64).reshape(len(rows), width), columns
