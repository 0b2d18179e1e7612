"""What is known of every item and label when several people answered.

A reviewer's last answer settles a label. Otherwise the strict majority of yes and no does, and a tie leaves it unknown;
"don't know" is no vote. If some answered yes and some no, and no reviewer did, the label is *disputed*, whatever the
majority. An item is *complete* once every label has an answer, "don't know" included, and none is tied.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.labeling.store.database import checked_rows
from slatewise.labeling.store.records import (
    MOST_MILLISECONDS,
    AnswerValue,
    Between,
    How,
    ItemNumber,
    LabelNumber,
    Milliseconds,
    PersonNumber,
)


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """What is known, (items, labels), for ``fit(X, known.values, answered=known.answered)``."""

    values: NDArray[np.int8]
    """1 yes, 0 no, -1 not known."""
    answered: NDArray[np.bool_]
    """Whether it is known from a question or a list, not only because somebody volunteered it."""
    disputed: NDArray[np.bool_]
    """Whether people disagree and no reviewer has settled it."""
    complete: NDArray[np.bool_]
    """(items,) whether every label has an answer and none is tied."""

    def update(self, item: int, votes: Votes) -> None:
        """Count the votes about one item again."""
        row = replace(votes, item=np.zeros_like(votes.item)).known((1, self.values.shape[1]))
        for field in fields(self):
            getattr(self, field.name)[item] = getattr(row, field.name)[0]


def known_labels(shape: tuple[int, int], answers: NDArray[np.int64]) -> KnownLabels:
    """Count votes; ``answers`` has a row (item, label, annotator, value, volunteered, reviewed) each, oldest first.

    Of several answers of one annotator to a label of an item, the last counts.

    Examples
    --------
    >>> answers = [[0, 0, 7, 1, 0, 0], [0, 0, 8, 0, 0, 0], [0, 1, 7, 0, 0, 0], [0, 1, 7, 1, 1, 0]]
    >>> known = known_labels((1, 3), np.array(answers))
    >>> known.values.tolist(), known.answered.tolist(), known.disputed.tolist()
    ([[-1, 1, -1]], [[False, False, False]], [[True, False, False]])
    """
    n_items, n_labels = shape
    answers = answers[last_of_each(answers)]
    cells = answers[:, 0] * n_labels + answers[:, 1]
    value, volunteered, reviewed = answers[:, 3], answers[:, 4] > 0, answers[:, 5] > 0
    yes, no = (_count(cells[~reviewed & (value == vote)], n_items * n_labels) for vote in (1, 0))
    values = np.sign(yes - no)
    values = np.where(values == 0, -1, np.maximum(values, 0)).astype(np.int8)
    disputed = (yes > 0) & (no > 0)
    values[cells[reviewed]] = value[reviewed]  # of several the last, by the order of assignment
    disputed[cells[reviewed]] = False
    answered = np.zeros(n_items * n_labels, dtype=np.bool_)
    answered[cells[~volunteered & (value >= 0)]] = True
    answered &= values >= 0
    tied = (disputed & (values < 0)).reshape(shape).any(axis=1)
    n_answered = np.bincount(np.unique(cells) // n_labels, minlength=n_items)
    complete = (n_answered == n_labels) & ~tied
    return KnownLabels(values.reshape(shape), answered.reshape(shape), disputed.reshape(shape), complete)


def last_of_each(answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows (item, label, annotator, ...) that no later one supersedes, in their order."""
    n_items, n_labels = (answers[:, column].max(initial=0) + 1 for column in (0, 1))
    keys = (answers[:, 2] * n_items + answers[:, 0]) * n_labels + answers[:, 1]
    first_from_behind = np.unique(keys[::-1], return_index=True)[1]
    return np.sort(len(keys) - 1 - first_from_behind)


def _count(cells: NDArray[np.int64], n_cells: int) -> NDArray[np.int16]:
    votes = np.zeros(n_cells, dtype=np.int16)
    np.add.at(votes, cells, 1)
    return votes


HOWS = get_args(How)
"""Why there is an answer, by its number in :attr:`Votes.how`."""
_HOW = " ".join(f"WHEN '{how}' THEN {number}" for number, how in enumerate(HOWS))
# Not the view ``state``: to keep the last answer of each is quicker where all of them are wanted.
_QUERY = f"""
    SELECT item, label, annotator, value, CASE how {_HOW} END AS how,
        time, coalesce(milliseconds, -1) AS milliseconds, coalesce(model, 0) AS model, standing.number
    FROM standing JOIN answers ON answers.act = standing.number
"""
_TYPES = (
    *(ItemNumber, LabelNumber, PersonNumber, AnswerValue, int),
    *(Milliseconds, Annotated[int, Between(-1, MOST_MILLISECONDS)], int, int),
)


@dataclass(frozen=True, eq=False)
class Votes:
    """One entry per answer that stands, in the order in which they were given."""

    item: Ints
    label: Ints
    annotator: Ints
    value: Ints
    """1 yes, 0 no, -1 don't know."""
    how: Ints
    """A place in :data:`HOWS`."""
    time: Ints
    milliseconds: Ints
    """How long the act took, -1 if unknown."""
    model: Ints
    """The version of the model in use, 0 if there was none."""
    act: Ints

    @classmethod
    def read(cls, connection: sqlite3.Connection, item: int | None = None) -> Votes:
        """Read what stands of all items or of one; of one person's answers to a label of an item, the last."""
        where, arguments = ("", ()) if item is None else ("WHERE item = ?", (item,))
        query = f"{_QUERY} {where} ORDER BY standing.number, label"
        rows = checked_rows(connection, _TYPES, query, arguments)
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64).reshape(-1, len(fields(cls)))
        return cls(*np.ascontiguousarray(flat[last_of_each(flat)].T))

    def __len__(self) -> int:
        return len(self.item)

    def are(self, how: How) -> NDArray[np.bool_]:
        """Return which answers came about in this way."""
        return self.how == HOWS.index(how)

    def known(self, shape: tuple[int, int]) -> KnownLabels:
        """Count the votes; see :mod:`slatewise.labeling.store.known_labels`."""
        columns = (self.item, self.label, self.annotator, self.value, self.are("volunteered"), self.are("reviewed"))
        return known_labels(shape, np.column_stack(columns).astype(np.int64))
