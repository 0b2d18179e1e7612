"""Lists of items, each item a row of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.lists.checks import (
    BLOCK_BYTES,
    Features,
    Int,
    bytes_before,
    check_offsets,
    cut_points,
    feature_rows,
    numbers,
    relevance_rows,
    require_finite,
    row_range,
)
from slatewise.lists.groups import Groups, group_rows
from slatewise.lists.targets import Targets

if TYPE_CHECKING:
    from slatewise.lists.checks import Sparse


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of items: list l is called ``ids[l]`` and owns the rows ``offsets[l]:offsets[l + 1]``.

    Make one with :meth:`from_rows`, :meth:`from_csr` or :meth:`from_padded`, which check the numbers. The arrays are
    in list order; ``rows`` says where each row stood in the input, whose shape was ``input_shape``.

    Examples
    --------
    >>> lists = Lists.from_rows([[0.1], [0.7], [0.3]], y=[0, 1, 2], qid=["b", "a", "b"])
    >>> lists.ids.tolist(), lists.offsets.tolist(), lists.targets.relevance.tolist()
    (['b', 'a'], [0, 2, 3], [0, 2, 1])
    >>> lists.scatter(np.array([10.0, 30.0, 20.0])).tolist()
    [10.0, 20.0, 30.0]
    """

    features: Features | None
    offsets: Int
    ids: NDArray[Any]
    rows: Int
    input_shape: tuple[int, ...]
    targets: Targets | None = None
    items: Int | None = None
    """Catalogue numbers of the rows, where the lists came from a matrix of lists by items."""

    def __post_init__(self) -> None:
        check_offsets(self.offsets, len(self.rows))
        if self.features is not None and self.features.shape[0] != len(self.rows):
            raise ValueError(f"features: expected {len(self.rows)} rows, found {self.features.shape[0]}")
        if len(self.ids) != len(self):
            raise ValueError(f"ids: expected {len(self)} ids, found {len(self.ids)}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike | Sparse,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        k: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
    ) -> Lists:
        """Gather the rows of X by ``qid`` (in any order; None: one list).

        ``y`` and ``known`` hold one value a row; ``k`` and ``weight`` one a list, in the order in which lists first
        appear, or one for all.
        """
        features = feature_rows("X", X)
        n_rows = int(features.shape[0])
        groups = group_rows(qid, n_rows)
        rows = np.arange(n_rows, dtype=np.int64) if groups.order is None else groups.order
        gathered = features if groups.order is None else features[groups.order]
        if y is None and not (k is None and weight is None and known is None):
            raise ValueError("y: expected a value for every row, because k, weight or known is given, found None")
        targets = None if y is None else Targets.gathered(y, groups, k=k, weight=weight, known=known)
        return cls(gathered, groups.offsets, groups.ids, rows, (n_rows,), targets)

    @classmethod
    def from_csr(cls, relevance: Sparse, *, k: ArrayLike | None = None, weight: ArrayLike | None = None) -> Lists:
        """Make a list of every row of a sparse matrix of lists by items: its stored entries, zeros among them.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> lists = Lists.from_csr(csr_array([[0, 2, 1], [0, 0, 0], [3, 0, 0]]))
        >>> lists.offsets.tolist(), lists.items.tolist(), lists.targets.relevance.tolist()
        ([0, 2, 2, 3], [1, 2, 0], [2, 1, 3])
        """
        matrix = relevance_rows(relevance)
        offsets = matrix.indptr.astype(np.int64)
        n_rows = int(offsets[-1])
        groups = Groups(None, offsets, np.arange(len(offsets) - 1))
        targets = Targets.gathered(matrix.data, groups, k=k, weight=weight)
        rows = np.arange(n_rows, dtype=np.int64)
        return cls(None, offsets, groups.ids, rows, (n_rows,), targets, matrix.indices.astype(np.int64))

    @classmethod
    def from_padded(
        cls,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        k: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> Lists:
        """Drop the padding of X (n, m, d) and y (n, m): keep where ``mask`` is True, or the first ``lengths[l]``.

        Examples
        --------
        >>> lists = Lists.from_padded(np.ones((2, 3, 1)), [[5, 4, 0], [3, 0, 0]], lengths=[2, 1])
        >>> lists.offsets.tolist(), lists.targets.relevance.tolist()
        ([0, 2, 3], [5, 4, 3])
        >>> lists.scatter(lists.targets.relevance, fill=-1).tolist()
        [[5, 4, -1], [3, -1, -1]]
        """
        padded = numbers("X", X, 3)
        n, m, d = (int(size) for size in padded.shape)
        keep = _kept(n, m, mask, lengths)
        rows = np.flatnonzero(keep)
        features = padded.reshape(n * m, d)[rows]
        require_finite("X", features, lambda row: f"list {rows[row] // m}, position {rows[row] % m}")
        offsets = np.concatenate(([0], np.cumsum(keep.sum(axis=1)))).astype(np.int64)
        groups = Groups(None, offsets, np.arange(n, dtype=np.int64))
        targets = None
        if y is not None:
            wanted = numbers("y", y, 2)
            if wanted.shape != (n, m):
                raise ValueError(f"y: expected shape {(n, m)}, found shape {wanted.shape}")
            require_finite("y", np.where(keep, wanted, 0), lambda row: f"list {row}")
            targets = Targets.gathered(np.asarray(y).reshape(-1)[rows], groups, k=k, weight=weight)
        return cls(features, offsets, groups.ids, rows, (n, m), targets)

    def blocks(self, max_bytes: int = BLOCK_BYTES) -> tuple[Lists, ...]:
        """Cut into runs of whole lists whose features take at most ``max_bytes`` (a longer list stands alone)."""
        ends = bytes_before(self.features, len(self.rows))[self.offsets]
        return tuple(self._cut(first, last) for first, last in cut_points(ends, max_bytes))

    def scatter(self, values: NDArray[Any], fill: float | None = None) -> NDArray[Any]:
        """Put one value a row back where the rows stood in the input; ``fill`` goes where these lists have no row."""
        if len(values) != len(self.rows):
            raise ValueError(f"values: expected {len(self.rows)}, one a row, found {len(values)}")
        size = int(np.prod(self.input_shape))
        if fill is None and size != len(self.rows):
            raise ValueError(f"fill: expected a number, because {size - len(self.rows)} input rows are not here")
        dtype = values.dtype if fill is None else np.result_type(values, fill)
        out = np.full((size, *values.shape[1:]), 0 if fill is None else fill, dtype=dtype)
        out[self.rows] = values
        return out.reshape(*self.input_shape, *values.shape[1:])

    def _cut(self, first: int, last: int) -> Lists:
        lists, rows = slice(first, last), slice(int(self.offsets[first]), int(self.offsets[last]))
        return Lists(
            None if self.features is None else row_range(self.features, rows),
            self.offsets[first : last + 1] - self.offsets[first],
            self.ids[lists],
            self.rows[rows],
            self.input_shape,
            None if self.targets is None else self.targets.cut(lists, rows),
            None if self.items is None else self.items[rows],
        )


def _kept(n: int, m: int, mask: ArrayLike | None, lengths: ArrayLike | None) -> NDArray[np.bool_]:
    if mask is not None and lengths is not None:
        raise ValueError("mask: expected either mask or lengths, found both")
    if mask is not None:
        keep = np.asarray(mask)
        if keep.shape != (n, m) or keep.dtype != np.bool_:
            raise ValueError(f"mask: expected booleans of shape {(n, m)}, found {keep.dtype} of shape {keep.shape}")
        return keep
    if lengths is None:
        return np.ones((n, m), dtype=np.bool_)
    sizes = np.asarray(lengths)
    if sizes.shape != (n,) or sizes.dtype.kind not in "iu" or (sizes < 0).any() or (sizes > m).any():
        raise ValueError(f"lengths: expected {n} whole numbers from 0 to {m}, found {sizes}")
    return np.arange(m) < sizes[:, None]
