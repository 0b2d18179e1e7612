"""One person at the page: a session, and the care that nothing is recorded twice."""

from __future__ import annotations

from threading import RLock

from slatewise.labeling.item_view import WORDS
from slatewise.labeling.page import bodies
from slatewise.labeling.page.refusals import Refused
from slatewise.labeling.page.shown import item_body, view_body
from slatewise.labeling.plan import By
from slatewise.labeling.store.records import Undone
from slatewise.labeling.workbench import Workbench

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
