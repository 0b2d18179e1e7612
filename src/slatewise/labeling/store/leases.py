"""Who works on what: leases of items, the clocks they use, and the locks of the server and the trainer.

A lease keeps an item for one person until it expires, so that two people never get the same one. Its time comes from a
clock that nobody sets, and is stored as one that a later process can read. There is one server per project and one
trainer: each holds a lock of the system on a file beside the project, which ends with its process.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slatewise.core.errors import ProjectError
from slatewise.core.rules import short_repr
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
    """The leases of items, as ``project.leases``. A person *has* an item while holding its lease, and when done."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset = wall_clock() - steady_clock()

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

        Refused if ``overlap`` others have the item. ``instead_of`` is an item that the person then gives back.
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
        """Give the lease of an item back; nothing if the person does not hold it."""
        own = (whole("item", item), whole("annotator", annotator))
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE item = ? AND annotator = ?", own)

    def drop_impossible(self) -> None:
        """End leases that last longer than any does: the clock was set back since they were taken."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM leases WHERE until > ?", (self._now() + MOST_SECONDS,))

    def _now(self) -> float:
        return self._offset + steady_clock()


def _check_overlap(overlap: int) -> int:
    if whole("overlap", overlap) < 1:
        raise ValueError(f"overlap: expected how many people label an item, at least 1, found {overlap}")
    return whole("overlap", overlap)


def wall_clock() -> float:
    """Seconds since 1970, as the machine believes."""
    return time.time()


def steady_clock() -> float:
    """Seconds since some moment of this machine's."""
    return time.monotonic()


def now() -> int:
    """Milliseconds since 1970, as the machine believes."""
    return int(wall_clock() * 1000)


class HeldFile:
    """A lock held from when it is made until :meth:`release`. The file stays: to remove it would race with the next."""

    def __init__(self, project: Path, ending: str, expected: str, busy: str) -> None:
        path = project.with_name(project.name + ending)
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ProjectError(f"{project}: expected a file {path.name} to lock beside it, found {error}") from None
        try:
            _lock(self._file)
        except OSError as error:
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip() if os.name == "posix" else ""
            os.close(self._file)
            found = f"{busy} by process {holder}" if holder else f"{error}"
            raise ProjectError(f"{project}: expected {expected}, found {found}") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others serve; nothing if that was done."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class ServerLock(HeldFile):
    """Held by the one server of a project."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ".lock", "a project that no other server serves", "it is served")


class TrainerLock(HeldFile):
    """Held by the one process that trains a model of a project."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ".training.lock", "a project whose model nobody trains now", "it is trained")


def _lock(file: int) -> None:
    """Lock an open file, or raise OSError if another holds it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)
