"""What a project remembers of how it is to be labelled: names and anything that JSON can say."""

from __future__ import annotations

import json
from typing import Any

from slatewise.core.rules import short_repr
from slatewise.labeling.store.database import Damaged, Database, checked_rows


def as_json(text: str) -> Any:
    """Return what a text of the file says; raise Damaged where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"no JSON but {short_repr(text)}") from None


class Settings:
    """Reached as ``project.settings``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, ``default`` where it was never set."""
        with self._database.read() as connection:
            for (text,) in checked_rows(connection, (str,), "SELECT value FROM settings WHERE name = ?", (name,)):
                return as_json(text)
        return default

    def set(self, name: str, value: Any) -> None:
        """Keep a setting."""
        text = json.dumps(value, allow_nan=False)
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, text))
