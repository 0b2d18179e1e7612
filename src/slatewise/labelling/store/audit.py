"""The audit log of a project: who changed what besides answers. Lines stay for ever, so they name nobody."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from slatewise.labelling.store import clocks
from slatewise.labelling.store.database import Database
from slatewise.labelling.store.records import Logged


class AuditLog:
    """Reached as ``project.audit``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, what: str, annotator: int | None = None, **detail: object) -> None:
        """Add a line."""
        with self._database.write() as connection:
            log(connection, what, annotator, detail)

    def all(self) -> list[Logged]:
        """Return all lines, the oldest first."""
        rows = self._database.rows("SELECT number, time, annotator, what, detail FROM audit ORDER BY number")
        return [Logged(number, time, who, what, json.loads(text)) for number, time, who, what, text in rows]


def log(connection: sqlite3.Connection, what: str, annotator: int | None, detail: Mapping[str, object]) -> None:
    """Add a line inside a transaction, beside the change it tells of."""
    row = (clocks.now(), annotator, what, json.dumps(detail))
    connection.execute("INSERT INTO audit (time, annotator, what, detail) VALUES (?, ?, ?, ?)", row)
