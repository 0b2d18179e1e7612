"""Item vectors as an index of nearest neighbors: items equally long, so that the nearest by angle score most.

    [x_q ; 0] . [z_d ; sqrt(M^2 - |z_d|^2)]  =  x_q . z_d ,        M the largest |z_d|

A graph of neighbors built by inner products alone leads to the longest items from everywhere and misses others.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.core.files import atomic_path
from slatewise.core.running.executor import Executor


def equally_long(items: Singles) -> Singles:
    """Add the column that fills each row up to the length of the longest.

    Examples
    --------
    >>> equally_long(np.array([[3.0, 4.0], [0.0, 3.0]], dtype=np.float32)).tolist()
    [[3.0, 4.0, 0.0], [0.0, 3.0, 4.0]]
    """
    squares = (items.astype(np.float64) ** 2).sum(axis=1)
    return np.column_stack([items, np.sqrt(squares.max() - squares).astype(np.float32)])


def against_equally_long(queries: Singles) -> Singles:
    """Add the zeros that leave scores as they are."""
    return np.pad(queries, ((0, 0), (0, 1)))


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
