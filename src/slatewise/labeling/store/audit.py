"""The audit log of a project: who changed what besides answers. Lines stay for ever, so they name nobody."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import cast

from slatewise.core.rules import short_repr
from slatewise.labeling.store import clocks
from slatewise.labeling.store.database import Damaged, Database, checked_rows, types_of
from slatewise.labeling.store.records import Logged
from slatewise.labeling.store.settings import as_json


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
        types, query = (*types_of(Logged)[:-1], str), f"SELECT {', '.join(Logged._fields)} FROM audit ORDER BY number"
        lines: list[Logged] = []
        with self._database.read() as connection:
            for *row, text in checked_rows(connection, types, query):
                detail: object = as_json(text)
                if not isinstance(detail, dict):
                    raise Damaged(f"detail {short_repr(text)}")
                lines.append(Logged._make((*row, cast("dict[str, object]", detail))))
        return lines


def log(connection: sqlite3.Connection, what: str, annotator: int | None, detail: Mapping[str, object]) -> None:
    """Add a line inside a transaction, beside the change it tells of."""
    row = (clocks.now(), annotator, what, json.dumps(detail))
    connection.execute("INSERT INTO audit (time, annotator, what, detail) VALUES (?, ?, ?, ?)", row)
