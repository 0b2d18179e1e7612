"""What one server of a project holds: the project, the state that all people share, and a session per person.

An :class:`AnnotatorSession` does one thing at a time, whatever windows the person has open, and records nothing twice.
"""

from __future__ import annotations

import getpass
import logging
import os
import time
from threading import Lock, RLock

from slatewise.core.errors import ProjectError
from slatewise.labeling.agreement import Agreement
from slatewise.labeling.item_state import WORDS, Visit
from slatewise.labeling.labeling_state import Workbench
from slatewise.labeling.page import responses as bodies
from slatewise.labeling.page.errors import Refused
from slatewise.labeling.page.responses import Report, item_body, view_body
from slatewise.labeling.plan import By
from slatewise.labeling.progress_report import ProgressReport
from slatewise.labeling.retraining import Trainer
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Undone
from slatewise.web.tokens import Role, Visitor

_log = logging.getLogger("slatewise.labeling")
_REPORT_SHARE = 0.05
"""So much of the time at most goes into counting, which reads all answers: until then figures are told again."""


class Desk:
    """All of it may be used from any thread."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.project = Project.open(path, serve=True)
        try:
            if not len(self.project.labels):
                raise ValueError(f"{self.project.path}: expected labels to ask for, found none")
            self.workbench = Workbench(self.project)
            self.trainer = Trainer(self.project)
            self._warm_up()
        except BaseException:
            self.project.close()
            raise
        self._seats: dict[int, Seat] = {}
        self._names: dict[int, str] = {}
        self._lock, self._report_lock = RLock(), Lock()
        self._report: Report | None = None
        self._report_until = 0.0

    def close(self) -> None:
        """End what runs, and close the project."""
        self.trainer.stop()
        self.workbench.close()
        self.project.close()

    def name_of(self, visitor: Visitor, annotator: str | None) -> str:
        """Return who labels: the holder of the token; on a machine of one's own who is named, or the account."""
        if visitor.who is None:
            return check_name("annotator", annotator or _account())
        if visitor.who not in self._names:
            self._names |= {person.number: person.shown for person in self.project.people.all()}
        name = self._names[visitor.who]
        if annotator not in (None, name):
            raise Refused(403, f"annotator: expected the holder of the token, {name}, or nothing")
        return name

    def turn_of(self, visitor: Visitor, annotator: str | None) -> int:
        """Return the number of a person's last act, 0 where there is none; nobody becomes a person by it."""
        name = self.name_of(visitor, annotator)
        numbers = [person.number for person in self.project.people.all() if person.shown == name]
        return self.project.last_act(numbers[0]) if numbers else 0

    def seat(self, visitor: Visitor, annotator: str | None) -> Seat:
        """Return the seat of a person."""
        name = self.name_of(visitor, annotator)
        number = self.project.people.number(name) if visitor.who is None else visitor.who  # a name may be forgotten
        with self._lock:
            if number not in self._seats:
                self._seats[number] = Seat(self.workbench, name)
            return self._seats[number]

    def require(self, visitor: Visitor, role: Role) -> None:
        """Refuse a visitor who may not do what this role may."""
        if not visitor.may(role):
            raise Refused(403, f"role: expected {role}, found {visitor.role}")

    def report(self) -> Report:
        """Return how far the project is, and how much people agree; maybe some seconds ago."""
        with self._report_lock:
            began = time.monotonic()
            if self._report is None or began > self._report_until:
                last = self.project.last_act()
                self._report = Report(last, ProgressReport.of(self.project), Agreement.of(self.project))
                self._report_until = began + (time.monotonic() - began) / _REPORT_SHARE
            return self._report

    def recount(self) -> None:
        """Let the next report be of what is there then."""
        with self._report_lock:
            self._report = None

    def look_after(self) -> None:
        """Train and load what is due; called every few seconds."""
        try:
            self.trainer.poll()
            self.workbench.refresh()
        except (ProjectError, ValueError, OSError) as error:
            _log.warning("looking for a new version of the model: %s", error)
        except Exception:  # it is looked again in any case
            _log.exception("looking for a new version of the model failed")

    def told(self, what: str, client: str, visitor: Visitor | None) -> None:
        """Note who came, left, or showed a wrong token; of the latter from where."""
        detail = {"client": client} if what == "wrong token" else {}
        try:
            self.project.audit.add(what, None if visitor is None else visitor.who, **detail)
        except ProjectError as error:
            _log.warning("%s from %s is not in the audit log: %s", what, client, error)

    def _warm_up(self) -> None:
        """Compute a question once, so that the first person need not wait for the compiler."""
        if len(self.project.items):
            bench = self.workbench.bench
            Visit.of(0, 0, self.project.votes(0), bench).view(bench, ())


def _account() -> str:
    try:
        return check_name("annotator", getpass.getuser())
    except (KeyError, OSError, ValueError):  # an account without a name, or with one that cannot stand in files
        return "me"


_NO_ITEMS = "This project has no items yet."
_NOTHING_LEFT = "Nothing is left for you: every item is done, skipped, or with somebody else at the moment."
_NOTHING_TO_UNDO = "There is nothing to take back."


class Seat:
    """Does one thing at a time, whatever windows the person has open."""

    def __init__(self, workbench: Workbench, name: str) -> None:
        self._workbench, self._project = workbench, workbench.project
        self._session = workbench.session(name)
        self._lock = RLock()

    @property
    def annotator(self) -> int:
        """The number of the person."""
        return self._session.annotator

    def next(self, item: int | None, by: By | None) -> bodies.TurnBody:
        """Leave an item and open the best next one; the open one stays if it is another."""
        with self._lock:
            if self._session.item is None or self._session.item == item:
                self._session.next_item(by)
            return self._turn()

    def answer(self, said: bodies.Answer) -> bodies.TurnBody:
        """Record an answer."""
        with self._lock:
            is_there = self._is_recorded(said.turn, "answer", said.item, said.label, WORDS[said.said])
            self._open(said.item)
            if not is_there:
                self._session.answer(said.label, said.said, milliseconds=said.milliseconds)
            return self._turn()

    def done(self, said: bodies.Done) -> bodies.TurnBody:
        """End an item, and open the next one."""
        with self._lock:
            if not self._is_recorded(said.turn, "done", said.item):
                self._open(said.item)
                self._session.done(said.shown, milliseconds=said.milliseconds)
            return self._with_next()

    def skip(self, said: bodies.Skip) -> bodies.TurnBody:
        """Leave an item to others, and open the next one."""
        with self._lock:
            if not self._is_recorded(said.turn, "skip", said.item):
                self._open(said.item)
                self._session.skip(milliseconds=said.milliseconds)
            return self._with_next()

    def undo(self, said: bodies.Undo) -> bodies.TurnBody:
        """Take the last act back, and open its item."""
        with self._lock:
            if self._is_recorded(said.turn, "undo"):
                return self._turn()
            undone = self._session.undo()
            return self._turn(_NOTHING_TO_UNDO if undone is None else self._undone(undone))

    def settle(self, said: bodies.Settle) -> None:
        """Decide as a reviewer."""
        with self._lock:
            if not self._is_recorded(said.turn, "answer", said.item, said.label, WORDS[said.said]):
                self._session.settle(said.item, said.label, said.said)

    def _is_recorded(
        self, turn: int | None, kind: str, item: int | None = None, label: int | None = None, said: int | None = None
    ) -> bool:
        """Whether this very act is there since ``turn``; refuse it if others are."""
        since = [] if turn is None else self._project.recorded_after(turn, self.annotator)
        if not since:
            return False
        first = since[0]
        same = len(since) == 1 and first.kind == kind and item in (None, first.item)
        if same and (kind != "answer" or (first.label, first.said) == (label, said)):
            return True
        last = self._project.last_act(self.annotator)
        raise Refused(409, f"turn: expected {last}, found {turn}: you went on in another window, which is shown now")

    def _open(self, item: int) -> None:
        if self._session.item != item and not self._session.open(item):
            raise Refused(409, f"item: expected one that you may have, found {item}, which somebody else has now")

    def _with_next(self) -> bodies.TurnBody:
        if self._session.item is None:
            self._session.next_item()
        return self._turn()

    def _turn(self, message: str = "") -> bodies.TurnBody:
        view, number = self._session.view, self._session.item
        if number is None and not message:
            message = _NOTHING_LEFT if len(self._project.items) else _NO_ITEMS
        return bodies.TurnBody(
            annotator=self._session.name,
            turn=self._project.last_act(self.annotator),
            item=None if number is None else item_body(number, self._project.items[number]),
            view=None if view is None else view_body(view),
            message=message,
            names=self._workbench.bench.names_number,
        )

    def _undone(self, undone: Undone) -> str:
        if undone.kind == "answer":
            names = self._project.labels.names()
            return f"Taken back: your answer for {', '.join(names[label] for label in undone.labels)}."
        what = "that you were done with" if undone.kind == "done" else "that you skipped"
        return f"Taken back: {what} {self._project.items[undone.item].id}."
