"""Where data lies: a folder of folders, one a data set, or a download into the user's cache."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from slatewise.data.reading import open_source


class DatasetNotFound(FileNotFoundError):
    """A data set is not on this machine; the message says where it was looked for and where to get it."""


@dataclass(frozen=True)
class Download:
    """A file at an address that keeps its content, with the SHA-256 of that content after decompression."""

    url: str
    file: str
    sha256: str


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
