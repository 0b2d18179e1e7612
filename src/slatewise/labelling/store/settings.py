"""What a project remembers of how it is to be labelled: names and anything that JSON can say."""

from __future__ import annotations

import json
from typing import Any

from slatewise.labelling.store.database import Database


class Settings:
    """Reached as ``project.settings``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, ``default`` where it was never set."""
        found = self._database.rows("SELECT value FROM settings WHERE name = ?", name)
        return json.loads(found[0][0]) if found else default

    def set(self, name: str, value: Any) -> None:
        """Keep a setting."""
        text = json.dumps(value, allow_nan=False)
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, text))
