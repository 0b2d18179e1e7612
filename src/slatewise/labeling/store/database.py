"""The SQLite file of a project: one connection that writes, a few that read, and sentences for what can go wrong.

A write is on the disk when :meth:`Database.write` returns (write-ahead log, ``synchronous=FULL``: one flush per
transaction), or has left no trace. Readers see a snapshot and never wait for a writer. All of it may be used from any
thread.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import RLock
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from slatewise.core.errors import ProjectError
from slatewise.core.files import atomic_path
from slatewise.core.rules import short_repr
from slatewise.labeling.store import schema
from slatewise.labeling.store.records import Between

_WAIT_SECONDS = 10.0
"""For another process that writes at the moment."""
_FOUND = {
    sqlite3.SQLITE_FULL: "no room: free some space and try again; all earlier answers are saved",
    sqlite3.SQLITE_READONLY: "a file or folder that must not be written to; all earlier answers are saved",
    sqlite3.SQLITE_CANTOPEN: "a file that cannot be opened, or a folder where no file can be made",
    sqlite3.SQLITE_NOTADB: "something else",
    sqlite3.SQLITE_CORRUPT: "a damaged one: take a backup",
    sqlite3.SQLITE_BUSY: f"one that another process kept busy for {_WAIT_SECONDS:g} s",
    sqlite3.SQLITE_IOERR: "a disk that fails",
}


_AT_ONCE = 1 << 12
_NUMBERED = ("items", "labels")
"""From 0, without a gap."""
_Within: TypeAlias = "str | Between | frozenset[object] | None"


class Damaged(sqlite3.DatabaseError):
    """A row that no project has; raised inside of :meth:`Database.read` and :meth:`Database.write`, which report it."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class Database:
    """An open project file; ``readonly`` never writes, not even the log beside it where that can be avoided."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path, self.readonly = path, readonly
        if not path.is_file():
            raise ProjectError(f"{path}: expected a labeling project, found no such file")
        self._lock = RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        with _InWords(self.path):
            with self.read() as connection:
                version = _version(path, connection)
            if version < _newest():
                self._migrate(version)
            with self.read() as connection:
                strange = {name for _, name, _ in _tables(connection) ^ _tables_after(schema.STEPS)}
                if strange:  # what keeps answers is in tables, views and triggers
                    others = ", ".join(sorted(strange))
                    raise ProjectError(f"{path}: expected the tables of a project, found others for {others}")
            if not readonly:
                self._writer = _writing(path)

    @classmethod
    def create(cls, path: Path) -> Database:
        """Make a new project file."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            raise ProjectError(f"{path}: expected nothing there yet, found a file") from None
        except OSError as error:
            raise ProjectError(f"{path}: expected a place for a new file, found {error.strerror}") from None
        try:
            with _InWords(path), closing(_writing(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
                _take_steps(connection, schema.FIRST - 1)
                connection.execute("COMMIT")
            return cls(path)
        except BaseException:
            remove(path)
            raise

    @contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Yield the writing connection, alone, in a transaction that is on the disk when the block ends well."""
        with self._lock, _InWords(self.path):
            if self._writer is None:
                opened = "closed" if self._closed else "opened for reading only"
                raise ProjectError(f"{self.path}: expected a project that is open for writing, found one {opened}")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # SQLite itself gives some up
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Yield a connection that sees the project as it is now, to the end of the block."""
        with _InWords(self.path):
            if self._closed:
                raise ProjectError(f"{self.path}: expected a project that is open, found one closed")
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = _reading(self.path)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._idle.append(connection)
                if self._closed:
                    self._close_idle()

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        """Return what a query finds, unchecked."""
        with self.read() as connection:
            return connection.execute(query, arguments).fetchall()

    def checked(self, types: tuple[Any, ...], query: str, *arguments: Any) -> list[Any]:
        """Return what :func:`checked_rows` yields."""
        with self.read() as connection:
            return list(checked_rows(connection, types, query, arguments))

    def backup(self, target: Path) -> None:
        """Copy the project as it is now, whatever is written meanwhile; the copy appears whole or not at all."""
        with (
            atomic_path(target) as temporary,
            self.read() as connection,
            closing(sqlite3.connect(temporary)) as copy,
        ):
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # so that it is one file; opening makes it WAL again

    def forget_the_past(self) -> None:
        """Move all that the log holds into the file and empty the log; what was deleted is then in neither."""
        with self._lock, _InWords(self.path):
            assert self._writer is not None
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise ProjectError(f"{self.path}: the project file is locked by another process; close it and retry")

    def problems(self) -> list[str]:
        """Return what SQLite finds wrong in the whole file; it reads all of it."""
        try:
            found = [str(row[0]) for row in self.rows("PRAGMA integrity_check") if row[0] != "ok"]
            lost = self.rows("PRAGMA foreign_key_check") if not found else ()
        except ProjectError as error:
            return [str(error)]
        return found + [f"a row of {row[0]} refers to one of {row[2]} that is not there" for row in lost]

    def close(self) -> None:
        """Close all connections; nothing if that was done."""
        with self._lock:
            self._closed = True
            self._close_idle()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _close_idle(self) -> None:
        with suppress(IndexError):  # another thread may take the last one
            while True:
                self._idle.pop().close()

    def _migrate(self, version: int) -> None:
        if self.readonly:
            raise ProjectError(
                f"{self.path}: expected a project of version {_newest()} to read, found version {version}: "
                "open it for writing once"
            )
        self.backup(self.path.with_name(f"{self.path.name}.v{version}.bak"))
        with closing(_writing(self.path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _take_steps(connection, _version(self.path, connection))
            connection.execute("COMMIT")


class _InWords:
    """A context that says in words what SQLite raises."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, UnicodeDecodeError):  # SQLite quotes names that are none
            error = Damaged("names that are no text")
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            found = f"{_FOUND[code]} ({error})" if code in _FOUND else str(error)
            raise ProjectError(f"{self._path}: expected a labeling project that can be used, found {found}") from error


def checked_rows(
    connection: sqlite3.Connection,
    types: tuple[Any, ...],
    query: str,
    arguments: Sequence[Any] | Mapping[str, Any] = (),
) -> Generator[tuple[Any, ...]]:
    """Yield what a query finds; raise :class:`Damaged` unless each column is of its type, as records note it.

    SQLite keeps any value in any column of a file that was damaged, or written past the rules of its tables.
    """
    cursor = connection.execute(query, arguments)
    while rows := cursor.fetchmany(_AT_ONCE):
        for (name, *_), hint, values in zip(cursor.description, types, zip(*rows, strict=True), strict=True):
            strange = _strange(connection, hint, values)
            if strange:
                raise Damaged(f"{name} {short_repr(strange[0])}")
        yield from rows


def counted(connection: sqlite3.Connection, table: str) -> int:
    """Return how many rows are numbered from 0; raise :class:`Damaged` if they are not."""
    ((count,),), (least, most) = connection.execute(f"SELECT count(*) FROM {table}"), _ends(connection, table)
    if count and (least, most) != (0, count - 1):
        raise Damaged(f"{count} {table} with numbers from {short_repr(least)} to {short_repr(most)}")
    return count


@cache
def types_of(record: type) -> tuple[Any, ...]:
    """Return the types of the fields of a record."""
    return tuple(get_type_hints(record, include_extras=True).values())


def _strange(connection: sqlite3.Connection, hint: Any, values: tuple[Any, ...]) -> list[Any]:
    """Return the first value of a column that has the wrong type, in a list; an empty list if there is none."""
    types, within = _meaning(hint)
    if not types.issuperset(map(type, values)):
        return [next(value for value in values if type(value) not in types)]
    if within is None:
        return []
    known = [value for value in values if value is not None]
    if not known:
        return []
    if isinstance(within, str):
        if within in _NUMBERED:  # there may be very many, and :func:`counted` says whether one is missing
            least, most = _ends(connection, within)
            within = Between(least or 0, -1 if most is None else most)
        else:
            within = frozenset(number for (number,) in connection.execute(f"SELECT number FROM {within}"))
    if isinstance(within, Between):
        return [value for value in (min(known), max(known)) if not within.least <= value <= within.most]
    return list(set(known) - within)[:1]


def _ends(connection: sqlite3.Connection, table: str) -> tuple[int | None, int | None]:
    """Return the first and the last number of a table; in two queries, SQLite does not look at all rows."""
    query = f"SELECT (SELECT min(number) FROM {table}), (SELECT max(number) FROM {table})"
    return connection.execute(query).fetchone()


@cache
def _meaning(hint: Any) -> tuple[frozenset[type], _Within]:
    """Return the types in SQLite of a type in Python, and which of their values it has: those of a table, or these."""
    if get_origin(hint) is UnionType or type(None) in get_args(hint):
        (other,) = (part for part in get_args(hint) if part is not NoneType)
        types, within = _meaning(other)
        return types | {NoneType}, within
    if get_origin(hint) is Annotated:
        kind, within = get_args(hint)
        return _meaning(kind)[0], within
    if get_origin(hint) is Literal:
        return frozenset(map(type, get_args(hint))), frozenset(get_args(hint))
    return frozenset({float, int} if hint is float else {int} if hint is bool else {hint}), None


def remove(path: Path) -> None:
    """Remove a project file and what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # a connection is used by one thread at a time
    )


def _writing(path: Path) -> sqlite3.Connection:
    connection = _connected(path, "mode=rw")
    try:
        journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if journal != "wal":
            raise ProjectError(f"{path}: expected a disk of this machine, found one without shared memory ({journal})")
        # recursive_triggers: REPLACE deletes, and what may only be added must see it. secure_delete: a name that is
        # removed is overwritten. trusted_schema: the file may be a stranger's.
        for setting in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _reading(path: Path) -> sqlite3.Connection:
    connection = _connected(path, "mode=ro")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        # On a disk where nothing can be written there is no log to be had; without one the file is all there is.
        cannot = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not cannot or path.with_name(f"{path.name}-wal").exists():
            raise
        connection = _connected(path, "mode=ro&immutable=1")
        connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _version(path: Path, connection: sqlite3.Connection) -> int:
    application, version = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    if application != schema.APPLICATION_ID or version < 1:
        raise ProjectError(f"{path}: expected a labeling project, found another SQLite file")
    if version < schema.FIRST:
        raise ProjectError(
            f"{path}: expected a project of slatewise 0.3 or newer, found one of slatewise 0.2: export its answers "
            "there and import them into a new project"
        )
    if version > _newest():
        raise ProjectError(
            f"{path}: expected a project of version {_newest()} or older, found version {version}: a newer slatewise "
            "made it"
        )
    return version


def _newest() -> int:
    return schema.FIRST + len(schema.STEPS) - 1


def _take_steps(connection: sqlite3.Connection, version: int) -> None:
    for step in schema.STEPS[version - schema.FIRST + 1 :]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_newest()}")


def _tables(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))


@cache
def _tables_after(steps: tuple[schema.Step, ...]) -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in (statement for step in steps for statement in step):
            connection.execute(statement)
        return _tables(connection)
