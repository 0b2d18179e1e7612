"""Item vectors of a LatentRanker as an index of approximate nearest neighbours."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from slatewise.core.executor import Executor
from slatewise.core.files import atomic_path
from slatewise.latent.tables import Singles


def write_index(path: str | os.PathLike[str], vectors: Singles, executor: Executor) -> None:
    """Write a usearch index of inner products; a vector's key is its row number."""
    try:
        usearch: Any = import_module("usearch.index")
    except ImportError as error:
        raise ImportError("an index needs usearch: pip install 'slatewise[ann]'") from error
    index = usearch.Index(ndim=int(vectors.shape[1]), metric="ip", dtype="f32")
    index.add(np.arange(len(vectors)), vectors, threads=executor.n_threads)
    with atomic_path(path) as temporary:
        index.save(str(temporary))
