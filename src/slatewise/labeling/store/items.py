"""The items of a project, numbered from 0 in the order in which they were added, and the folders of their files."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Container, Iterable
from pathlib import Path, PurePosixPath
from typing import get_args

from slatewise.core.rules import short_repr
from slatewise.labeling.store.acts import check_name, whole
from slatewise.labeling.store.database import Damaged, Database, checked_rows, counted
from slatewise.labeling.store.records import Item, ItemNumber, Kind

_KINDS, _FILES = get_args(Kind), ("image", "audio")
_TYPES = (str, Kind, str, str | None)
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_ITEMS = "SELECT id, kind, content, path FROM items LEFT JOIN folders ON folders.number = items.folder"


class Items:
    """Reached as ``project.items``; ``project.items[3]`` is the item with number 3."""

    def __init__(self, database: Database) -> None:
        self._database = database
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
                _check(item, seen)
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
                for item_id, kind, content, path in checked_rows(connection, _TYPES, f"{_ITEMS} {where}", arguments)
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


def _check(item: Item, seen: Container[str]) -> None:
    check_name("id", item.id)
    if item.id in seen:
        raise ValueError(f"id: expected every item once, found {short_repr(item.id)} again")
    if item.kind not in _KINDS:
        raise ValueError(f"kind: expected one of {_KINDS}, found {short_repr(item.kind)}")
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
