"""The file itself: flushed, locked, migrated, copied; and errors of the disk."""

import os
import shutil
import sqlite3
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from slatewise.core.errors import ProjectError
from slatewise.labeling import Item, Project
from slatewise.labeling.store import schema


def version_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_the_connection_that_writes_flushes_every_transaction(project):
    with project._database.write() as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "foreign_keys", "secure_delete", "recursive_triggers")
        }
    full = 2
    assert settings == {
        "synchronous": full, "journal_mode": "wal", "foreign_keys": 1, "secure_delete": 1, "recursive_triggers": 1
    }  # fmt: skip


def test_connections_that_read_cannot_write(project):
    with pytest.raises(ProjectError, match="must not be written"), project._database.read() as connection:
        connection.execute("DELETE FROM leases")


def test_a_full_disk_is_an_error_and_loses_nothing(project, ann):
    project.answer(0, 0, 1, ann)
    with project._database.write() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    taken: list[Item] = []

    def fill():
        while True:
            item = Item(f"new {len(taken)}", "text", "word " * 500)
            project.items.add([item])
            taken.append(item)

    with pytest.raises(ProjectError, match=r"tags.db: expected .*, found no room: free some space"):
        fill()
    assert project.items.all()[4:] == taken
    assert project.known().values[0, 0] == 1
    with project._database.write() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    project.items.add([Item("at last", "text", "word " * 500)])
    assert project.problems() == []


def test_a_failed_block_leaves_no_trace(project, ann):
    def interrupted():
        with project._database.write() as connection:
            connection.execute("INSERT INTO settings VALUES ('a', '1')")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert project.settings.get("a") is None
    project.answer(0, 0, 1, ann)


def test_a_project_is_read_while_another_process_could_write(project, ann):
    with Project.open(project.path, readonly=True) as reader:
        project.answer(0, 0, 1, ann)
        assert reader.known().values[0, 0] == 1
        with pytest.raises(
            ProjectError, match="expected a project that is open for writing, found one opened for read"
        ):
            reader.answer(0, 0, 1, ann)


def as_nobody(action):
    """Whether ``action`` succeeds in a process of a user who owns nothing; the errors it prints are its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_project_that_must_not_be_written_can_be_read():
    folder = Path(tempfile.mkdtemp())
    try:
        with Project.create(folder / "tags.db", ["sea"], [Item("a", "text", "x")]) as project:
            project.answer(0, 0, 1, project.people.number("Ann"))
        (folder / "tags.db").chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        folder.chmod(0o555)

        def read():
            with Project.open(folder / "tags.db", readonly=True) as project:
                assert project.known().values.tolist() == [[1]]

        def write():
            with pytest.raises(ProjectError, match=r"must not be written|cannot be opened"):
                Project.open(folder / "tags.db")
            with pytest.raises(ProjectError, match="Permission denied"):
                Project.create(folder / "other.db", ["sea"])
            with pytest.raises(ProjectError, match="to lock beside it"):
                Project.open(folder / "tags.db", serve=True)

        assert as_nobody(read)
        assert as_nobody(write)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a labeling project, found no such file"),
        (b"", "expected a labeling project, found another SQLite file"),
        (b"photo,tags\na.jpg,sky\n" * 100, "found something else"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"readonly": True}, {"serve": True}])
def test_other_files_are_no_projects(tmp_path, content, message, options):
    file = tmp_path / "tags.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ProjectError, match=message):
        Project.open(file, **options)
    assert content is None or file.read_bytes() == content


def test_another_database_is_no_project(tmp_path):
    change(tmp_path / "other.db", "CREATE TABLE t (x)", "PRAGMA user_version = 1")
    with pytest.raises(ProjectError, match="found another SQLite file"):
        Project.open(tmp_path / "other.db")


def test_a_damaged_project_is_an_error(project, ann):
    project.close()
    with open(project.path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 20)
    with Project.open(project.path) as damaged:
        with pytest.raises(ProjectError, match="damaged"):
            damaged.known()
        with pytest.raises(ProjectError, match="damaged"):
            damaged.answer(0, 0, 1, ann)
        assert damaged.problems()


@pytest.mark.parametrize("statement", ["DROP TRIGGER answers_no_UPDATE", "CREATE TABLE more (x)", "DROP VIEW state"])
def test_a_project_with_other_tables_is_refused(project, statement):
    project.close()
    change(project.path, statement)
    with pytest.raises(
        ProjectError, match=r"expected the tables of a project, found others for (answers_no|more|state)"
    ):
        Project.open(project.path)


def test_a_file_is_never_made_over_another(project):
    with pytest.raises(ProjectError, match="expected nothing there yet"):
        Project.create(project.path, ["sea"])
    assert len(project.items) == 4


def test_a_project_of_a_newer_version_is_refused(project):
    project.close()
    change(project.path, "PRAGMA user_version = 99")
    with pytest.raises(ProjectError, match="or older, found version 99: a newer slatewise made it"):
        Project.open(project.path)


def test_a_project_of_slatewise_0_2_is_refused(project):
    project.close()
    change(project.path, "PRAGMA user_version = 1")
    with pytest.raises(ProjectError, match=r"found one of slatewise 0\.2: export its answers there and import them"):
        Project.open(project.path)


def test_an_older_project_is_migrated_after_a_backup(project, ann, monkeypatch):
    project.answer(0, 0, 1, ann)
    project.close()
    before = schema.FIRST + len(schema.STEPS) - 1
    step = ("ALTER TABLE settings ADD COLUMN since INTEGER", "UPDATE settings SET since = 0")
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, step))
    with pytest.raises(ProjectError, match=f"found version {before}: open it for writing once"):
        Project.open(project.path, readonly=True)
    with Project.open(project.path) as migrated:
        assert migrated.known().values[0, 0] == 1
    assert version_of(project.path) == before + 1
    assert version_of(f"{project.path}.v{before}.bak") == before
    Project.open(project.path, readonly=True).close()


def test_a_migration_that_fails_changes_nothing(project, monkeypatch):
    project.close()
    before = schema.FIRST + len(schema.STEPS) - 1
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ("DROP TABLE leases", "DROP TABLE nowhere")))
    with pytest.raises(ProjectError, match="no such table: nowhere"):
        Project.open(project.path)
    monkeypatch.undo()
    assert version_of(project.path) == before
    Project.open(project.path).close()


def test_the_second_server_is_refused(project):
    project.close()
    with Project.open(project.path, serve=True):
        with pytest.raises(ProjectError, match=f"no other server serves, found it is served by process {os.getpid()}"):
            Project.open(project.path, serve=True)
        Project.open(project.path).close()  # one more that writes: a token made while the server runs
    Project.open(project.path, serve=True).close()


def test_a_copy_made_while_others_write_is_whole(project, ann, tmp_path):
    project._database._writer.execute("PRAGMA synchronous = OFF")
    enough = Event()

    def write():
        while not enough.is_set():
            project.answer(0, 0, 1, ann)

    writer = Thread(target=write)
    writer.start()
    try:
        copies = [tmp_path / f"copy {number}.db" for number in range(3)]
        for copy in copies:
            project.backup(copy)
    finally:
        enough.set()
        writer.join()
    lengths = []
    for copy in copies:
        with Project.open(copy, readonly=True) as opened:
            assert opened.problems() == []
            lengths.append(len(list(opened.answers(every=True))))
            assert lengths[-1] == opened.last_act()
    assert lengths == sorted(lengths)


def test_many_threads_write_and_read(project):
    project._database._writer.execute("PRAGMA synchronous = OFF")
    people = [project.people.number(f"person {number}") for number in range(6)]

    def work(who):
        numbers = []
        for number in range(20):
            numbers.append(project.answer(number % 4, number % 3, number % 2, who))
            assert project.state(number % 4, who).values[number % 3] == number % 2
        return numbers

    with ThreadPoolExecutor(6) as threads:
        numbers = [number for done in threads.map(work, people) for number in done]
    assert sorted(numbers) == list(range(1, 121))
    assert len(list(project.answers(every=True))) == 120
    assert len(project._database._idle) <= 6


def test_a_closed_project_says_so(project, ann):
    project.close()
    project.close()
    for action in (lambda: project.answer(0, 0, 1, ann), project.known):
        with pytest.raises(ProjectError, match="closed"):
            action()
