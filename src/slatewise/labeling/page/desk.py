"""What one server of a project holds: the project, the bench that all people share, and a seat per person."""

from __future__ import annotations

import getpass
import logging
import os
import time
from threading import Lock, RLock

from slatewise.core.errors import ProjectError
from slatewise.labeling.agreement import Agreement
from slatewise.labeling.page.refusals import Refused
from slatewise.labeling.page.report import Report
from slatewise.labeling.page.seat import Seat
from slatewise.labeling.progress_report import ProgressReport
from slatewise.labeling.retraining import Trainer
from slatewise.labeling.store.acts import check_name
from slatewise.labeling.store.project import Project
from slatewise.labeling.visit import Visit
from slatewise.labeling.workbench import Workbench
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
