"""Answers in and out, by the format that the caller or the ending of the file says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from slatewise.core.rules import short_repr
from slatewise.labeling.exchange.json_lines import read_json_lines, write_json_lines
from slatewise.labeling.exchange.label_studio import read_label_studio, write_label_studio
from slatewise.labeling.exchange.statements import Names, Statement, record
from slatewise.labeling.exchange.tables import (
    lost_in_svmlight,
    read_answers_npz,
    read_table,
    write_answers_npz,
    write_answers_svmlight,
    write_long,
    write_wide,
)
from slatewise.labeling.store.project import Project

Reader: TypeAlias = "Callable[[Any, Names, str], list[Statement]]"


class Format(NamedTuple):
    """How a format is written and read, and the endings that mean it."""

    write: Callable[..., None]
    read: Reader | None
    endings: tuple[str, ...]
    needs_features: bool = False
    lost: Callable[[Project], str] = lambda project: ""
    """What it cannot say of a project, in words."""


FORMATS: dict[str, Format] = {
    "wide": Format(write_wide, read_table, (".csv", ".tsv")),
    "long": Format(write_long, read_table, ()),
    "jsonl": Format(write_json_lines, read_json_lines, (".jsonl", ".ndjson")),
    "label-studio": Format(write_label_studio, read_label_studio, (".json",)),
    "npz": Format(write_answers_npz, read_answers_npz, (".npz",), needs_features=True),
    "svmlight": Format(write_answers_svmlight, None, (".svmlight", ".svm", ".libsvm"), True, lost_in_svmlight),
}


class Imported(NamedTuple):
    """How much was taken from a file."""

    answers: int
    items: int
    people: int


def export_answers(
    project: Project, path: str | os.PathLike[str], format: str | None = None, *, X: Any = None, **options: Any
) -> None:
    """Write the answers of a project that stand; the file appears whole or not at all.

    Parameters
    ----------
    project
        The project.
    path
        The file; text is compressed if it ends with ``.gz`` or ``.xz``.
    format : {"wide", "long", "jsonl", "label-studio", "npz", "svmlight"}, optional
        Default: by the ending, of ``.csv`` wide and of ``.json`` Label Studio. Long and JSON lines keep everything that
        is known of an answer, Label Studio too; npz keeps what is known and why; wide only what is known.
    X
        Features, a row per item, which npz and SVMlight need.
    options
        Of Label Studio: ``probabilities``, ``model_version``, ``prefix``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from slatewise.labeling import Item
    >>> with TemporaryDirectory() as folder:
    ...     with Project.create(Path(folder, "tags.db"), ["sea", "sky"], [Item("a", "text", "Waves.")]) as project:
    ...         _ = project.answer(0, 1, 1, project.people.number("Ann"))
    ...         export_answers(project, Path(folder, "tags.csv"))
    ...         print(Path(folder, "tags.csv").read_text())
    item,sea,sky
    a,,1
    """
    chosen = FORMATS[format_of(path, format)]
    if chosen.needs_features:
        if X is None:
            raise ValueError("X: expected the features of the items, which this format needs, found None")
        options["X"] = X
    chosen.write(project, path, **options)


def import_answers(
    project: Project,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    annotator: str = "import",
    labels: Mapping[str, str] | None = None,
) -> Imported:
    """Read answers into a project, all of them or, where anything is wrong, none.

    Parameters
    ----------
    project
        The project; items and labels of the file must be there.
    path
        The file, plain, gzip or xz.
    format : {"wide", "long", "jsonl", "label-studio", "npz"}, optional
        Default: by the ending; the header distinguishes wide and long tables.
    annotator
        The annotator of answers for which the file has no name.
    labels
        Names in the file and what the project calls them, where that differs; names that labels had before are known.

    Returns
    -------
    Imported
        How many answers (with done and skip), items and people they are.
    """
    name = format_of(path, format)
    reader = FORMATS[name].read
    if reader is None:
        raise ValueError(f"format: expected one with names, which {name} has not, found {name}: use npz")
    statements = reader(path, Names(project, labels), annotator)
    record(project, statements, f"import of {name}")
    taken = Imported(len(statements), len({one.item for one in statements}), len({one.annotator for one in statements}))
    project.audit.add("import", None, format=name, **taken._asdict())
    return taken


def format_of(path: str | os.PathLike[str], format: str | None) -> str:
    """Return the given format, or the one that the ending of the file means."""
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format: expected one of {', '.join(FORMATS)}, found {short_repr(format)}")
        return format
    suffixes = [suffix.lower() for suffix in Path(path).suffixes if suffix not in (".gz", ".xz")]
    for name, one in FORMATS.items():
        if suffixes and suffixes[-1] in one.endings:
            return name
    endings = ", ".join(ending for one in FORMATS.values() for ending in one.endings)
    raise ValueError(f"{os.fspath(path)}: expected a format, or a name that ends with one of {endings}")
