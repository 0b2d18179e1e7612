"""The tables of a project, one class each: people, tokens, labels, items, versions of the model, settings, audit log.

They are attributes of :class:`slatewise.labeling.Project`. Items and labels are numbered from 0 in the order in which
they were added, and keep their numbers; a label may be renamed. All versions of the model are kept and one is in use:
going back to an earlier one adds one row. Rows of the audit log stay for ever, so they contain no names.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Container, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast, get_args

from slatewise.core.rules import short_repr
from slatewise.labeling.store.acts import Numbers, check_name, check_word, new_number, whole
from slatewise.labeling.store.database import Damaged, Database, checked_rows, counted, types_of
from slatewise.labeling.store.leases import now
from slatewise.labeling.store.records import (
    Between,
    Item,
    ItemNumber,
    Kind,
    LabelNumber,
    Logged,
    ModelNumber,
    ModelVersion,
    Person,
    Token,
)
from slatewise.web.tokens import ROLES, Role


class _Table:
    def __init__(self, database: Database) -> None:
        self._database = database


class People(_Table):
    """The people of a project, as ``project.people``."""

    def number(self, name: str) -> int:
        """Return the number of the annotator with this name, who is added if there is none."""
        check_name("annotator", name)
        query = "SELECT number FROM annotators WHERE name = ?"
        found = self._database.checked((int,), query, name)
        if found:
            return found[0][0]
        with self._database.write() as connection:
            row = (name, f"someone-{secrets.token_hex(4)}")
            connection.execute("INSERT OR IGNORE INTO annotators (name, pseudonym) VALUES (?, ?)", row)
            for (number,) in connection.execute(query, (name,)):
                return number
            raise Damaged("an index that lost an annotator")

    def all(self) -> list[Person]:
        """Return all people who answered or may answer."""
        rows = self._database.checked(types_of(Person), "SELECT * FROM annotators ORDER BY number")
        return [Person(*row) for row in rows]

    def forget(self, number: int) -> str:
        """Remove a person's name from the file; return the pseudonym that the answers keep. The person's tokens end.

        Backups and exports of before still have the name.
        """
        with self._database.write() as connection:
            number = Numbers(connection).check("annotator", number)
            query = "SELECT pseudonym FROM annotators WHERE number = ?"
            ((pseudonym,),) = checked_rows(connection, (str,), query, (number,))
            connection.execute("UPDATE annotators SET name = NULL WHERE number = ?", (number,))
            ended = (now(), number)
            connection.execute("UPDATE tokens SET revoked = ? WHERE annotator = ? AND revoked IS NULL", ended)
            log(connection, "forget annotator", None, {"annotator": number})
        self._database.forget_the_past()
        return pseudonym


class Tokens(_Table):
    """The tokens of a project, as ``project.tokens``; :mod:`slatewise.web.tokens` makes and checks them."""

    def add(self, digest: str, role: Role, annotator: int) -> int:
        """Register the digest of a secret; return the token's number."""
        with self._database.write() as connection:
            annotator = Numbers(connection).check("annotator", annotator)
            row = (digest, check_word("role", role, ROLES), annotator, now())
            query = "INSERT INTO tokens (digest, role, annotator, created) VALUES (?, ?, ?, ?)"
            number = new_number(connection.execute(query, row))
            log(connection, "add token", annotator, {"token": number, "role": role})
            return number

    def all(self) -> list[Token]:
        """Return all tokens, also those that ended."""
        rows = self._database.checked(types_of(Token), "SELECT * FROM tokens ORDER BY number")
        return [Token(*row) for row in rows]

    def revoke(self, number: int) -> None:
        """End a token."""
        with self._database.write() as connection:
            number = Numbers(connection).check("token", number)
            ended = (now(), number)
            connection.execute("UPDATE tokens SET revoked = ? WHERE number = ? AND revoked IS NULL", ended)
            log(connection, "revoke token", None, {"token": number})


_BY_NAME = "SELECT number FROM labels WHERE name = ?1 UNION ALL SELECT label FROM former_names WHERE name = ?1 LIMIT 1"


class Labels(_Table):
    """The labels of a project, as ``project.labels``."""

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
    """Raise ValueError if a label has this name, or if another one than ``renamed`` had it."""
    check_name("label", name)
    if connection.execute("SELECT 1 FROM labels WHERE name = ?", (name,)).fetchone() is not None:
        raise ValueError(f"label: expected every label once, found {short_repr(name)} again")
    former = connection.execute("SELECT label FROM former_names WHERE name = ?", (name,)).fetchone()
    if former is not None and former[0] != renamed:
        raise ValueError(f"label: expected a name that no other label had before, found {short_repr(name)}")


_ITEM_KINDS, _FILES = get_args(Kind), ("image", "audio")
_ITEM_TYPES = (str, Kind, str, str | None)
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_ITEMS = "SELECT id, kind, content, path FROM items LEFT JOIN folders ON folders.number = items.folder"


class Items(_Table):
    """The items of a project, as ``project.items``; ``project.items[3]`` is the item with number 3."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._home = database.path.resolve().parent

    def __len__(self) -> int:
        with self._database.read() as connection:
            return counted(connection, "items")

    def __getitem__(self, number: int) -> Item:
        found = self._items("WHERE items.number = ?", whole("item", number))
        if not found:
            raise IndexError(f"item: expected the number of one that is there, found {number}")
        return found[0]

    def all(self) -> list[Item]:
        """Return all items by number."""
        return self._items("ORDER BY items.number")

    def number(self, id: str) -> int:
        """Return the number of the item with this id."""
        found = self._database.checked((ItemNumber,), "SELECT number FROM items WHERE id = ?", id)
        if not found:
            raise ValueError(f"item: expected the id of an item, found {short_repr(id)}")
        return found[0][0]

    def add(self, items: Iterable[Item]) -> None:
        """Add items after those that are there; their folders are registered."""
        with self._database.write() as connection:
            seen = {item_id for (item_id,) in connection.execute("SELECT id FROM items")}
            folders: dict[Path, int] = {}
            for number, item in enumerate(items, counted(connection, "items")):
                _check_item(item, seen)
                seen.add(item.id)
                if item.folder is not None and item.folder not in folders:
                    folders[item.folder] = self._registered(connection, item.folder)
                folder = None if item.folder is None else folders[item.folder]
                row = (number, item.id, item.kind, item.content, folder)
                connection.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", row)

    def folders(self) -> list[Path]:
        """Return the folders that hold files of items; no file elsewhere belongs to the project."""
        found = self._database.checked((str,), "SELECT path FROM folders ORDER BY number")
        return [self._home / path for (path,) in found]

    def _items(self, where: str, *arguments: object) -> list[Item]:
        with self._database.read() as connection:
            counted(connection, "items")  # their numbers are their places
            items = [
                Item(item_id, kind, content, None if path is None else self._home / path)
                for item_id, kind, content, path in checked_rows(
                    connection, _ITEM_TYPES, f"{_ITEMS} {where}", arguments
                )
            ]
            for item in items:
                if (item.kind in _FILES) != (item.folder is not None):
                    raise Damaged(f"folder {short_repr(item.folder)} of {short_repr(item.id)}")
        return items

    def _registered(self, connection: sqlite3.Connection, folder: Path) -> int:
        """Return the number of a folder; one below that of the project is kept relative, so that both can move."""
        resolved = folder.resolve()
        if not resolved.is_dir():
            raise ValueError(f"folder: expected a folder that is there, found {short_repr(str(folder))}")
        stored = resolved.relative_to(self._home) if resolved.is_relative_to(self._home) else resolved
        connection.execute("INSERT OR IGNORE INTO folders (path) VALUES (?)", (stored.as_posix(),))
        return connection.execute("SELECT number FROM folders WHERE path = ?", (stored.as_posix(),)).fetchone()[0]


def _check_item(item: Item, seen: Container[str]) -> None:
    check_name("id", item.id)
    if item.id in seen:
        raise ValueError(f"id: expected every item once, found {short_repr(item.id)} again")
    if item.kind not in _ITEM_KINDS:
        raise ValueError(f"kind: expected one of {_ITEM_KINDS}, found {short_repr(item.kind)}")
    is_file = item.kind in _FILES
    if is_file != (item.folder is not None):
        expected = "the folder of a file" if is_file else "no folder with a text or a link"
        raise ValueError(f"folder: expected {expected}, found {short_repr(item.folder)} of {short_repr(item.id)}")
    if is_file and not _is_inside(item.content):
        raise ValueError(f"content: expected a path inside the folder, found {short_repr(item.content)}")
    if item.kind == "link" and not item.content.startswith(("http://", "https://")):
        raise ValueError(f"content: expected an address that starts with http, found {short_repr(item.content)}")
    if _UNWRITABLE.search(item.content):
        raise ValueError(f"content: expected text that UTF-8 can say, found {short_repr(item.content)}")


def _is_inside(path: str) -> bool:
    """Whether a path with slashes can only lead below a folder; what links there do is looked at when it is read."""
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not path.startswith("/") and not set(path) & {"\\", "\0", ":"}


_LAST = Annotated[int, Between(0, 1 << 62)]  # others follow


class ModelVersions(_Table):
    """The versions of the model, as ``project.models``."""

    def add(self, path: str, *, note: str = "", last_act: int = 0) -> int:
        """Register a version that learned from acts up to ``last_act``; return its number. It is not in use yet."""
        with self._database.write() as connection:
            row = (path, now(), note, whole("last_act", last_act))
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
            rows = [(number, "", now(), note, 0) for number in adopted.values()]
            connection.executemany("INSERT INTO models VALUES (?, ?, ?, ?, ?)", rows)
            return adopted

    def use(self, number: int | None, annotator: int | None = None) -> None:
        """Put a version in use, an earlier one to roll back, None for none."""
        with self._database.write() as connection:
            used = None if number is None else Numbers(connection).check("model", number)
            connection.execute("INSERT INTO model_uses (model, time) VALUES (?, ?)", (used, now()))
            log(connection, "use model", annotator, {"model": used})

    def current(self) -> ModelVersion | None:
        """Return the version in use, None if there is none."""
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


def as_json(text: str) -> Any:
    """Return what a text of the file says; raise Damaged if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"no JSON but {short_repr(text)}") from None


class Settings(_Table):
    """The settings of a project, as ``project.settings``."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, ``default`` if it was never set."""
        with self._database.read() as connection:
            for (text,) in checked_rows(connection, (str,), "SELECT value FROM settings WHERE name = ?", (name,)):
                return as_json(text)
        return default

    def set(self, name: str, value: Any) -> None:
        """Keep a setting."""
        text = json.dumps(value, allow_nan=False)
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, text))


class AuditLog(_Table):
    """The audit log of a project, as ``project.audit``."""

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
    row = (now(), annotator, what, json.dumps(detail))
    connection.execute("INSERT INTO audit (time, annotator, what, detail) VALUES (?, ?, ?, ?)", row)
