"""Versions of the model: all are kept, one is in use, and going back to an earlier one is one line more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from slatewise.labeling.store import clocks
from slatewise.labeling.store.acts import Numbers, new_number, whole
from slatewise.labeling.store.audit import log
from slatewise.labeling.store.database import Database, checked_rows, types_of
from slatewise.labeling.store.records import Between, ModelNumber, ModelVersion

_LAST = Annotated[int, Between(0, 1 << 62)]  # others follow


class ModelVersions:
    """Reached as ``project.models``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, path: str, *, note: str = "", last_act: int = 0) -> int:
        """Register a version that has learnt from acts up to ``last_act``; return its number. It is not in use yet."""
        with self._database.write() as connection:
            row = (path, clocks.now(), note, whole("last_act", last_act))
            query = "INSERT INTO models (path, created, note, last_act) VALUES (?, ?, ?, ?)"
            return new_number(connection.execute(query, row))

    def adopt(self, numbers: Iterable[int], note: str) -> dict[int, int]:
        """Register versions of another project, after those that are there; return their numbers here by those there.

        Where there are none yet they keep their numbers.
        """
        with self._database.write() as connection:
            query = "SELECT coalesce(max(number), 0) AS model FROM models"
            ((last,),) = checked_rows(connection, (_LAST,), query)
            adopted = {number: last + number for number in sorted(set(numbers))}
            rows = [(number, "", clocks.now(), note, 0) for number in adopted.values()]
            connection.executemany("INSERT INTO models VALUES (?, ?, ?, ?, ?)", rows)
            return adopted

    def use(self, number: int | None, annotator: int | None = None) -> None:
        """Put a version in use, an earlier one to roll back, None for none."""
        with self._database.write() as connection:
            used = None if number is None else Numbers(connection).check("model", number)
            connection.execute("INSERT INTO model_uses (model, time) VALUES (?, ?)", (used, clocks.now()))
            log(connection, "use model", annotator, {"model": used})

    def current(self) -> ModelVersion | None:
        """Return the version in use, None where there is none."""
        used = "SELECT model FROM model_uses ORDER BY number DESC LIMIT 1"
        with self._database.read() as connection:
            list(checked_rows(connection, (ModelNumber | None,), used))
            query = f"SELECT * FROM models WHERE number = ({used})"
            found = list(checked_rows(connection, types_of(ModelVersion), query))
        return ModelVersion(*found[0]) if found else None

    def all(self) -> list[ModelVersion]:
        """Return all versions, the oldest first."""
        rows = self._database.checked(types_of(ModelVersion), "SELECT * FROM models ORDER BY number")
        return [ModelVersion(*row) for row in rows]
