"""What everybody said, as columns: for counts over all answers at once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields
from itertools import chain
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Ints
from slatewise.labeling.store.database import checked_rows
from slatewise.labeling.store.known import KnownLabels, known_labels, last_of_each
from slatewise.labeling.store.records import (
    MOST_MILLISECONDS,
    Between,
    How,
    ItemNumber,
    LabelNumber,
    Milliseconds,
    PersonNumber,
    Said,
)

HOWS = get_args(How)
"""Why there is an answer, by its number in :attr:`Votes.how`."""
_HOW = " ".join(f"WHEN '{how}' THEN {number}" for number, how in enumerate(HOWS))
# Not the view ``state``: to keep the last answer of each is quicker where all of them are wanted.
_QUERY = f"""
    SELECT item, label, annotator, said, CASE how {_HOW} END AS how,
        time, coalesce(milliseconds, -1) AS milliseconds, coalesce(model, 0) AS model, standing.number
    FROM standing JOIN answers ON answers.act = standing.number
"""
_TYPES = (
    *(ItemNumber, LabelNumber, PersonNumber, Said, int),
    *(Milliseconds, Annotated[int, Between(-1, MOST_MILLISECONDS)], int, int),
)


@dataclass(frozen=True, eq=False)
class Votes:
    """One entry per answer that stands, in the order in which they were given."""

    item: Ints
    label: Ints
    annotator: Ints
    said: Ints
    """1 yes, 0 no, -1 don't know."""
    how: Ints
    """A place in :data:`HOWS`."""
    time: Ints
    milliseconds: Ints
    """How long the act took, -1 where nobody measured."""
    model: Ints
    """The version of the model in use, 0 where there was none."""
    act: Ints

    @classmethod
    def read(cls, connection: sqlite3.Connection, item: int | None = None) -> Votes:
        """Read what stands of all items or of one; of what one person said of a label of an item, the last."""
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
        """Count the votes; see :mod:`slatewise.labeling.store.known`."""
        columns = (self.item, self.label, self.annotator, self.said, self.are("volunteered"), self.are("reviewed"))
        return known_labels(shape, np.column_stack(columns).astype(np.int64))
