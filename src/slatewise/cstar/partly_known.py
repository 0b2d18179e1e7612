"""Labels of which not all are known: NaN or -1 in a matrix of labels.

What is not known is summed out, as if it were missing at random. Answers that a person volunteered are not: they are
mostly yes ("there is a dog"), hardly anybody says what is not there. ``answered`` says which labels were asked for;
known ones that were not count as not known, because that they are known depends on what they are.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.sparse import sparse_rows
from slatewise.cstar.checks import Known

Bools: TypeAlias = NDArray[np.bool_]


class SplitLabels(NamedTuple):
    """Labels with 0 where nobody knows, and where that is."""

    labels: Any
    """As they came, where all are known."""
    unknown: Bools | None
    """(n, labels); None: all are known."""


def split_labels(y: Any) -> SplitLabels:
    """Take NaN and -1 out of a matrix of labels; what is no matrix of numbers stays as it is.

    Examples
    --------
    >>> split = split_labels([[1, 0], [-1, 1]])
    >>> split.labels, split.unknown
    (array([[1., 0.], [0., 1.]]), array([[False, False], [ True, False]]))
    """
    matrix = sparse_rows("y", y)
    if matrix is not None and not (np.isnan(matrix.data) | (matrix.data == -1)).any():
        return SplitLabels(y, None)  # without a matrix of zeros, which may be large
    array = _numbers(y) if matrix is None else matrix.toarray().astype(np.float64)
    if array is None or array.ndim != 2 or array.shape[1] < 2:
        return SplitLabels(y, None)
    unknown = np.isnan(array) | (array == -1.0)
    if not unknown.any():
        return SplitLabels(y, None)
    return SplitLabels(np.where(unknown, 0.0, array), unknown)


def _numbers(y: Any) -> NDArray[np.float64] | None:
    try:
        array: NDArray[Any] = np.asarray(y)
    except ValueError:  # rows of different lengths
        return None
    if array.ndim != 2 or array.dtype.kind not in "ifO":
        return None
    if array.dtype.kind == "O":
        flat = [np.nan if _is_missing(value) else value for value in cast("list[object]", array.ravel().tolist())]
        if not all(isinstance(value, int | float) for value in flat):
            return None
        array = np.array(flat, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ == "NAType"  # pandas' own, which is equal to nothing


def with_unknown(Y: Known, unknown: Bools | None, answered: ArrayLike | None, surrogate: str) -> Known:
    """Return labels (n, N) with -1 where they are not known; refuse or warn where that leaves little to learn from."""
    hidden = np.zeros(Y.shape, dtype=np.bool_) if unknown is None else unknown
    if answered is not None:
        hidden = hidden | _volunteered(answered, hidden)
    if not hidden.any():
        return Y
    if surrogate != "likelihood":
        row, label = np.argwhere(hidden)[0]
        found = f"row {row}, label {label} not known (NaN, -1 or not answered)"
        raise ValueError(f"y: expected 0 and 1 unless surrogate is 'likelihood', found {found}")
    nothing = int(hidden.all(axis=1).sum())
    if nothing == len(Y):
        raise ValueError("y: expected a row of which some label is known, found none")
    if not (~hidden & (Y == 0)).any():
        raise ValueError("y: expected 0 where a label is not there, found only 1 and not known (-1 or NaN)")
    never = int(hidden.all(axis=0).sum())
    left_out = f"{nothing} rows of which nothing is known are left out; " if nothing else ""
    left_out += f"{never} labels are known in no row and stay at even odds; " if never else ""
    warnings.warn(
        f"y: {int(hidden.sum())} of {hidden.size} labels are not known: {left_out}the likelihood of the others is not "
        "convex, and lower_bound_ is -inf",
        stacklevel=4,
    )
    return np.where(hidden, np.int8(-1), Y)


def _volunteered(answered: ArrayLike, unknown: Bools) -> Bools:
    """Return known labels that nobody asked for, and warn of them."""
    expected = f"a matrix of True and False, shape {unknown.shape}"
    try:
        asked = np.asarray(answered)
    except ValueError:
        raise ValueError(f"answered: expected {expected}, found lists of different lengths") from None
    if asked.dtype.kind != "b" or asked.shape != unknown.shape:
        found = type(answered).__name__ if asked.dtype.kind == "O" else f"{asked.dtype} of shape {asked.shape}"
        raise ValueError(f"answered: expected {expected}, found {found}")
    found = ~asked & ~unknown
    if found.any():
        warnings.warn(
            f"answered: {int(found.sum())} of {int((~unknown).sum())} known labels were not asked for and count as not "
            "known: what people volunteer is mostly yes",
            stacklevel=5,
        )
    return found
