"""Precision at k: the share of irrelevant items among the first k.

    Delta(t, z) = sum_i t_i (1 - z_i) / k,    t_i = 1 where item i is in the top k, else 0

so a = (1, .., 1, 0, .., 0) with k ones and b = (1 - z) / k. (The vectors that Mensink et al. 2011 print in section 2,
b = z and a = 1 - 1/k, are not this loss; its section 4 has the formula above.) The model's own placement is t as well,
so the loss folds into the scores:  max_t [f(t) + Delta(t, z)]  is inference with  s_i + (1 - z_i) / k.

With k = number of relevant items of the list this is one minus break-even precision, and t = z is the only best answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.arrays import Floats
from slatewise.core.checks import bounded, check_offsets, real
from slatewise.losses.linear import LinearLoss, Vectors, binary, grades


@dataclass(frozen=True)
class PrecisionLoss(LinearLoss):
    """One minus precision at k; relevance is 0 or 1.

    ``k`` is a number from 1 to the length of the list; None: the number of relevant items (break-even precision).
    The block methods take many lists at once, either 2-D arrays (lists, items) or flat ones with ``offsets``, and then
    ``k`` is one number or one a list.

    Examples
    --------
    >>> PrecisionLoss().value(order=[2, 0, 1], relevance=[1, 0, 0], k=2)
    0.5
    >>> PrecisionLoss().augmented([[0.5, 0.1, 0.3]], [[1, 0, 0]], k=2)
    array([[0.5, 0.6, 0.8]])
    """

    def vectors(self, relevance: ArrayLike, k: int | None = None) -> Vectors:
        """Return a and b(z) of a list."""
        z = grades(relevance)
        cost, at = _cost(z, k, None)
        return Vectors((np.arange(len(z)) < at[0]).astype(np.float64), cost)

    def augmented(
        self, scores: ArrayLike, relevance: ArrayLike, k: ArrayLike | None = None, offsets: ArrayLike | None = None
    ) -> Floats:
        """Return ``s + (1 - z) / k``: inference with these scores is loss-augmented inference.

        Parameters
        ----------
        scores, relevance : array-like of shape (n_lists, n_items), or (n_rows,) with ``offsets``
            1-D without offsets: one list.
        k : int or array-like of shape (n_lists,), optional
            None: the number of relevant items of each list.
        offsets : array-like of shape (n_lists + 1,), optional
            List l has the rows ``offsets[l]:offsets[l + 1]``.
        """
        values = bounded("scores", scores)
        cost, _ = _cost(relevance, k, offsets)
        if values.shape != cost.shape:
            raise ValueError(f"scores: expected the shape of relevance, {cost.shape}, found {values.shape}")
        return values + cost

    def of_placement(
        self, placement: ArrayLike, relevance: ArrayLike, k: ArrayLike | None = None, offsets: ArrayLike | None = None
    ) -> Floats:
        """Return the loss of each list; ``placement`` is 1 for the items in the top k and 0 for the others.

        Examples
        --------
        >>> PrecisionLoss().of_placement([[1, 1, 0], [0, 1, 1]], [[1, 0, 0], [0, 1, 1]], k=2)
        array([0.5, 0. ])
        """
        chosen = bounded("placement", placement)
        cost, at = _cost(relevance, k, offsets)
        if chosen.shape != cost.shape:
            raise ValueError(f"placement: expected the shape of relevance, {cost.shape}, found {chosen.shape}")
        if chosen.ndim == 2:
            return (chosen * cost).sum(axis=1)
        return _sums(_list_of_row(offsets, len(cost)), chosen * cost, len(at))


def _cost(relevance: ArrayLike, k: ArrayLike | None, offsets: ArrayLike | None) -> tuple[Floats, NDArray[Any]]:
    """Return (1 - z) / k for every item, and k for every list."""
    z = binary(relevance)
    if z.ndim == 2:
        if offsets is not None:
            raise ValueError("offsets: expected None with relevance of two dimensions")
        at = _resolve(k, z.sum(axis=1), np.full(len(z), z.shape[1]))
        return (1.0 - z) / at[:, None], at
    if z.ndim != 1:
        raise ValueError(f"relevance: expected one or two dimensions, found shape {z.shape}")
    lists = _list_of_row(offsets, len(z))
    n_lists = 1 if offsets is None else len(np.asarray(offsets)) - 1
    sizes = np.bincount(lists, minlength=n_lists)
    at = _resolve(k, _sums(lists, z, n_lists), sizes)
    return (1.0 - z) / at[lists], at


def _sums(lists: NDArray[np.int64], values: Floats, n_lists: int) -> Floats:
    out = np.zeros(n_lists)
    np.add.at(out, lists, values)
    return out


def _list_of_row(offsets: ArrayLike | None, n_rows: int) -> NDArray[np.int64]:
    bounds = np.array([0, n_rows]) if offsets is None else _whole("offsets", offsets)
    check_offsets(bounds, n_rows)
    return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))


def _whole(name: str, values: ArrayLike) -> NDArray[np.int64]:
    found = real(name, values)
    if found.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected whole numbers, found dtype {found.dtype}")
    return found.astype(np.int64)


def _resolve(k: ArrayLike | None, relevant: NDArray[Any], sizes: NDArray[Any]) -> NDArray[Any]:
    """Return one k per list, between 1 and the list's length."""
    if k is None:
        if (relevant == 0).any():
            raise ValueError(
                f"relevance: expected a relevant item in every list where k is None, found none in list "
                f"{int(np.argmin(relevant))}"
            )
        return relevant
    given = real("k", k)
    if given.dtype.kind not in "iu" or given.shape not in ((), sizes.shape):
        raise ValueError(f"k: expected one whole number, or one a list ({len(sizes)}), found {k!r}")
    at = np.broadcast_to(given, sizes.shape)
    wrong = (at < 1) | (at > sizes)
    if wrong.any():
        number = int(np.argmax(wrong))
        raise ValueError(f"k: expected 1 to {sizes[number]}, the length of list {number}, found {at[number]}")
    return at
