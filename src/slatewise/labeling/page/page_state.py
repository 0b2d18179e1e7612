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
from slatewise.labeling.item_state import WORDS, ItemState
from slatewise.labeling.labeling_state import LabelingState
from slatewise.labeling.page import bodies
from slatewise.labeling.progress_report import ProgressReport
from slatewise.labeling.retraining import Trainer
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import Undone
from slatewise.web.codec import RequestError
from slatewise.web.tokens import Visitor

_log = logging.getLogger("slatewise.labeling")
_REPORT_SHARE = 0.05
"""The largest share of the time that goes into reports, which read all answers: until then the last report is used."""
_NO_ITEMS = "This project has no items yet."
_NOTHING_LEFT = "Nothing is left for you: every item is done, skipped, or with somebody else at the moment."
_NOTHING_TO_UNDO = "There is nothing to take back."


class PageState:
    """All of it may be used from any thread."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.project = Project.open(path, serve=True)
        try:
            if not len(self.project.labels):
                raise ValueError(f"{self.project.path}: expected labels to ask for, found none")
            self.state = LabelingState(self.project)
            self.trainer = Trainer(self.project)
            if len(self.project.items):  # so that the first person need not wait for the compiler
                snapshot = self.state.snapshot
                ItemState.of(0, 0, self.project.votes(0), snapshot).view(snapshot, ())
        except BaseException:
            self.project.close()
            raise
        self._sessions: dict[int, AnnotatorSession] = {}
        self._names: dict[int, str] = {}
        self._lock, self._report_lock = RLock(), Lock()
        self._report: bodies.Report | None = None
        self._report_until = 0.0

    def close(self) -> None:
        """End what runs, and close the project."""
        self.trainer.stop()
        self.state.close()
        self.project.close()

    def people(self) -> dict[int, str]:
        """Return the names of all people by number."""
        return {person.number: person.shown for person in self.project.people.all()}

    def name_of(self, visitor: Visitor, annotator: str | None) -> str:
        """Return who labels: the holder of the token; on a local site the given name, or the account."""
        if visitor.who is None:
            return check_name("annotator", annotator or _account())
        if visitor.who not in self._names:
            self._names |= self.people()
        name = self._names[visitor.who]
        if annotator not in (None, name):
            raise RequestError("annotator", f"expected the holder of the token, {name}, or nothing", 403)
        return name

    def turn_of(self, visitor: Visitor, annotator: str | None) -> int:
        """Return the number of a person's last act, 0 if there is none; no person is added."""
        name = self.name_of(visitor, annotator)
        numbers = [number for number, shown in self.people().items() if shown == name]
        return self.project.last_act(numbers[0]) if numbers else 0

    def session(self, visitor: Visitor, annotator: str | None) -> AnnotatorSession:
        """Return the session of a person."""
        name = self.name_of(visitor, annotator)
        number = self.project.people.number(name) if visitor.who is None else visitor.who  # a name may be forgotten
        with self._lock:
            if number not in self._sessions:
                self._sessions[number] = AnnotatorSession(self.state, name)
            return self._sessions[number]

    def report(self) -> bodies.Report:
        """Return how far the project is, and how much people agree; maybe some seconds ago."""
        with self._report_lock:
            began = time.monotonic()
            if self._report is None or began > self._report_until:
                last = self.project.last_act()
                self._report = bodies.Report(last, ProgressReport.of(self.project), Agreement.of(self.project))
                self._report_until = began + (time.monotonic() - began) / _REPORT_SHARE
            return self._report

    def recount(self) -> None:
        """Count anew for the next report."""
        with self._report_lock:
            self._report = None

    def run_maintenance(self) -> None:
        """Train and load what is due; called every few seconds."""
        try:
            self.trainer.poll()
            self.state.refresh()
        except (ProjectError, ValueError, OSError) as error:
            _log.warning("looking for a new version of the model: %s", error)
        except Exception:  # the next call tries again
            _log.exception("looking for a new version of the model failed")

    def audit(self, what: str, client: str, visitor: Visitor | None) -> None:
        """Note in the audit log who entered, left, or showed a wrong token; the client only of the latter."""
        detail = {"client": client} if what == "wrong token" else {}
        try:
            self.project.audit.add(what, None if visitor is None else visitor.who, **detail)
        except ProjectError as error:
            _log.warning("%s from %s is not in the audit log: %s", what, client, error)


def _account() -> str:
    try:
        return check_name("annotator", getpass.getuser())
    except (KeyError, OSError, ValueError):  # an account without a name, or with one that cannot stand in files
        return "me"


class AnnotatorSession:
    """The session of a person, for requests that may come twice or from several windows."""

    def __init__(self, state: LabelingState, name: str) -> None:
        self._state, self._project = state, state.project
        self._session = state.session(name)
        self._lock = RLock()

    @property
    def annotator(self) -> int:
        """The number of the person."""
        return self._session.annotator

    def next(self, body: bodies.NextItem) -> bodies.TurnBody:
        """Leave an item and open the best next one; the open one stays if it is another."""
        with self._lock:
            if self._session.item is None or self._session.item == body.item:
                self._session.next_item(body.by)
            return self._turn()

    def answer(self, body: bodies.Answer) -> bodies.TurnBody:
        """Record an answer."""
        with self._lock:
            is_there = self._is_recorded(body.turn, "answer", body.item, body.label, WORDS[body.answer])
            self._open(body.item)
            if not is_there:
                self._session.answer(body.label, body.answer, milliseconds=body.milliseconds)
            return self._turn()

    def done(self, body: bodies.Done) -> bodies.TurnBody:
        """End an item, and open the next one."""
        with self._lock:
            if not self._is_recorded(body.turn, "done", body.item):
                self._open(body.item)
                self._session.done(body.shown, milliseconds=body.milliseconds)
            return self._with_next()

    def skip(self, body: bodies.Skip) -> bodies.TurnBody:
        """Leave an item to others, and open the next one."""
        with self._lock:
            if not self._is_recorded(body.turn, "skip", body.item):
                self._open(body.item)
                self._session.skip(milliseconds=body.milliseconds)
            return self._with_next()

    def undo(self, body: bodies.Undo) -> bodies.TurnBody:
        """Take the last act back, and open its item."""
        with self._lock:
            if self._is_recorded(body.turn, "undo"):
                return self._turn()
            undone = self._session.undo()
            return self._turn(_NOTHING_TO_UNDO if undone is None else self._undone(undone))

    def settle(self, body: bodies.Settle) -> None:
        """Settle a dispute as a reviewer."""
        with self._lock:
            if not self._is_recorded(body.turn, "answer", body.item, body.label, WORDS[body.answer]):
                self._session.settle(body.item, body.label, body.answer)

    def _is_recorded(
        self, turn: int | None, kind: str, item: int | None = None, label: int | None = None, value: int | None = None
    ) -> bool:
        """Return whether this very act was recorded since ``turn``; refuse it if others were."""
        since = [] if turn is None else self._project.recorded_after(turn, self.annotator)
        if not since:
            return False
        first = since[0]
        same = len(since) == 1 and first.kind == kind and item in (None, first.item)
        if same and (kind != "answer" or (first.label, first.value) == (label, value)):
            return True
        last = self._project.last_act(self.annotator)
        message = f"expected {last}, found {turn}: you went on in another window, which is shown now"
        raise RequestError("turn", message, 409)

    def _open(self, item: int) -> None:
        if self._session.item != item and not self._session.open(item):
            message = f"expected one that you may have, found {item}, which somebody else has now"
            raise RequestError("item", message, 409)

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
            item=None if number is None else bodies.ItemBody.of(number, self._project.items[number]),
            view=None if view is None else bodies.fill(bodies.ViewBody, view),
            message=message,
            names=self._state.snapshot.names_number,
        )

    def _undone(self, undone: Undone) -> str:
        if undone.kind == "answer":
            names = self._project.labels.names()
            return f"Taken back: your answer for {', '.join(names[label] for label in undone.labels)}."
        what = "that you were done with" if undone.kind == "done" else "that you skipped"
        return f"Taken back: {what} {self._project.items[undone.item].id}."
