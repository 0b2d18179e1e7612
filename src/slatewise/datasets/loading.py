"""Find a data set by name and load it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar, overload

from slatewise.datasets._locate import DatasetNotFound, cache_folder, fetch, places, present
from slatewise.datasets.records import About, Dataset, OfficialRun, RankingSet
from slatewise.datasets.table import TABLE, Entry

Kind = TypeVar("Kind", bound=Dataset)


@dataclass(frozen=True)
class Description(About):
    """What a data set is, and whether it can be loaded without a download."""

    present: bool


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows."""
    return tuple(TABLE)


def describe(name: str, *, folder: str | os.PathLike[str] | None = None) -> Description:
    """Say what a data set is and whether it is on this machine.

    Examples
    --------
    >>> describe("digits").size
    '1,797 rows, 64 features, 10 classes'
    """
    entry = _entry(name)
    about = entry.about
    here = entry.builtin is not None or present(entry.folder_name, entry.files, places(folder)) is not None
    return Description(about.name, about.kind, about.size, about.terms, about.source, here)


@overload
def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> Dataset: ...


@overload
def load(name: str, kind: type[Kind], *, folder: str | os.PathLike[str] | None = None) -> Kind: ...


def load(name: str, kind: type[Dataset] = Dataset, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name, from a folder that has a folder for each.

    Looked for in ``folder`` if that is given, otherwise in the folder that ``SLATEWISE_DATA`` names and then in the
    user's cache. What is in none of them is taken from scikit-learn or downloaded into the cache, where that is
    possible; otherwise the error says where to get it. With ``kind``, one of the classes of
    :mod:`slatewise.datasets.records`, a data set of another kind is an error.

    Examples
    --------
    >>> from slatewise.datasets.records import LabelledSet
    >>> digits = load("digits", LabelledSet)
    >>> digits.X.shape, digits.source
    ((1797, 64), 'scikit-learn')
    """
    data = _load(_entry(name), folder)
    if not isinstance(data, kind):
        raise ValueError(f"{name}: expected a {kind.__name__}, found a {type(data).__name__} ({data.about.kind})")
    return data


def _load(entry: Entry, folder: str | os.PathLike[str] | None) -> Dataset:
    looked_in = places(folder)
    if entry.load is not None:
        found = present(entry.folder_name, entry.files, looked_in)
        if found is not None:
            return entry.load(entry.about, found)
        if entry.download is not None and folder is None:
            return entry.load(entry.about, fetch(entry.download, cache_folder() / entry.folder_name))
    if entry.builtin is not None:
        return entry.builtin(entry.about)
    wanted, where = ", ".join(entry.files), " or ".join(map(str, looked_in))
    raise DatasetNotFound(
        f"{entry.about.name}: expected a folder {entry.folder_name} with {wanted} in {where}, "
        f"found none; get it from {entry.about.source}, and set SLATEWISE_DATA to the folder that holds it"
    )


def load_official_runs(name: str, *, folder: str | os.PathLike[str] | None = None) -> tuple[OfficialRun, ...]:
    """Load the scores that a set's authors published for their own methods, with their figures: fold after fold."""
    data = load(name, RankingSet, folder=folder)
    if not data.runs:
        raise ValueError(f"{name}: expected a data set that comes with official runs, such as ohsumed25")
    return data.runs


def _entry(name: str) -> Entry:
    if name not in TABLE:
        raise ValueError(f"name: expected one of {', '.join(TABLE)}, found {name!r}")
    return TABLE[name]
