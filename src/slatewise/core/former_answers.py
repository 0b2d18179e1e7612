"""Answers that can still be used as before 0.2, with a warning. This file goes in 0.3."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from slatewise.core.rankings import Rankings

_PAGE = "see the page 'Moving to 0.2'"


def _warn(former: str, instead: str) -> None:
    warnings.warn(f"{former} goes in 0.3: use {instead}; {_PAGE}", DeprecationWarning, stacklevel=3)


class FormerPair(Rankings):
    """An answer that was a tuple of two matrices: it unpacks as ``ids, scores``, shorter lists filled up."""

    def __iter__(self) -> Iterator[NDArray[Any]]:
        _warn("ids, scores = rank(...)", "answer.ids and answer.scores, or answer.lists()")
        if self.offsets is None:
            return iter((self.ids, self.scores))
        nobody = -1 if self.ids.dtype.kind in "iu" else ""
        return iter((self._filled(self.ids, nobody), self._filled(self.scores, -np.inf)))

    def _filled(self, values: NDArray[Any], empty: object) -> NDArray[Any]:
        sizes = np.diff(self._starts())
        matrix = np.full((len(sizes), int(sizes.max(initial=0))), empty, dtype=values.dtype)
        matrix[np.repeat(np.arange(len(sizes)), sizes), self.places()] = values
        return matrix


class FormerRows(NDArrayOperatorsMixin, Rankings):
    """An answer that was a matrix of ids, or a list of them: it can be used as one."""

    @classmethod
    def of(cls, answer: Rankings) -> Self:
        """Return an answer that can also be used as its matrix."""
        return cls(answer.query_ids, answer.ids, answer.scores, answer.offsets)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        _warn("iterating over rank(...)", "answer.lists()")
        return iter(self.lists())

    def __getitem__(self, index: Any) -> Any:
        if np.ndim(index) == 0 and not isinstance(index, slice | tuple) and index is not None:
            return super().__getitem__(int(index))
        _warn("indexing rank(...) as an array", "answer.ids")
        return self.ids[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        _warn("rank(...) as an array", "answer.ids")
        return np.array(self.ids, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        _warn("arithmetic on rank(...)", "answer.ids")
        numbers = (each.ids if isinstance(each, FormerRows) else each for each in inputs)
        return getattr(ufunc, method)(*numbers, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        _warn(f"rank(...).{name}", f"answer.ids.{name}")
        return getattr(self.ids, name)
