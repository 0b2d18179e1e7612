"""Graphs to match, as blocks of one shape:  w_ij = <x_ij, theta> , and u for a row that stays unmatched.

    w(y) = sum over matched rows i of w_{i, y(i)}  +  u * (number of unmatched rows)          (Petterson et al., eq. 2)

A column may stay free; a row only if there is a score u for it. Parameters are one flat vector: theta, then u if it is
learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slatewise.core.arrays import Floats, Ints
from slatewise.core.groups import blocks

UNMATCHED = -1
_BLOCK_EDGES, _BLOCK_SUBSETS = 1 << 17, 1 << 22
"""Of the graphs of a block that is worked on at a time; of rows, in exact sums."""


@dataclass(frozen=True, eq=False)
class GraphBlock:
    """Graphs of one shape, (B, M, N) edges."""

    X: Floats
    """(B, M, N, d) features of every edge."""
    target: Ints
    """(B, M) the column of each row, -1 if it has none."""
    weight: Floats
    """(B,) the weight of each graph."""
    members: Ints
    """(B,) the graphs' numbers in the list that they came in."""

    def indicator(self, columns: Ints) -> Floats:
        """Return matchings as 0/1 matrices, (B, M, N)."""
        return indicator(columns, self.X.shape[2])

    def cut(self) -> list[GraphBlock]:
        """Cut the graphs into small blocks, by their shape alone."""
        n_graphs, n_rows, n_columns = self.X.shape[:3]
        n = max(1, min(_BLOCK_EDGES // max(n_rows * n_columns, 1), _BLOCK_SUBSETS >> min(n_rows, n_columns)))
        if n >= n_graphs:
            return [self]
        return [
            GraphBlock(self.X[graphs], self.target[graphs], self.weight[graphs], self.members[graphs])
            for graphs in blocks(n_graphs, n)
        ]


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """How parameters score edges and unmatched rows."""

    n_features: int
    unmatched: float | None
    """Given score of an unmatched row; None: every row has to be matched, or the score is learned."""
    learn_unmatched: bool = False

    @property
    def n_params(self) -> int:
        """Length of the parameter vector."""
        return self.n_features + self.learn_unmatched

    def edges(self, params: Floats, block: GraphBlock) -> Floats:
        """Return w, (B, M, N)."""
        return block.X @ params[: self.n_features]

    def unmatched_score(self, params: Floats) -> float | None:
        """Return u; None: no row may stay unmatched."""
        return float(params[-1]) if self.learn_unmatched else self.unmatched

    def accumulate(self, block: GraphBlock, change: Floats) -> Floats:
        """Return ``sum change_bij dw_bij/dparams``, where mass that leaves a row's edges becomes unmatched."""
        along = change.ravel() @ block.X.reshape(-1, self.n_features)
        return np.append(along, -float(change.sum())) if self.learn_unmatched else along

    def matching_features(self, X: Floats, columns: Ints) -> Floats:
        """Return ``dw(y)/dparams`` of matchings (n, M) of one graph with edge features X, (n, n_params)."""
        matched = (columns >= 0)[:, :, None]
        along = np.where(matched, X[np.arange(len(X)), np.maximum(columns, 0)], 0.0).sum(axis=1)
        return np.hstack([along, (~matched).sum(axis=1)]) if self.learn_unmatched else along


def gather_blocks(edge_features: Sequence[Floats], matches: Sequence[Ints]) -> tuple[GraphBlock, ...]:
    """Put graphs of one shape together, shapes in order of first appearance; every graph weighs 1 / their number."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for number, graph in enumerate(edge_features):
        by_shape.setdefault(graph.shape, []).append(number)
    return tuple(
        GraphBlock(
            np.stack([edge_features[number] for number in numbers]),
            np.stack([matches[number] for number in numbers]),
            np.full(len(numbers), 1.0 / len(edge_features)),
            np.array(numbers, dtype=np.int64),
        )
        for numbers in by_shape.values()
    )


def indicator(columns: Ints, n_columns: int) -> Floats:
    """Return matchings (.., M) as 0/1 matrices (.., M, n_columns)."""
    flags = np.zeros((*columns.shape, n_columns))
    np.put_along_axis(flags, np.maximum(columns, 0)[..., None], (columns >= 0)[..., None], axis=-1)
    return flags


def feature_variance(blocks: Sequence[GraphBlock]) -> float:
    """Return the variance of a feature over all edges, the mean of all features; 1 if nothing varies."""
    flat = np.concatenate([block.X.reshape(-1, block.X.shape[-1]) for block in blocks])
    return float(flat.var(axis=0).mean()) or 1.0
