"""What is wanted of the lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.lists.checks import Float, Int
from slatewise.lists.groups import Groups


@dataclass(frozen=True, eq=False)
class Targets:
    """What is wanted of the lists: ``relevance`` and ``known`` one value a row, ``k`` and ``weight`` one a list."""

    relevance: NDArray[Any]
    k: Int | None = None
    weight: Float | None = None
    known: NDArray[np.int8] | None = None
    """1 known to be in, 0 known to be out, -1 unknown."""

    @classmethod
    def gathered(
        cls,
        relevance: ArrayLike,
        groups: Groups,
        *,
        k: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
    ) -> Targets:
        """Check targets given in the input's row order and put them in list order."""
        n_lists, n_rows = len(groups.offsets) - 1, int(groups.offsets[-1])
        values = np.asarray(relevance)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"y: expected numbers, found dtype {values.dtype}")
        if values.shape != (n_rows,):
            raise ValueError(f"y: expected one value a row, shape ({n_rows},), found shape {values.shape}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = np.flatnonzero(~np.isfinite(values))[0]
            raise ValueError(f"y: expected finite numbers, found {values[row]} at row {row}")
        return cls(
            groups.gather(values),
            None if k is None else check_k(k, n_lists),
            None if weight is None else check_weight(weight, n_lists),
            None if known is None else groups.gather(_check_known(known, n_rows)),
        )

    def cut(self, lists: slice, rows: slice) -> Targets:
        """Return the targets of some neighbouring lists, as views."""
        return Targets(
            self.relevance[rows],
            None if self.k is None else self.k[lists],
            None if self.weight is None else self.weight[lists],
            None if self.known is None else self.known[rows],
        )


def check_k(k: ArrayLike, n_lists: int) -> Int:
    """Return one whole number >= 0 a list; one number serves all lists."""
    values = np.asarray(k)
    if values.dtype.kind not in "iu" or (values < 0).any():
        raise ValueError(f"k: expected whole numbers >= 0, found {values}")
    return np.ascontiguousarray(_one_a_list("k", values, n_lists), dtype=np.int64)


def check_weight(weight: ArrayLike, n_lists: int) -> Float:
    """Return one finite weight >= 0 a list; one number serves all lists."""
    values = np.asarray(weight)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"weight: expected numbers, found dtype {values.dtype}")
    values = values.astype(np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"weight: expected finite numbers >= 0, found {values}")
    return np.ascontiguousarray(_one_a_list("weight", values, n_lists))


def _one_a_list(name: str, values: NDArray[Any], n_lists: int) -> NDArray[Any]:
    if values.shape not in ((), (n_lists,)):
        raise ValueError(f"{name}: expected one number, or one a list ({n_lists}), found shape {values.shape}")
    return np.broadcast_to(values, (n_lists,))


def _check_known(known: ArrayLike, n_rows: int) -> NDArray[np.int8]:
    values = np.asarray(known)
    if values.shape != (n_rows,):
        raise ValueError(f"known: expected one value a row, shape ({n_rows},), found shape {values.shape}")
    wrong = np.flatnonzero(~np.isin(values, (-1, 0, 1)))
    if len(wrong):
        raise ValueError(f"known: expected -1, 0 or 1, found {values[wrong[0]]} at row {wrong[0]}")
    return values.astype(np.int8)
