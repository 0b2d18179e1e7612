"""What a GraphMatcher refuses: graphs and matchings that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.checks import LARGEST, numbers, require_in_range

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def check_graphs(edge_features: Iterable[ArrayLike], n_features: int | None = None) -> list[Floats]:
    """Return contiguous (M, N, d) arrays of finite numbers, with the same d in all."""
    graphs: list[Floats] = []
    for place, given in enumerate(edge_features):
        name = f"edge_features[{place}]"
        graph = numbers(name, given, 3).astype(np.float64)
        if 0 in graph.shape:
            raise ValueError(f"{name}: expected at least one row, one column and one feature, found {graph.shape}")
        n_features = graph.shape[2] if n_features is None else n_features
        if graph.shape[2] != n_features:
            raise ValueError(f"{name}: expected {n_features} features per edge, found {graph.shape[2]}")
        if not np.isfinite(graph).all():
            row, column, feature = np.argwhere(~np.isfinite(graph))[0].tolist()
            found = graph[row, column, feature]
            raise ValueError(f"{name}: expected finite numbers, found {found} at edge ({row}, {column})")
        require_in_range(name, graph)
        graphs.append(graph)
    return graphs


def check_matches(matches: Iterable[ArrayLike], graphs: list[Floats]) -> list[Ints]:
    """Return one column per row, -1 where it has none; no column twice."""
    given = list(matches)
    if len(given) != len(graphs):
        raise ValueError(f"matches: expected one matching per graph, {len(graphs)}, found {len(given)}")
    return [_matching(f"matches[{place}]", one, graphs[place]) for place, one in enumerate(given)]


def _matching(name: str, given: ArrayLike, graph: Floats) -> Ints:
    n_rows, n_columns, _ = graph.shape
    columns: NDArray[Any] = np.asarray(given)
    if columns.shape != (n_rows,):
        raise ValueError(f"{name}: expected one column per row, shape ({n_rows},), found shape {columns.shape}")
    if columns.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected whole numbers, found dtype {columns.dtype}")
    if columns.min() < -1 or columns.max() >= n_columns:
        wrong = columns[(columns < -1) | (columns >= n_columns)][0]
        raise ValueError(f"{name}: expected columns from 0 to {n_columns - 1}, or -1 for none, found {wrong}")
    taken = np.bincount(columns[columns >= 0].astype(np.int64), minlength=n_columns)
    if taken.max() > 1:
        raise ValueError(f"{name}: expected each column at most once, found {taken.argmax()} for {taken.max()} rows")
    return columns.astype(np.int64)


def require_possible(graphs: list[Floats]) -> None:
    """Refuse graphs with more rows than columns: for models in which no row may stay unmatched."""
    for place, graph in enumerate(graphs):
        if graph.shape[0] > graph.shape[1]:
            raise ValueError(
                f"edge_features[{place}]: expected no more rows than columns, because every row has to be matched, "
                f"found {graph.shape[0]} and {graph.shape[1]}; with unmatched= a number rows may stay unmatched"
            )


def edge_weights(place: int, graph: Floats, coef: Floats) -> Floats:
    """Return ``w = <x, theta>`` of one graph, and refuse features so large that sums of it could leave the range."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = graph @ coef
    largest = float(np.abs(weights).max())
    if not largest <= LARGEST:
        raise ValueError(f"edge_features[{place}]: expected weights <x, theta> of at most {LARGEST:g}, found {largest}")
    return weights


def require_known(log_z: list[float]) -> Floats:
    """Refuse an unknown log Z: a chain of swaps gives none."""
    if np.isnan(log_z).any():
        raise ValueError("expectation: expected 'exact' or 'bethe' for a likelihood of large graphs, found 'sample'")
    return np.array(log_z)
