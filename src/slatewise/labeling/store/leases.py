"""Who works on what: a lease keeps an item for one person until it expires, so that two never get the same one.

Time is taken from a clock that nobody sets, and kept as one that a later process can read.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from slatewise.core.rules import short_repr
from slatewise.labeling.store import clocks
from slatewise.labeling.store.acts import Numbers, whole
from slatewise.labeling.store.database import Database, checked_rows, counted
from slatewise.labeling.store.records import ItemNumber

SECONDS = 300.0
MOST_SECONDS = 3600.0
_HOLDERS = """
    SELECT item FROM (
        SELECT item, annotator FROM leases WHERE until > :now {and_one_item}
        UNION SELECT item, annotator FROM marks WHERE kind = 'done' {and_one_item}
    ) WHERE annotator <> :annotator
"""
_OF_ALL, _OF_ONE = (_HOLDERS.format(and_one_item=one) for one in ("", "AND item = :item"))


class Leases:
    """Reached as ``project.leases``. A person *has* an item while holding its lease, and when done with it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset = clocks.wall_clock() - clocks.steady_clock()

    def free(self, annotator: int, overlap: int = 1) -> NDArray[np.int64]:
        """Return the items that a person may take, by number.

        Those that fewer than ``overlap`` others have, and that the person is not done with and did not skip.
        """
        annotator, overlap = whole("annotator", annotator), _check_overlap(overlap)
        with self._database.read() as connection:
            n_items = counted(connection, "items")
            now = {"now": self._now(), "annotator": annotator}
            taken = checked_rows(connection, (ItemNumber,), _OF_ALL, now)
            others = np.bincount(np.fromiter(chain.from_iterable(taken), dtype=np.int64), minlength=n_items)
            query = "SELECT item FROM marks WHERE annotator = ?"
            own = checked_rows(connection, (ItemNumber,), query, (annotator,))
            others[np.fromiter(chain.from_iterable(own), dtype=np.int64)] = overlap
        return np.flatnonzero(others < overlap)

    def claim(
        self, item: int, annotator: int, *, overlap: int = 1, seconds: float = SECONDS, instead_of: int | None = None
    ) -> bool:
        """Take the lease of an item for some seconds, or make it longer; return whether the person has it now.

        Refused where ``overlap`` others have the item. ``instead_of`` is an item that the person then gives back.
        """
        overlap = _check_overlap(overlap)
        if not 0 < seconds <= MOST_SECONDS:
            raise ValueError(f"seconds: expected more than 0, at most {MOST_SECONDS:g}, found {short_repr(seconds)}")
        with self._database.write() as connection:
            numbers, now = Numbers(connection), self._now()
            item, annotator = numbers.check("item", item), numbers.check("annotator", annotator)
            connection.execute("DELETE FROM leases WHERE until <= ?", (now,))
            others = connection.execute(_OF_ONE, {"now": now, "item": item, "annotator": annotator}).fetchall()
            if len(others) >= overlap:
                return False
            if instead_of is not None:
                own = (numbers.check("item", instead_of), annotator)
                connection.execute("DELETE FROM leases WHERE item = ? AND annotator = ?", own)
            connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (item, annotator, now + seconds))
            return True

    def held(self, annotator: int) -> list[int]:
        """Return the items whose leases a person holds, the one that lasts longest first."""
        query = "SELECT item FROM leases WHERE annotator = ? AND until > ? ORDER BY until DESC, item"
        found = self._database.checked((ItemNumber,), query, whole("annotator", annotator), self._now())
        return [item for (item,) in found]

    def release(self, item: int, annotator: int) -> None:
        """Give the lease of an item back; nothing where the person does not hold it."""
        own = (whole("item", item), whole("annotator", annotator))
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE item = ? AND annotator = ?", own)

    def drop_impossible(self) -> None:
        """End leases that last longer than any does: the clock was set back since they were taken."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE until > ?", (self._now() + MOST_SECONDS,))

    def _now(self) -> float:
        return self._offset + clocks.steady_clock()


def _check_overlap(overlap: int) -> int:
    if whole("overlap", overlap) < 1:
        raise ValueError(f"overlap: expected how many people label an item, at least 1, found {overlap}")
    return whole("overlap", overlap)
