"""A labeling project: one SQLite file with items, labels, and all answers of people.

Items and labels are numbered from 0 in the order in which they were added, and keep their numbers: they are rows and
columns of what models see. See :mod:`slatewise.labeling.store.schema` for what an act is, and ADR 23 for why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from slatewise.labeling.store.acts import Numbers, whole
from slatewise.labeling.store.database import Database, checked_rows, counted, remove, types_of
from slatewise.labeling.store.known_labels import KnownLabels, Votes
from slatewise.labeling.store.leases import Leases, ServerLock, now
from slatewise.labeling.store.records import (
    Act,
    ActKind,
    Answer,
    AnswerValue,
    Given,
    How,
    Item,
    ItemAnswers,
    ItemNumber,
    LabelNumber,
    Mark,
    Recorded,
    Undone,
)
from slatewise.labeling.store.tables import AuditLog, Items, Labels, ModelVersions, People, Settings, Tokens

PROJECT_FILE = "project.db"
"""The file of a project that has a folder of its own."""
_OF_ONE = "WHERE item = ? AND annotator = ?"
_STANDING = "(SELECT *, 0 AS undone FROM state)"
_EVERY = """(
    SELECT answers.*, acts.*, EXISTS (SELECT 1 FROM acts AS later WHERE later.undoes = acts.number) AS undone
    FROM acts JOIN answers ON answers.act = acts.number
)"""


class Project:
    """Everything about one labeling project; safe to use from any thread, and by several processes at once.

    Make one with :meth:`create`, open one with :meth:`open`, and use it as a context. What a method that writes returns
    is on the disk. Errors of the disk are a :class:`slatewise.errors.ProjectError` and leave everything as it was.
    Items, labels, annotators and versions of the model are meant by their numbers.

    Attributes
    ----------
    items, labels
        What is labeled, and with what.
    people, tokens
        Who answers, and who may enter.
    leases
        Who works on what at the moment.
    models
        The versions of the model.
    settings, audit
        How to label; and who changed what besides answers.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     texts = [Item("a", "text", "Waves on a beach."), Item("b", "text", "A street at night.")]
    ...     with Project.create(Path(folder, "tags.db"), ["sea", "sky"], texts) as project:
    ...         ann = project.people.number("Ann")
    ...         _ = project.answer(0, 0, 1, ann)
    ...         _ = project.answer(0, 1, 0, ann)
    ...         undone = project.undo(ann)
    ...         project.known().values.tolist(), undone.labels
    ([[1, -1], [-1, -1]], (1,))
    """

    def __init__(self, database: Database, lock: ServerLock | None = None) -> None:
        self._database, self._lock = database, lock
        self.items, self.labels = Items(database), Labels(database)
        self.people, self.tokens = People(database), Tokens(database)
        self.leases, self.models = Leases(database), ModelVersions(database)
        self.settings, self.audit = Settings(database), AuditLog(database)

    @classmethod
    def create(cls, path: str | os.PathLike[str], labels: Iterable[str], items: Iterable[Item] = ()) -> Project:
        """Make a new project; the file must not be there yet.

        Parameters
        ----------
        path
            The file.
        labels
            Names, each once, not empty and without blanks around them.
        items
            What is to be labeled; ids each once. More can be added later, of labels too.
        """
        file = Path(path)
        project = cls(Database.create(file))
        try:
            project.labels.add(labels)
            project.items.add(items)
        except BaseException:
            project.close()
            remove(file)
            raise
        return project

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, serve: bool = False, readonly: bool = False) -> Project:
        """Open a project; one of an older version is migrated, after a backup beside it.

        Parameters
        ----------
        path
            The file.
        serve
            Whether to be the one server of this project until it is closed: a second is refused. Processes that this
            one forks would hold the lock too; start others.
        readonly
            Whether only to read: also where nothing can be written.
        """
        file = Path(path)
        lock = ServerLock(file) if serve and file.is_file() else None
        try:
            project = cls(Database(file, readonly=readonly), lock)
            if serve:
                project.leases.drop_impossible()
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return project

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @property
    def name(self) -> str:
        """What to call it: the name of its folder, where that is the project's own, else of the file."""
        path = self.path.resolve()
        return path.parent.name if path.name == PROJECT_FILE else path.stem

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the project as it is now into one file, while others go on writing."""
        self._database.backup(Path(path))

    def problems(self) -> list[str]:
        """Return what is damaged in the file, nothing if it is sound; reads all of it."""
        return self._database.problems()

    def answer(
        self,
        item: int,
        label: int,
        value: int,
        annotator: int,
        *,
        how: How = "question",
        milliseconds: int | None = None,
        model: int | None = None,
        probability: float | None = None,
    ) -> int:
        """Record an answer; return the number of the act. It replaces the same person's earlier answer to the label.

        Parameters
        ----------
        item, label, annotator
            Numbers.
        value
            1 yes, 0 no, -1 don't know.
        how
            "question", "volunteered", or "reviewed": a reviewer's answer settles a dispute.
        milliseconds
            How long it took.
        model, probability
            The version of the model in use, and what it believed before.
        """
        given = (Given(label, value, how, probability),)
        return self.record([Act("answer", item, annotator, given, None, milliseconds, model)])[0]

    def done(
        self,
        item: int,
        annotator: int,
        shown: Mapping[int, float | None] | Sequence[int] = (),
        *,
        milliseconds: int | None = None,
        model: int | None = None,
    ) -> int:
        """Record that a person is done with an item; return the number of the act.

        Parameters
        ----------
        item, annotator
            Numbers.
        shown
            The labels that the page listed because of the model, not because of a yes of the person; or a mapping to
            what the model believed. Labels without an answer become a no, as "closed". Labels that the person
            volunteered count as answers to a question from now on, as "confirmed": the person saw the list.
        milliseconds, model
            As of :meth:`answer`.
        """
        beliefs = dict(shown) if isinstance(shown, Mapping) else dict.fromkeys(shown)
        with self._database.write() as connection:
            numbers = Numbers(connection)
            own = (numbers.check("item", item), numbers.check("annotator", annotator))
            query = f"SELECT label, value, how FROM state {_OF_ONE}"
            rows = checked_rows(connection, (LabelNumber, AnswerValue, How), query, own)
            before = {label: (value, how) for label, value, how in rows}
            given: list[Given] = []
            for label, probability in beliefs.items():
                value, how = before.get(label, (0, None))
                if how is None:
                    given.append(Given(label, 0, "closed", probability))
                elif how == "volunteered" and value >= 0:
                    given.append(Given(label, value, "confirmed", probability))
            act = Act("done", item, annotator, tuple(given), None, milliseconds, model)
            return numbers.insert(act, now())

    def skip(self, item: int, annotator: int, *, milliseconds: int | None = None, model: int | None = None) -> int:
        """Record that a person leaves an item to others; return the number of the act."""
        return self.record([Act("skip", item, annotator, (), None, milliseconds, model)])[0]

    def undo(self, annotator: int, item: int | None = None) -> Undone | None:
        """Take back the person's last act that stands, of any item or of one; return it, None if there is none.

        What it superseded stands again. An undo is an act too, and cannot be undone: answer again.
        """
        with self._database.write() as connection:
            numbers = Numbers(connection)
            annotator = numbers.check("annotator", annotator)
            only, one = ("", ()) if item is None else ("AND item = ?", (numbers.check("item", item),))
            query = f"SELECT number, kind, item FROM standing WHERE annotator = ? {only} ORDER BY number DESC LIMIT 1"
            last = list(checked_rows(connection, (int, ActKind, ItemNumber), query, (annotator, *one)))
            if not last:
                return None
            ((number, kind, where),) = last
            connection.execute(
                "INSERT INTO acts (kind, item, annotator, time, undoes) VALUES ('undo', ?, ?, ?, ?)",
                (where, annotator, now(), number),
            )
            query = "SELECT label FROM answers WHERE act = ? ORDER BY label"
            labels = checked_rows(connection, (LabelNumber,), query, (number,))
            return Undone(number, kind, where, tuple(label for (label,) in labels))

    def record(self, acts: Iterable[Act]) -> list[int]:
        """Record acts, all or none of them; return their numbers."""
        with self._database.write() as connection:
            numbers, time = Numbers(connection), now()
            return [numbers.insert(act, time) for act in acts]

    def state(self, item: int, annotator: int) -> ItemAnswers:
        """Return where a person stands with an item."""
        own = (whole("item", item), whole("annotator", annotator))
        with self._database.read() as connection:
            n_labels = counted(connection, "labels")
            values, answered = np.full(n_labels, -1, dtype=np.int8), np.zeros(n_labels, dtype=np.bool_)
            query = f"SELECT label, value FROM state {_OF_ONE}"
            for label, value in checked_rows(connection, (LabelNumber, AnswerValue), query, own):
                values[label], answered[label] = value, True
            mark = connection.execute(f"SELECT kind FROM marks {_OF_ONE}", own).fetchone()
        return ItemAnswers(values, answered, "open" if mark is None else mark[0])

    def known(self) -> KnownLabels:
        """Return what is known of all items, by majority; see :mod:`slatewise.labeling.store.known_labels`."""
        with self._database.read() as connection:
            shape = counted(connection, "items"), counted(connection, "labels")
            return Votes.read(connection).known(shape)

    def votes(self, item: int | None = None) -> Votes:
        """Return the answers of all people to all items, or to one, as columns: for counts."""
        number = None if item is None else whole("item", item)
        with self._database.read() as connection:
            return Votes.read(connection, number)

    def answers(
        self, item: int | None = None, annotator: int | None = None, *, every: bool = False
    ) -> Iterator[Answer]:
        """Iterate over the answers that stand, in the order in which they were given.

        Parameters
        ----------
        item, annotator
            Only those of one item, or of one person.
        every
            Whether to give every answer ever given, also those superseded or undone.
        """
        given = {"item": item, "annotator": annotator}
        wanted = {name: whole(name, value) for name, value in given.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        columns, table = ", ".join(Answer._fields), _EVERY if every else _STANDING
        query = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY act, label"
        with self._database.read() as connection:
            for row in checked_rows(connection, types_of(Answer), query, tuple(wanted.values())):
                yield Answer._make((*row[:-1], bool(row[-1])))

    def marks(self) -> list[Mark]:
        """Return who is done with what, and who skipped what, in the order of their acts."""
        query = f"SELECT {', '.join(Mark._fields)} FROM marks ORDER BY act"
        rows = self._database.checked(types_of(Mark), query)
        return [Mark(*row) for row in rows]

    def last_act(self, annotator: int | None = None) -> int:
        """Return the number of the last act, of everybody or of one person, 0 if there is none.

        Whatever is done later has a larger one.
        """
        where, who = ("", ()) if annotator is None else ("WHERE annotator = ?", (whole("annotator", annotator),))
        return self._database.rows(f"SELECT coalesce(max(number), 0) FROM acts {where}", *who)[0][0]

    def acts_after(self, act: int) -> dict[int, int]:
        """Return the items that anybody did something to after an act, and the last act of each."""
        query = "SELECT item, max(number) FROM acts WHERE number > ? GROUP BY item"
        return dict(self._database.checked((ItemNumber, int), query, whole("act", act)))

    def n_acts(self, item: int) -> int:
        """Return how many acts there are of an item, undone or not: the number changes whenever anything does."""
        return self._database.rows("SELECT count(*) FROM acts WHERE item = ?", whole("item", item))[0][0]

    def recorded_after(self, act: int, annotator: int, most: int = 2) -> list[Recorded]:
        """Return the first acts of a person after one, undone or not: so that nothing is recorded twice."""
        query = """
            SELECT number, kind, item, label, value
            FROM acts LEFT JOIN answers ON answers.act = acts.number AND kind = 'answer'
            WHERE annotator = ? AND number > ? ORDER BY number, label LIMIT ?
        """
        own = (whole("annotator", annotator), whole("act", act), whole("most", most))
        return [Recorded(*row) for row in self._database.checked(types_of(Recorded), query, *own)]
