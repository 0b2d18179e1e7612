"""Rank and measure Parquet files on a cluster: partitions of queries in, partitions of lists or figures out.

A partition is a row group of the data, with the rest of the query that its end cuts. Its lists are one file, which
appears whole or not at all and does not depend on the worker, so that every list is written exactly once. The manifest
names the model and the data of a folder; a run that was killed continues with the partitions that have no file.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._registry import ESTIMATORS, Data
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
from slatewise.metrics.measure import Measure, mean

Ids: TypeAlias = NDArray[Any]
MANIFEST = "manifest.json"
_UNKNOWN = "queries unknown to the model"


class ModelFile(NamedTuple):
    """A model file, and the digest by which workers check that they find the same."""

    path: str
    sha256: str


class Lists(NamedTuple):
    """Whole lists of rows: consecutive rows of a source, the offsets of the lists in them, and their ids."""

    source: RowSource
    first_row: int
    offsets: NDArray[np.int64]
    ids: Ids


class RowsOfLists:
    """Rows with query ids: the columns qid and features, and labels that only ``evaluate`` reads."""

    def partitions(
        self, model: Any, paths: Sequence[str], executor: Executor, *, labelled: bool = False
    ) -> Sequence[Lists]:
        """Return the lists that begin in each row group; with ``labelled`` there must be a column label.

        Features are the columns that the model knows by name, else all except qid and label, in their order.
        """
        names = getattr(model, "feature_names_in_", None)
        source = RowSource.to_rank(paths, "qid", "label", None if names is None else names.tolist(), judged=labelled)
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
        """Rank the rows of every list, named by their number among all rows."""
        source, first, offsets, ids = partition
        rows = source.read(first, first + int(offsets[-1]))
        names = np.arange(first, first + len(rows.y))
        return model.rank(rows.X, np.repeat(ids, np.diff(offsets)), doc_ids=names).top(top), 0

    def measure(self, model: Any, partition: Lists, measures: Sequence[Measure]) -> NDArray[np.float64]:
        """Return the measures of the lists, (measures, lists)."""
        source, first, offsets, _ = partition
        rows = source.read(first, first + int(offsets[-1]))
        scores, ids = model.predict(rows.X), np.arange(first, first + len(rows.y)).astype(np.str_)
        sizes = np.diff(offsets)
        return np.array([measure.per_list(rows.y, scores, ids=ids, group=sizes) for measure in measures])


class QueriesOfCatalogue:
    """Query ids in a column called query: each ranks all items of the model."""

    def partitions(self, model: Any, paths: Sequence[str], executor: Executor) -> Sequence[RowGroup]:
        """Return the row groups; the schema of a file shows whether its ids are of the model's type."""
        from slatewise.data.frames import ids_of
        from slatewise.data.parquet import row_groups

        del executor
        found = groups_of(paths, "query")
        for path in dict.fromkeys(group.path for group in found):
            ids = ids_of(row_groups(path).nothing["query"], path, 0)
            if ids.dtype.kind != model.query_ids_.dtype.kind:
                expected = "strings" if model.query_ids_.dtype.kind == "U" else "whole numbers"
                raise DataError(f"{path}, column 'query'", 0, 0, f"ids as in fit, {expected}", f"dtype {ids.dtype}")
        return found

    def rank(self, model: Any, partition: RowGroup, top: int) -> tuple[Rankings, int]:
        """Rank the items for the queries that the model knows."""
        ids = ParquetRows((), None, "query").ids(partition)
        known = np.isin(ids, model.query_ids_)
        return model.rank(ids[known], min(top, len(model.item_ids_))), int(np.sum(~known))


Kind: TypeAlias = RowsOfLists | QueriesOfCatalogue
_BY_DATA: Mapping[Data, type[Kind]] = {"lists": RowsOfLists, "pairs": QueriesOfCatalogue}
KINDS = {name: _BY_DATA[row.data] for name, row in ESTIMATORS.items() if row.command and row.data in _BY_DATA}
"""By the name of the estimator."""


class RankJob(NamedTuple):
    """What all partitions of a ranking share."""

    model: ModelFile
    top: int
    out: str
    kind: Kind


def rank(workers: Workers, model: str | Path, data: str | Path, out: str | Path, top: int = 10) -> int:
    """Rank Parquet files to a folder of Parquet files; return the number of lines.

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
        A new folder, or that of an unfinished run of the same model and data, which is continued.
    top
        The number of items of each list to keep.
    """
    workers.require_open()
    top, folder = whole_number("top", top, 1), Path(out).absolute()
    file, estimator = _model_file(model)
    name = type(estimator).__name__
    if name not in KINDS:
        raise ValueError(f"model: expected one of {', '.join(KINDS)} on a cluster, found a {name}")
    paths, kind = parquet_files(Path(data)), KINDS[name]()
    partitions = kind.partitions(estimator, paths, Executor.of(None))
    manifest = _manifest(file.sha256, paths, top, len(partitions))
    is_complete = _start_folder(folder, manifest)
    left = [(at, one) for at, one in enumerate(partitions) if not _part(folder, at).exists()]
    job = RankJob(file, top, str(folder), kind)
    for _ in track(workers.each(_rank_partition, job, left), "partition", len(left)):
        pass
    n_lines, n_unknown = _count_lines(folder, len(partitions))
    if _manifest(file.sha256, paths, top, len(partitions)) != manifest:
        raise DataError(
            str(data), 0, 0, f"files that stay as they are (remove {folder} to begin anew)", "others by now"
        )
    if n_unknown:
        warnings.warn(f"{data}: {n_unknown} queries are unknown to the model and get no list", stacklevel=2)
    if not is_complete:
        _write_manifest(folder, {**manifest, "complete": True, "lines": n_lines})
    return n_lines


def evaluate(workers: Workers, model: str | Path, data: str | Path, measures: Sequence[Measure]) -> list[float]:
    """Return the mean over lists of each measure, for a ranker of rows.

    Parameters
    ----------
    workers
        Of an open :func:`slatewise.cluster.ray`.
    model
        A model file, which every worker must find under this name.
    data
        A Parquet file, or a folder of them, with the columns qid, label and the model's features.
    measures
        As ``[metrics.NDCG(k=10)]``.
    """
    workers.require_open()
    if not measures:
        raise ValueError("measures: expected at least one, found none")
    for measure in measures:
        if not isinstance(measure, Measure):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"measures: expected such as metrics.NDCG(k=10), found {measure!r}")
    file, estimator = _model_file(model)
    name = type(estimator).__name__
    known = [one for one, kind in KINDS.items() if kind is RowsOfLists]
    if name not in known:
        raise ValueError(f"model: expected one of {', '.join(known)} to be measured on a cluster, found a {name}")
    partitions = RowsOfLists().partitions(estimator, parquet_files(Path(data)), Executor.of(None), labelled=True)
    job = file, tuple(measures)
    found = dict(track(workers.each(_measure_partition, job, partitions), "partition", len(partitions)))
    values = np.concatenate([found[number] for number in range(len(partitions))], axis=1)
    return [mean(of_lists) for of_lists in values]


def _model_file(model: str | Path) -> tuple[ModelFile, Any]:
    """Load a model; also return its file with the digest."""
    from slatewise import load

    path = str(Path(model).absolute())
    estimator = load(path)
    return ModelFile(path, sha256(Path(path).read_bytes()).hexdigest()), estimator


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


def _start_folder(folder: Path, manifest: dict[str, Any]) -> bool:
    """Start a folder, or check that it belongs to the same run; return whether that run is complete."""
    path = folder / MANIFEST
    if not path.exists():
        _require_only(folder, set())
        _require_writable(folder)
        with suppress(FileExistsError):  # another run has started at the same moment
            _write_manifest(folder, manifest, new=True)
            return False
    try:
        found: Any = json.loads(path.read_bytes())
    except ValueError as error:
        found = error
    if not isinstance(found, dict):
        raise DataError(str(path), 0, 0, "the manifest of a run (remove the folder to begin anew)", str(found))
    before = cast("dict[str, Any]", found)
    differing = [name for name in manifest if name != "complete" and before.get(name) != manifest[name]]
    if differing:
        raise FileExistsError(
            f"out: expected a new folder, or a run of the same model and data to go on with, found another "
            f"{', '.join(differing)} in {path}"
        )
    _require_only(folder, {MANIFEST, *(_part(folder, at).name for at in range(manifest["partitions"]))})
    is_complete = before.get("complete") is True
    if not is_complete:
        _require_writable(folder)
    return is_complete


def _require_only(folder: Path, ours: set[str]) -> None:
    """Raise FileExistsError if there are other files, which readers of the folder would take for lists."""
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in there if not name.startswith(".") and name not in ours]
    if others:
        kind = "only the files of this run" if ours else "a new or an empty folder"
        raise FileExistsError(f"out: expected {kind}, found files in {folder}: {others[0]}")


def _require_writable(folder: Path) -> None:
    """Make the folder, and test that it can be written to, before anything is ranked."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\n")
    except OSError as error:
        raise type(error)(f"out: expected a folder that can be written to, found {folder}: {error.strerror}") from None


def _write_manifest(folder: Path, manifest: dict[str, Any], *, new: bool = False) -> None:
    with atomic_file(folder / MANIFEST, new=new) as file:
        file.write(json.dumps(manifest, indent=1).encode())


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.parquet"


def _count_lines(folder: Path, n_partitions: int) -> tuple[int, int]:
    """Return the number of lines and of unknown queries in all files, including those of earlier runs."""
    from slatewise.data.parquet import row_groups

    parts = [row_groups(str(_part(folder, at))) for at in range(n_partitions)]
    return sum(sum(part.sizes) for part in parts), sum(int(part.notes.get(_UNKNOWN, 0)) for part in parts)


def _rank_partition(job: RankJob, partition: tuple[int, Any]) -> None:
    """Rank one partition in a worker, and write its file."""
    from slatewise.data.parquet import write_columns

    number, content = partition
    found, n_unknown = job.kind.rank(load_same(job.model), content, job.top)
    starts = np.repeat(np.arange(len(found.query_ids)), found.lengths)
    columns = {
        "qid": found.query_ids[starts],
        "doc_id": found.ids.reshape(-1),
        "rank": (found.positions() + 1).astype(np.int32),
        "score": found.scores.reshape(-1),
    }
    with atomic_path(_part(Path(job.out), number)) as temporary:
        write_columns(temporary, columns, {_UNKNOWN: str(n_unknown)})


def _measure_partition(job: tuple[ModelFile, tuple[Measure, ...]], partition: Lists) -> NDArray[np.float64]:
    """Measure the lists of one partition in a worker."""
    return RowsOfLists().measure(load_same(job[0]), partition, job[1])


@lru_cache(maxsize=1)
def load_same(file: ModelFile) -> Any:
    """Load the driver's model for one thread, because every worker has one core; refuse another file."""
    from slatewise import load

    path = file.path
    if sha256(Path(path).read_bytes()).hexdigest() != file.sha256:
        raise ValueError(f"{path}: expected the file that the driver found, found another one on a worker")
    model: Any = load(path)
    # Columns were read by these names; scikit-learn would warn of arrays without names.
    cast("dict[str, Any]", vars(model)).pop("feature_names_in_", None)
    return model.set_params(n_jobs=1) if "n_jobs" in model.get_params() else model
