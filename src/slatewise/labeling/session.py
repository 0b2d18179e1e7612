"""One person's labeling of a project: an item, the best next question, an answer, and so on.

Every act is on the disk when its method returns. Scores of items are computed once per version of the model, so that an
answer costs the sums over the sets of labels of one row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from slatewise.core.rules import one_of, short_repr
from slatewise.labeling.exchange.formats import FORMATS, export_answers, format_of
from slatewise.labeling.item_state import WORDS, ItemState, ItemView, Question, Word
from slatewise.labeling.labeling_state import LabelingState
from slatewise.labeling.plan import ORDERS, By
from slatewise.labeling.store import leases
from slatewise.labeling.store.acts import whole
from slatewise.labeling.store.known_labels import HOWS
from slatewise.labeling.store.project import Project
from slatewise.labeling.store.records import How, Undone

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse
    from slatewise.cstar.ranker import CStarRanker

_TAKEN = "Your time for this item ran out and somebody else has it now; your answers are kept all the same."
_WORD, _ORDER = one_of(*WORDS), one_of(*ORDERS)


class Session:
    """One person's labeling; may be used from any thread.

    An item that the person had when a session ended, even if it was killed, is open again in the next one.

    Parameters
    ----------
    project
        The project, open for writing.
    annotator
        The person's name.
    model, features, scores
        As of :class:`LabelingState`. Default: what the project has.
    state
        What it shares with other sessions of the project. Default: one of its own.

    Attributes
    ----------
    annotator, name
        The person's number and name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from slatewise.labeling import Item, Plan
    >>> with TemporaryDirectory() as folder:
    ...     texts = [Item("a", "text", "Waves on a beach."), Item("b", "text", "A street at night.")]
    ...     with Project.create(Path(folder, "tags.db"), ["sea", "sky"], texts) as project:
    ...         session = Session(project, "Ann", scores=[[-2.0, 0.5], [1.0, -9.0]])
    ...         item = session.next_item()
    ...         question = session.question
    ...         view = session.answer(question.label, "yes", milliseconds=800)
    ...         item, question.name, question.reason.text, view.chance > 0.99, view.enough
    (1, 'sea', '73% likely', True, True)
    """

    def __init__(
        self,
        project: Project,
        annotator: str,
        model: CStarRanker | None = None,
        features: ArrayLike | Sparse | None = None,
        scores: ArrayLike | None = None,
        *,
        state: LabelingState | None = None,
    ) -> None:
        if state is not None and any(part is not None for part in (model, features, scores)):
            raise ValueError("state: expected it, or a model and features or scores, found both")
        self._state = state or LabelingState(project, model, features, scores)
        self._project, self.annotator, self.name = project, project.people.number(annotator), annotator
        self._lock = RLock()
        self._item_state: ItemState | None = None
        self._view: ItemView | None = None
        self._leased, self._taken, self._n_acts = 0.0, False, 0
        for item in project.leases.held(self.annotator):
            if self._item_state is None and project.state(item, self.annotator).mark == "open":
                self.open(item)

    @property
    def item(self) -> int | None:
        """The number of the item that is open, None if none is."""
        return None if self._item_state is None else self._item_state.item

    @property
    def view(self) -> ItemView | None:
        """What to show of the open item; the same until somebody answers. None if no item is open."""
        with self._lock:
            if self._item_state is not None and self._project.n_acts(self._item_state.item) != self._n_acts:
                self._again()  # an import, a reviewer, or another process
            return self._last_view()

    @property
    def question(self) -> Question | None:
        """The best next question about the open item; None if none is open, or nothing is left to ask."""
        return None if self.view is None else self.view.question

    def next_item(self, by: By | None = None) -> int | None:
        """Leave the open item and open the best one that nobody has; return its number, None if none is left.

        Parameters
        ----------
        by : {"file order", "least sure", "most gain", "disagreement"}, optional
            What is best. Default: as the plan of the project says. The plan's share without the model comes in between.
        """
        if by is not None:
            _ORDER.check("by", by)
        with self._lock:
            self._state.refresh()
            left = self.item
            if left is not None:
                self._state.left(left)
            for item in self._state.choose(self.annotator, by, left):
                if self.open(item):
                    return item
            self._leave()
            return None

    def open(self, item: int) -> bool:
        """Open an item instead of the one that is open; return whether that can be: others may have it."""
        with self._lock:
            left, plan = self.item, self._state.snapshot.plan
            item = whole("item", item)
            if not self._project.leases.claim(
                item,
                self.annotator,
                overlap=plan.overlap,
                seconds=plan.lease_seconds,
                instead_of=None if left == item else left,
            ):
                return False
            self._leased, self._taken = leases.steady_clock(), False
            self._begin(item)
            return True

    def answer(self, label: int | str, answer: Word, *, milliseconds: int | None = None) -> ItemView:
        """Record an answer; return what to show next.

        Parameters
        ----------
        label
            The number or the name of a label. It counts as volunteered if it is not the label of the question.
        answer : {"yes", "no", "don't know"}
            The answer; it replaces the person's earlier answer to the label.
        milliseconds
            How long it took.
        """
        return self._record(label, answer, None, milliseconds)

    def volunteer(self, label: int | str, answer: Word = "yes", *, milliseconds: int | None = None) -> ItemView:
        """Record an answer that counts as volunteered; the parameters are those of :meth:`answer`."""
        return self._record(label, answer, "volunteered", milliseconds)

    def done(
        self, shown: Mapping[int, float | None] | Sequence[int] | None = None, *, milliseconds: int | None = None
    ) -> None:
        """End the open item. Labels of the list without an answer are a no, recorded as closed.

        Parameters
        ----------
        shown
            The labels that the page listed, or a mapping to how likely they were. Default: those of the view.
        milliseconds
            How long it took.
        """
        with self._lock:
            item_state, view = self._opened()
            if shown is None:
                listed = {label.label: label.probability for label in view.listed if label.answer is None}
                shown = {} if item_state.for_calibration else listed | item_state.from_list
            model = view.version
            self._project.done(item_state.item, self.annotator, shown, milliseconds=milliseconds, model=model)
            self._ended(item_state)

    def skip(self, *, milliseconds: int | None = None) -> None:
        """Leave the open item to others; its answers stay."""
        with self._lock:
            item_state, _ = self._opened()
            self._project.skip(item_state.item, self.annotator, milliseconds=milliseconds)
            self._ended(item_state)
            self._project.leases.release(item_state.item, self.annotator)

    def undo(self) -> Undone | None:
        """Take back the person's last act, of any item, and open that item; return the act, None if there is none."""
        with self._lock:
            undone = self._project.undo(self.annotator)
            if undone is None:
                return None
            if undone.item == self.item or not self.open(undone.item):
                self._again()
            return undone

    def settle(self, item: int, label: int | str, answer: Word) -> None:
        """Decide as a reviewer what others dispute, see :class:`slatewise.labeling.Agreement`."""
        _WORD.check("answer", answer)
        self._project.answer(item, self._number(label), WORDS[answer], self.annotator, how="reviewed")

    def export(self, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> None:
        """Write the answers of all people to a file, as :func:`slatewise.labeling.export_answers` does.

        The formats that need features take those of the session.
        """
        if FORMATS[format_of(path, format)].needs_features:
            data = self._state.item_data()
            options = {"X": None if data is None else data.X} | options
        export_answers(self._project, path, format, **options)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _last_view(self) -> ItemView | None:
        """Return what the person saw last and answers to, whatever others answered since."""
        if self._view is None and self._item_state is not None:
            notes = self._state.notes() if not self._item_state.for_calibration else ()
            self._view = self._item_state.view(self._state.snapshot, (*notes, *([_TAKEN] * self._taken)))
        return self._view

    def _opened(self) -> tuple[ItemState, ItemView]:
        """Return the open item and what the person saw of it."""
        view = self._last_view()
        if self._item_state is None or view is None:
            raise ValueError("item: expected one that is open, found none: call next_item")
        return self._item_state, view

    def _record(self, label: int | str, answer: Word, how: How | None, milliseconds: int | None) -> ItemView:
        """Record an answer; without ``how``, an answer to a question or volunteered, as the person saw it."""
        _WORD.check("answer", answer)
        with self._lock:
            item_state, view = self._opened()
            number, value = self._number(label), WORDS[answer]
            if how is None:
                is_question = view.question is not None and view.question.label == number
                is_question |= bool(item_state.how[number] == HOWS.index("question"))
                how = "question" if is_question else "volunteered"
            believed = float(view.probability[number])
            probability = believed if 0.0 <= believed <= 1.0 else None  # NaN: there is no model in this
            self._project.answer(
                item_state.item,
                number,
                value,
                self.annotator,
                how=how,
                milliseconds=milliseconds,
                model=view.version,
                probability=probability,
            )
            if how == "volunteered" and probability is not None and any(one.label == number for one in view.listed):
                item_state.from_list[number] = probability
            item_state.note(number, value, how)
            self._n_acts += 1
            self._keep_lease(item_state.item)
            self._view = None
            after = self.view
            assert after is not None
            return after

    def _keep_lease(self, item: int) -> None:
        """Make the lease longer when half of it is over: not with every answer, because that flushes the disk."""
        plan, time = self._state.snapshot.plan, leases.steady_clock()
        if time - self._leased >= plan.lease_seconds / 2:
            held = self._project.leases.claim(item, self.annotator, overlap=plan.overlap, seconds=plan.lease_seconds)
            self._leased, self._taken = leases.steady_clock(), not held

    def _begin(self, item: int) -> None:
        if self._item_state is not None:
            self._state.left(self._item_state.item)
        self._state.opened(item)
        self._n_acts = self._project.n_acts(item)  # before the votes, so that nothing is missed
        self._item_state = ItemState.of(item, self.annotator, self._project.votes(item), self._state.snapshot)
        self._view = None

    def _again(self) -> None:
        """Read what stands of the open item."""
        if self._item_state is not None:
            from_list = self._item_state.from_list
            self._begin(self._item_state.item)
            self._item_state.from_list = from_list

    def _ended(self, item_state: ItemState) -> None:
        self._state.left(item_state.item)
        self._item_state = self._view = None

    def _leave(self) -> None:
        if self._item_state is not None:
            self._project.leases.release(self._item_state.item, self.annotator)
            self._item_state = self._view = None

    def _number(self, label: int | str) -> int:
        if isinstance(label, str):
            return self._project.labels.number(label)
        number = whole("label", label)
        if not 0 <= number < len(self._state.snapshot.names):
            raise ValueError(f"label: expected the number of one that is there, found {short_repr(label)}")
        return number
