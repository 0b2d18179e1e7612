"""Batch answers: partitions of queries in, partitions of lists out, each exactly once whoever is killed.

A partition is a row group of the data, with the rest of the query that its end cuts. Its answer is one file, which
appears whole under its name or not at all, and is the same whoever writes it: a partition that is ranked twice is there
once. The manifest says of which model and data a folder's files are; a run that was killed goes on with the partitions
that have no file.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.cluster.workers import Workers
from slatewise.core.checks import whole_number
from slatewise.core.errors import DataError
from slatewise.core.files import atomic_file, atomic_path
from slatewise.core.rankings import Rankings
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import track
from slatewise.data.row_files import ParquetRows, RowGroup
from slatewise.data.row_source import RowSource, groups_of

Ids: TypeAlias = NDArray[Any]
MANIFEST = "manifest.json"
_UNKNOWN = "queries unknown to the model"


class Counts(NamedTuple):
    """How many lines there are, and how many queries the model does not know."""

    n_lines: int
    n_unknown: int


class Kind(Protocol):
    """A way to cut data into partitions and to rank one of them."""

    def partitions(self, model: Any, paths: Sequence[str], executor: Executor) -> Sequence[Any]:
        """Say what the partitions are, without reading features; what the model cannot rank is an error."""
        ...

    def rank(self, model: Any, partition: Any, top: int) -> tuple[Rankings, int]:
        """Rank the queries of a partition; also return how many are unknown."""
        ...


class Job(NamedTuple):
    """What all partitions share."""

    model: str
    model_sha256: str
    top: int
    out: str
    kind: Kind


class Lists(NamedTuple):
    """Whole lists of rows: a run of rows of a source, where each list begins in it, and what the lists are called."""

    source: RowSource
    first_row: int
    offsets: NDArray[np.int64]
    ids: Ids


class RowsOfLists:
    """Rows with query ids: the columns qid and features, and a label that is not looked at."""

    def partitions(
        self, model: Any, paths: Sequence[str], executor: Executor, *, judged: bool = False
    ) -> Sequence[Lists]:
        """Give every list to the row group it begins in; ``judged``: there must be a column label.

        Features are the columns that a model of a frame has names of, else all but qid and label, in their order.
        """
        names = getattr(model, "feature_names_in_", None)
        source = RowSource.to_rank(paths, "qid", "label", None if names is None else names.tolist(), judged=judged)
        if source.n_features != model.n_features_in_:
            expected = f"{model.n_features_in_} columns of features, as the model has, beside qid and label"
            raise DataError(paths[0], 0, 0, expected, str(source.n_features))
        lists = source.lists(executor)
        ends = np.cumsum([group.n_rows for group in source.groups])
        cuts = [0, *np.searchsorted(lists.offsets[:-1], ends).tolist()]
        runs = [(first, last) for first, last in pairwise(cuts) if first < last]
        return [
            Lists(source, int(at[0]), at - at[0], lists.ids[first:last])
            for first, last in runs
            for at in [lists.offsets[first : last + 1]]
        ]

    def rank(self, model: Any, partition: Lists, top: int) -> tuple[Rankings, int]:
        """Rank the rows of every list; a row is called by its number among all."""
        source, first, offsets, ids = partition
        rows = source.read(first, first + int(offsets[-1]))
        names = np.arange(first, first + len(rows.y))
        return model.rank(rows.X, np.repeat(ids, np.diff(offsets)), doc_ids=names).top(top), 0


class QueriesOfCatalogue:
    """Query ids in a column called query: each ranks all items of the model."""

    def partitions(self, model: Any, paths: Sequence[str], executor: Executor) -> Sequence[RowGroup]:
        """Take row groups as they are; a file says, without a row, whether its ids are such as the model has."""
        from slatewise.data.frames import ids_of
        from slatewise.data.parquet import row_groups

        del executor
        found = groups_of(paths, "query")
        for path in dict.fromkeys(group.path for group in found):
            asked = ids_of(row_groups(path).nothing["query"], path, 0)
            if asked.dtype.kind != model.query_ids_.dtype.kind:
                expected = "strings" if model.query_ids_.dtype.kind == "U" else "whole numbers"
                raise DataError(f"{path}, column 'query'", 0, 0, f"ids as in fit, {expected}", f"dtype {asked.dtype}")
        return found

    def rank(self, model: Any, partition: RowGroup, top: int) -> tuple[Rankings, int]:
        """Rank the items for the queries that the model knows."""
        asked = ParquetRows((), None, "query").ids(partition)
        known = np.isin(asked, model.query_ids_)
        return model.rank(asked[known], min(top, len(model.item_ids_))), int(np.sum(~known))


KINDS: dict[str, type[Kind]] = {
    "MarginRanker": RowsOfLists,
    "MatchingRanker": RowsOfLists,
    "BestFeatureRanker": RowsOfLists,
    "LatentRanker": QueriesOfCatalogue,
}
"""By the name that a model file has for its estimator."""


def rank(workers: Workers, model: str | Path, data: str | Path, out: str | Path, top: int = 10) -> int:
    """Rank Parquet files to a folder of Parquet files; return how many lines there are.

    Parameters
    ----------
    workers
        Of an open :func:`slatewise.cluster.ray`.
    model
        A model file, which every worker must find under this name.
    data
        A Parquet file, or a folder of them. Rows to rank have the columns qid and the model's features; queries of a
        :class:`~slatewise.LatentRanker` a column query.
    out
        A folder: new, or of a run of the same model and data that did not end, which goes on.
    top
        How many items of each list to keep.
    """
    from slatewise import load

    workers.require_open()
    top, model, folder = whole_number("top", top, 1), str(Path(model).absolute()), Path(out).absolute()
    estimator = load(model)
    name = type(estimator).__name__
    if name not in KINDS:
        raise ValueError(f"model: expected one of {', '.join(KINDS)} on a cluster, found a {name}")
    paths, kind = parquet_files(Path(data)), KINDS[name]()
    digest = sha256(Path(model).read_bytes()).hexdigest()
    partitions = kind.partitions(estimator, paths, Executor.of(None))
    said = _manifest(digest, paths, top, len(partitions))
    is_complete = _begun(folder, said)
    left = [(at, one) for at, one in enumerate(partitions) if not _part(folder, at).exists()]
    job = Job(model, digest, top, str(folder), kind)
    for _ in track(workers.each(_ranked, job, left), "partition", len(left)):
        pass
    n_lines, n_unknown = _counted(folder, len(partitions))
    if _manifest(digest, paths, top, len(partitions)) != said:
        raise DataError(
            str(data), 0, 0, f"files that stay as they are (remove {folder} to begin anew)", "others by now"
        )
    if n_unknown:
        warnings.warn(f"{data}: {n_unknown} queries are unknown to the model and get no list", stacklevel=2)
    if not is_complete:
        _write_manifest(folder, {**said, "complete": True, "lines": n_lines})
    return n_lines


def parquet_files(data: Path) -> list[str]:
    """Return the file, or the files of a folder by name."""
    if not data.exists():
        raise FileNotFoundError(f"data: expected a Parquet file or a folder of them, found no {data}")
    found = sorted(data.glob("*.parquet")) if data.is_dir() else [data]
    if not found:
        raise DataError(str(data), 0, 0, "Parquet files in the folder", "none")
    for path in found:
        if path.is_dir():
            raise DataError(str(path), 0, 0, "a Parquet file", "a folder")
    return [str(path.absolute()) for path in found]


def _manifest(model_sha256: str, paths: Sequence[str], top: int, n_partitions: int) -> dict[str, Any]:
    seen = [(path, Path(path).stat()) for path in paths]
    return {
        "library": f"slatewise {__version__}",
        "model": model_sha256,
        "data": [[path, one.st_size, one.st_mtime_ns] for path, one in seen],
        "top": top,
        "partitions": n_partitions,
        "complete": False,
    }


def _begun(folder: Path, said: dict[str, Any]) -> bool:
    """Begin a folder, or see that it is of the same run; return whether that one is complete."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        _require_only(folder, set())
        _require_writable(folder)
        if _first(folder, said):
            return False
    found = _said_in(manifest)
    differing = [name for name in said if name != "complete" and found.get(name) != said[name]]
    if differing:
        raise FileExistsError(
            f"out: expected a new folder, or a run of the same model and data to go on with, found another "
            f"{', '.join(differing)} in {manifest}"
        )
    _require_only(folder, {MANIFEST, *(_part(folder, at).name for at in range(said["partitions"]))})
    is_complete = found.get("complete") is True
    if not is_complete:
        _require_writable(folder)
    return is_complete


def _require_only(folder: Path, ours: set[str]) -> None:
    """Raise FileExistsError where there are other files: whoever reads the folder would take them for answers."""
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in there if not name.startswith(".") and name not in ours]
    if others:
        kind = "only the files of this run" if ours else "a new or an empty folder"
        raise FileExistsError(f"out: expected {kind}, found files in {folder}: {others[0]}")


def _first(folder: Path, said: dict[str, Any]) -> bool:
    """Write the manifest of a run that begins; return False where another run began in the same moment."""
    try:
        _write_manifest(folder, said, new=True)
    except FileExistsError:
        return False
    return True


def _said_in(manifest: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(manifest.read_bytes())
    except ValueError as error:
        found = error
    if not isinstance(found, dict):
        raise DataError(str(manifest), 0, 0, "the manifest of a run (remove the folder to begin anew)", str(found))
    return cast("dict[str, Any]", found)


def _require_writable(folder: Path) -> None:
    """Make the folder, and write to it once, before anything is ranked."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\n")
    except OSError as error:
        raise type(error)(f"out: expected a folder that can be written to, found {folder}: {error.strerror}") from None


def _write_manifest(folder: Path, said: dict[str, Any], *, new: bool = False) -> None:
    with atomic_file(folder / MANIFEST, new=new) as file:
        file.write(json.dumps(said, indent=1).encode())


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.parquet"


def _counted(folder: Path, n_partitions: int) -> Counts:
    """Count what all files have, whichever run wrote them."""
    from slatewise.data.parquet import row_groups

    parts = [row_groups(str(_part(folder, at))) for at in range(n_partitions)]
    return Counts(sum(sum(part.sizes) for part in parts), sum(int(part.notes.get(_UNKNOWN, 0)) for part in parts))


def _ranked(job: Job, partition: tuple[int, Any]) -> None:
    """Rank one partition in a worker, and write its file."""
    from slatewise.data.parquet import write_columns

    number, what = partition
    found, n_unknown = job.kind.rank(loaded(job.model, job.model_sha256), what, job.top)
    starts = np.repeat(np.arange(len(found.query_ids)), found.lengths)
    columns = {
        "qid": found.query_ids[starts],
        "doc_id": found.ids.reshape(-1),
        "rank": (found.places() + 1).astype(np.int32),
        "score": found.scores.reshape(-1),
    }
    with atomic_path(_part(Path(job.out), number)) as temporary:
        write_columns(temporary, columns, {_UNKNOWN: str(n_unknown)})


@lru_cache(maxsize=1)
def loaded(path: str, expected: str) -> Any:
    """Load the model that the driver saw, for one thread: every worker has a core of its own."""
    from slatewise import load

    found = sha256(Path(path).read_bytes()).hexdigest()
    if found != expected:
        raise ValueError(f"{path}: expected the file that the driver found, found another one on a worker")
    model: Any = load(path)
    cast("dict[str, Any]", vars(model)).pop(
        "feature_names_in_", None
    )  # columns were read by them, and come as an array
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model
