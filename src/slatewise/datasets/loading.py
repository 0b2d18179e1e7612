"""Find a data set by name, in a folder or by a download, and load it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, overload

from slatewise.data.reading import open_source
from slatewise.datasets.records import About, Dataset, Download, OfficialRun, RankingSet
from slatewise.datasets.table import TABLE, Entry


class DatasetNotFound(FileNotFoundError):
    """A data set is not on this machine; the message says where it was looked for and where to get it."""


def places(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders to look in: the one given; otherwise SLATEWISE_DATA, then the user's cache."""
    if folder is not None:
        return [Path(folder)]
    named = os.environ.get("SLATEWISE_DATA", "")
    return ([Path(named)] if named else []) + [cache_folder()]


def cache_folder() -> Path:
    """Return the user's cache folder, which need not exist."""
    import pooch

    return Path(pooch.os_cache("slatewise"))


def present(name: str, files: tuple[str, ...], among: list[Path]) -> Path | None:
    """Return the first folder called ``name`` that has all the files."""
    for place in among:
        if all((place / name / file).exists() for file in files):
            return place / name
    return None


def fetch(download: Download, folder: Path) -> Path:
    """Download a file into a folder; it appears there only when its content has been checked."""
    import pooch

    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as scratch:
        path = Path(scratch) / download.file
        try:
            pooch.HTTPDownloader(progressbar=False)(download.url, str(path), None)
        except OSError as error:
            raise DatasetNotFound(f"{download.url}: expected a download, found {error}") from error
        found = hashlib.sha256()
        with open_source(path) as source:
            for chunk in source.chunks():
                found.update(chunk)
        if found.hexdigest() != download.sha256:
            raise DatasetNotFound(f"{download.url}: expected SHA-256 {download.sha256}, found {found.hexdigest()}")
        os.replace(path, folder / download.file)
    return folder


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
    here = entry.builtin is not None or present(entry.folder_name, entry.files, places(folder)) is not None
    return Description(name, entry.kind, entry.size, entry.terms, entry.source, here)


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
        f"{entry.name}: expected a folder {entry.folder_name} with {wanted} in {where}, "
        f"found none; get it from {entry.source}, and set SLATEWISE_DATA to the folder that holds it"
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
