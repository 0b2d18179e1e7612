"""The answer of every ``rank``: for every query its list, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.errors import Skipped
from slatewise.core.groups import group_rows

Frames: TypeAlias = Literal["pandas", "polars", "pyarrow"]
_SHOWN_LISTS, _SHOWN_ITEMS = 5, 5


@dataclass(frozen=True, eq=False)
class Run:
    """The answer of a system: in row i, list ``qid[i]`` has document ``doc_ids[i]`` with ``scores[i]``."""

    qid: NDArray[np.str_]
    doc_ids: NDArray[np.str_]
    scores: NDArray[np.float64]
    tag: str = "slatewise"
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """The best items of each query, best first.

    ``rankings[i]`` are the ids of query i's list, and iterating gives one list's ids after the other.

    Attributes
    ----------
    query_ids
        The name of each query, or its number if it has none.
    ids, scores
        The item at each position and its score: matrices (queries, positions) if all lists are equally long; else list
        after list, each from ``offsets[i]`` to ``offsets[i + 1]``.
    offsets
        None with matrices.
    nothing_known
        Marks sessions without an item that the ranker knows, and ids that are new since fit: they all get the same
        list. None if there is no such query, or if a ranker does not report it.

    Examples
    --------
    >>> Rankings(np.array(["a", "b"]), np.array([[2, 0], [1, 2]]), np.array([[0.9, 0.5], [1.5, 0.25]]))
    2 lists of 2
    a: 2 (0.9), 0 (0.5)
    b: 1 (1.5), 2 (0.25)
    """

    query_ids: NDArray[Any]
    ids: NDArray[Any]
    scores: NDArray[Any]
    offsets: NDArray[np.int64] | None = None
    nothing_known: NDArray[np.bool_] | None = None

    @classmethod
    def of_lists(
        cls,
        query_ids: NDArray[Any],
        ids: NDArray[Any],
        scores: NDArray[Any],
        offsets: NDArray[np.int64],
        nothing_known: NDArray[np.bool_] | None = None,
    ) -> Rankings:
        """Return lists from flat arrays; as matrices if they are equally long."""
        sizes = np.diff(offsets)
        if len(sizes) and (sizes == sizes[0]).all():
            shape = len(sizes), int(sizes[0])
            return cls(query_ids, ids.reshape(shape), scores.reshape(shape), None, nothing_known)
        return cls(query_ids, ids, scores, offsets, nothing_known)

    def __len__(self) -> int:
        return len(self.query_ids)

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.ids[self._place(index)]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.lists())

    def __repr__(self) -> str:
        sizes = np.diff(self._starts())
        long = f"of {sizes[0]}" if self.offsets is None and len(sizes) else f"with {sizes.sum()} items in all"
        lines = [f"{len(self)} {'list' if len(self) == 1 else 'lists'} {long}"]
        for index in range(min(len(self), _SHOWN_LISTS)):
            places = zip(self[index][:_SHOWN_ITEMS].tolist(), self.list_scores(index).tolist(), strict=False)
            shown = ", ".join(f"{name} ({score:.4g})" for name, score in places)
            more = ", ..." if sizes[index] > _SHOWN_ITEMS else ""
            lines.append(f"{self.query_ids[index]}: {shown}{more}")
        return "\n".join([*lines, "..."] if len(self) > _SHOWN_LISTS else lines)

    def lists(self) -> list[NDArray[Any]]:
        """Return the ids of each list, best first."""
        return [self.ids[self._place(index)] for index in range(len(self))]

    def list_scores(self, index: int) -> NDArray[Any]:
        """Return the scores of one list, best first."""
        return self.scores[self._place(index)]

    def top(self, k: int) -> Rankings:
        """Return the best k of every list; shorter lists stay whole."""
        if k != int(k) or k < 1:
            raise ValueError(f"k: expected a whole number >= 1, found {k}")
        starts = self._starts()
        sizes = np.diff(starts)
        kept = np.minimum(sizes, min(int(k), int(starts[-1])))
        best = self.positions() < np.repeat(kept, sizes)
        offsets = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
        ids, scores = self.ids.reshape(-1)[best], self.scores.reshape(-1)[best]
        return Rankings.of_lists(self.query_ids, ids, scores, offsets, self.nothing_known)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each list."""
        return np.diff(self._starts())

    def positions(self) -> NDArray[np.int64]:
        """Return the position of each of the flat ids in its list, from 0."""
        starts = self._starts()
        return np.arange(int(starts[-1])) - np.repeat(starts[:-1], np.diff(starts))

    def to_dict(self) -> dict[Any, dict[Any, float]]:
        """Return ``{query: {id: score}}``, best first: what pytrec_eval and ranx call a run."""
        scores = (self.list_scores(index).tolist() for index in range(len(self)))
        return {
            query: dict(zip(ids.tolist(), values, strict=True))
            for query, ids, values in zip(self.query_ids.tolist(), self.lists(), scores, strict=True)
        }

    def to_run(self, tag: str = "slatewise") -> Run:
        """Return a run, for :func:`slatewise.data.write_run` and :func:`slatewise.metrics.evaluate_run`."""
        return Run(
            np.repeat(self.query_ids.astype(np.str_), np.diff(self._starts())),
            self.ids.reshape(-1).astype(np.str_),
            self.scores.reshape(-1).astype(np.float64),
            tag,
        )

    def to_frame(self, backend: Frames | None = None) -> Any:
        """Return a data frame with the columns query, id, rank (from 1) and score.

        Parameters
        ----------
        backend
            "pandas", "polars" or "pyarrow"; default: the first of them that is installed.
        """
        import narwhals as nw  # only for frames: answers need NumPy alone

        columns = {
            "query": np.repeat(self.query_ids, np.diff(self._starts())),
            "id": self.ids.reshape(-1),
            "rank": self.positions() + 1,
            "score": self.scores.reshape(-1),
        }
        return nw.from_dict(columns, backend=backend or _installed_frames()).to_native()

    def _starts(self) -> NDArray[np.int64]:
        if self.offsets is None:
            return np.arange(len(self.query_ids) + 1, dtype=np.int64) * self.ids.shape[1]
        return self.offsets

    def _place(self, index: int) -> int | slice:
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected a list number below {len(self)}, found {index}")
        index %= len(self)
        return index if self.offsets is None else slice(int(self.offsets[index]), int(self.offsets[index + 1]))


def _installed_frames() -> Frames:
    from importlib.util import find_spec

    names: tuple[Frames, ...] = get_args(Frames)
    for name in names:
        if find_spec(name) is not None:
            return name
    raise ImportError("to_frame: expected pandas, polars or pyarrow to be installed, found none of them")


def rank_rows(
    scores: NDArray[Any],
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: NDArray[Any] | None = None,
) -> Rankings:
    """Sort every list by score, largest first; equal scores keep the order of the rows.

    Parameters
    ----------
    scores
        One per row.
    qid, group
        The list of each row, or how many rows each list has; neither: all rows are one list.
    names
        The name of each row; default: its number.

    Examples
    --------
    >>> rank_rows(np.array([0.1, 0.9, 0.5]), ["a", "b", "a"])
    2 lists with 3 items in all
    a: 2 (0.5), 0 (0.1)
    b: 1 (0.9)
    """
    groups = group_rows(qid, len(scores), group)
    rows = np.arange(len(scores)) if groups.order is None else groups.order
    lists = np.repeat(np.arange(len(groups.ids)), np.diff(groups.offsets))
    best_first = rows[np.lexsort((-np.asarray(scores, dtype=np.float64)[rows], lists))]
    ids = best_first if names is None else names[best_first]
    return Rankings.of_lists(groups.ids, ids, scores[best_first], groups.offsets)
