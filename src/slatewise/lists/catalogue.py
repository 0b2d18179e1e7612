"""Lists over one shared catalogue: every query ranks all the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from slatewise.lists.checks import (
    BLOCK_BYTES,
    Features,
    Float,
    Int,
    cut_points,
    feature_rows,
    relevance_rows,
    row_range,
    sparse_range,
)
from slatewise.lists.targets import check_k, check_weight

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.lists.checks import Sparse


@dataclass(frozen=True, eq=False)
class CatalogueLists:
    """Queries against a shared catalogue: list l ranks all items for ``queries[l]``, ``relevance[l]`` is wanted.

    Make one with :meth:`from_features`, which checks the numbers. Scores, one a query and item, are what takes
    memory, so ``blocks`` counts their bytes; they are made block by block and never kept whole.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> lists = CatalogueLists.from_features(np.eye(3), np.ones((4, 3)), csr_array((3, 4)))
    >>> [block.rows.tolist() for block in lists.blocks(max_bytes=2 * 4 * 8)]
    [[0, 1], [2]]
    """

    queries: Features
    catalogue: Features
    relevance: csr_array
    rows: Int
    """Query numbers: where the queries stood in the input."""
    k: Int | None = None
    weight: Float | None = None

    def __post_init__(self) -> None:
        shape = (self.queries.shape[0], self.catalogue.shape[0])
        if self.relevance.shape != shape:
            raise ValueError(f"relevance: expected shape {shape} (queries, items), found {self.relevance.shape}")

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def from_features(
        cls,
        queries: ArrayLike | Sparse,
        catalogue: ArrayLike | Sparse,
        relevance: Sparse,
        *,
        k: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> CatalogueLists:
        """Check and convert; ``relevance`` has a row a query and a column an item, ``k`` and ``weight`` one a query."""
        asked, offered = feature_rows("queries", queries), feature_rows("catalogue", catalogue)
        n = int(asked.shape[0])
        return cls(
            asked,
            offered,
            relevance_rows(relevance),
            np.arange(n, dtype=np.int64),
            None if k is None else check_k(k, n),
            None if weight is None else check_weight(weight, n),
        )

    def blocks(self, max_bytes: int = BLOCK_BYTES) -> tuple[CatalogueLists, ...]:
        """Cut into runs of queries whose scores against the whole catalogue take at most ``max_bytes``."""
        itemsize = np.result_type(self.queries.dtype, self.catalogue.dtype).itemsize
        bytes_at = itemsize * int(self.catalogue.shape[0]) * np.arange(len(self) + 1, dtype=np.int64)
        return tuple(self._cut(slice(first, last)) for first, last in cut_points(bytes_at, max_bytes))

    def _cut(self, rows: slice) -> CatalogueLists:
        return CatalogueLists(
            row_range(self.queries, rows),
            self.catalogue,
            sparse_range(self.relevance, rows),
            self.rows[rows],
            None if self.k is None else self.k[rows],
            None if self.weight is None else self.weight[rows],
        )
