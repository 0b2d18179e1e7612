"""Graded rows, gathered list by list: what a ranker of documents learns from."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Floats, Ints
from slatewise.core.checks import Features, real_numbers, require_in_range
from slatewise.core.groups import Groups, group_rows, take_rows, used_columns
from slatewise.persistence.file import ModelCard
from slatewise.persistence.saving import card_for


@dataclass(frozen=True, eq=False)
class GradedLists:
    """List l owns the rows ``offsets[l]:offsets[l + 1]`` and counts ``weight[l]``."""

    X: Features
    """float64, dense or CSR; of CSR without the columns that are empty."""
    y: Floats
    offsets: Ints
    weight: Floats
    n_features: int
    columns: Ints | None = None
    """Which features the columns of X are; None: all."""

    @classmethod
    def of(cls, X: Features, y: Floats, groups: Groups, weight: Floats | None) -> GradedLists:
        """Gather the rows; lists of weight 0 are left out, and weigh nothing in any way."""
        n_lists, n_features = len(groups.ids), int(X.shape[1])
        rows = X if groups.order is None else take_rows(X, groups.order)
        counts = np.ones(n_lists) if weight is None else weight
        whole = cls(rows.astype(np.float64), groups.gather(y), groups.offsets, counts, n_features)
        lists = whole.keep(counts > 0.0)
        if isinstance(lists.X, np.ndarray):
            return lists
        narrow, columns = used_columns(lists.X)
        return replace(lists, X=narrow, columns=columns)

    @classmethod
    def with_unit_weights(cls, X: Features, y: Floats, offsets: Ints) -> GradedLists:
        """Take lists as they stand, all of the same weight."""
        return cls(X, y, offsets, np.ones(len(offsets) - 1), int(X.shape[1]))

    def __len__(self) -> int:
        return len(self.weight)

    def keep(self, kept: NDArray[np.bool_]) -> GradedLists:
        """Return some of the lists."""
        if kept.all():
            return self
        rows, sizes = np.repeat(kept, np.diff(self.offsets)), np.diff(self.offsets)[kept]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return replace(self, X=take_rows(self.X, rows), y=self.y[rows], offsets=offsets, weight=self.weight[kept])

    def all_features(self, params: Floats) -> Floats:
        """Return one weight per feature, of those per column: 0 where a feature has no entry."""
        if self.columns is None:
            return params
        full = np.zeros(self.n_features)
        full[self.columns] = params
        return full


def group_lists(n_rows: int, qid: ArrayLike | None, group: ArrayLike | None) -> Groups:
    """Gather rows by query id; without ids all rows are one list, which is a warning."""
    warn_of_one_list(n_rows, qid, group, stacklevel=4)
    return group_rows(qid, n_rows, group)


def warn_of_one_list(n_rows: int, qid: ArrayLike | None, group: ArrayLike | None, stacklevel: int = 3) -> None:
    """Warn that rows without query ids are one list: a forgotten ``qid`` looks just like it."""
    if qid is None and group is None and n_rows > 1:
        warnings.warn(
            f"all {n_rows} rows are one list without qid: pass qid, one id per row, or group=[{n_rows}] if they are",
            UserWarning,
            stacklevel=stacklevel,
        )


def card_of_lists(rows: Features, relevance: Floats, groups: Groups, weight: Floats | None) -> ModelCard:
    """Describe the data of a fit, with its hash."""
    order = np.arange(len(relevance)) if groups.order is None else groups.order
    where = [relevance, groups.offsets, order] if weight is None else [relevance, groups.offsets, order, weight]
    if isinstance(rows, np.ndarray):
        return card_for(len(groups.ids), rows, *where)
    return card_for(len(groups.ids), *where, rows.data, rows.indices, rows.indptr, np.array(rows.shape))


def list_weights(sample_weight: ArrayLike | None, groups: Groups) -> Floats | None:
    """Return one weight per list from one per row, of which a list takes the mean, or one per list; None: all alike.

    Lists are in the order in which they first appear.

    Examples
    --------
    >>> from slatewise.core.groups import group_rows
    >>> groups = group_rows(["a", "b", "a"], 3)
    >>> list_weights([1, 5, 3], groups).tolist(), list_weights([0.5, 2], groups).tolist()
    ([2.0, 5.0], [0.5, 2.0])
    """
    if sample_weight is None:
        return None
    n_rows, n_lists = int(groups.offsets[-1]), len(groups.ids)
    weight = real_numbers("sample_weight", sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_lists, float(weight))
    if weight.shape not in ((n_rows,), (n_lists,)):
        raise ValueError(
            f"sample_weight: expected one weight per row, shape ({n_rows},), or per list, shape ({n_lists},), "
            f"found shape {weight.shape}"
        )
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"sample_weight: expected finite numbers >= 0, found {weight[at]} at {at}")
    require_in_range("sample_weight", weight)
    if len(weight) == n_rows:
        weight = np.add.reduceat(groups.gather(weight), groups.offsets[:-1]) / np.diff(groups.offsets)
    if not weight.any():
        raise ValueError("sample_weight: expected a weight > 0 in some list, found zero weight in all")
    return weight
