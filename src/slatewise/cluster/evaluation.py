"""Measure a model on Parquet files: workers measure lists, and the mean is taken over all of them in their order."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slatewise.cluster.batch import KINDS, Lists, RowsOfLists, loaded, parquet_files
from slatewise.cluster.workers import Workers
from slatewise.core.running.executor import Executor
from slatewise.core.running.progress import track
from slatewise.metrics.measure import Measure, mean


class _Job(NamedTuple):
    model: str
    model_sha256: str
    measures: tuple[Measure, ...]


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
    from slatewise import load

    workers.require_open()
    if not measures:
        raise ValueError("measures: expected at least one, found none")
    for measure in measures:
        if not isinstance(measure, Measure):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"measures: expected such as metrics.NDCG(k=10), found {measure!r}")
    model = str(Path(model).absolute())
    estimator = load(model)
    name = type(estimator).__name__
    known = [one for one, kind in KINDS.items() if kind is RowsOfLists]
    if name not in known:
        raise ValueError(f"model: expected one of {', '.join(known)} to be measured on a cluster, found a {name}")
    partitions = RowsOfLists().partitions(estimator, parquet_files(Path(data)), Executor.of(None), judged=True)
    job = _Job(model, sha256(Path(model).read_bytes()).hexdigest(), tuple(measures))
    found = dict(track(workers.each(_measured, job, partitions), "partition", len(partitions)))
    values = np.concatenate([found[number] for number in range(len(partitions))], axis=1)
    return [mean(of_lists) for of_lists in values]


def _measured(job: _Job, lists: Lists) -> NDArray[np.float64]:
    """Return the measures of the lists of a partition, (measures, lists); a row is called by its number among all."""
    source, first, offsets, _ = lists
    rows = source.read(first, first + int(offsets[-1]))
    model: Any = loaded(job.model, job.model_sha256)
    scores, ids = model.predict(rows.X), np.arange(first, first + len(rows.y)).astype(np.str_)
    sizes = np.diff(offsets)
    return np.array([measure.per_list(rows.y, scores, ids=ids, group=sizes) for measure in job.measures])
