"""The labels of a project, numbered from 0 in the order in which they were added; a name may change, a number never."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from slatewise.core.rules import short_repr
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.audit import log
from slatewise.labeling.store.database import Database, checked_rows, counted
from slatewise.labeling.store.records import LabelNumber

_BY_NAME = "SELECT number FROM labels WHERE name = ?1 UNION ALL SELECT label FROM former_names WHERE name = ?1 LIMIT 1"


class Labels:
    """Reached as ``project.labels``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __len__(self) -> int:
        with self._database.read() as connection:
            return counted(connection, "labels")

    def names(self) -> list[str]:
        """Return the names by number."""
        with self._database.read() as connection:
            counted(connection, "labels")  # their numbers are their places
            return [name for (name,) in checked_rows(connection, (str,), "SELECT name FROM labels ORDER BY number")]

    def by_name(self) -> dict[str, int]:
        """Return the numbers by name, also by names that labels had before."""
        former = "SELECT name, label FROM former_names"
        query = f"{former} UNION ALL SELECT name, number FROM labels"
        return dict(self._database.checked((str, LabelNumber), query))

    def number(self, name: str) -> int:
        """Return the number of a label, also by a name that it had before."""
        found = self._database.checked((LabelNumber,), _BY_NAME, name)
        if not found:
            raise ValueError(f"label: expected the name of a label, found {short_repr(name)}")
        return found[0][0]

    def add(self, names: Iterable[str]) -> None:
        """Add labels after those that are there; a name that a label has, or had, is refused."""
        with self._database.write() as connection:
            for number, name in enumerate(names, counted(connection, "labels")):
                _require_new(connection, name, None)
                connection.execute("INSERT INTO labels VALUES (?, ?)", (number, name))

    def rename(self, old: str, new: str, annotator: int | None = None) -> None:
        """Give a label another name; its answers stay, and files that use the old name are still understood."""
        number = self.number(old)
        with self._database.write() as connection:
            _require_new(connection, new, number)
            (before,) = connection.execute("SELECT name FROM labels WHERE number = ?", (number,)).fetchone()
            connection.execute("INSERT OR REPLACE INTO former_names VALUES (?, ?)", (before, number))
            connection.execute("UPDATE labels SET name = ? WHERE number = ?", (new, number))
            log(connection, "rename label", annotator, {"label": number, "old": before, "new": new})


def _require_new(connection: sqlite3.Connection, name: str, renamed: int | None) -> None:
    """Raise ValueError where a label has this name, or where another one than ``renamed`` had it."""
    check_name("label", name)
    if connection.execute("SELECT 1 FROM labels WHERE name = ?", (name,)).fetchone() is not None:
        raise ValueError(f"label: expected every label once, found {short_repr(name)} again")
    former = connection.execute("SELECT label FROM former_names WHERE name = ?", (name,)).fetchone()
    if former is not None and former[0] != renamed:
        raise ValueError(f"label: expected a name that no other label had before, found {short_repr(name)}")
